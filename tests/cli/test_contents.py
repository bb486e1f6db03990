"""``put``, ``get``, ``cat`` and ``show``: what goes in comes out, in the words that a model reads."""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, FileStorage, MediaBlock, Offloader, TextBlock
from tests.cli.running import answered, run

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck import Block

LINES = "".join(f"line {number}\n" for number in range(1, 20_001)).encode()
SOME_LINES = "".join(f"line {number}\n" for number in range(1, 901)).encode()
RECORDS = json.dumps([{"id": number, "price": number * 2} for number in range(1_000)]).encode()
PICTURE = b"\x89PNG\r\n\x1a\n\x00\xff" * 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COATCHECK_STORAGE", str(tmp_path / "artifacts"))
    monkeypatch.delenv("COATCHECK_SCOPE", raising=False)
    return tmp_path / "artifacts"


def read_on(command: list[str]) -> list[str]:
    """Run a command, and then those that it says read on; return what they answered."""
    answers: list[str] = []
    while command and len(answers) < 10:
        ran = run(*command)
        assert ran.exit_code == 0
        answers.append(ran.stdout)
        command = shlex.split(ran.stderr.removeprefix("Read on with: coatcheck "))
    return answers


def stored(data: bytes, *options: str) -> str:
    return str(answered("put", *options, given=data)["reference"])


@pytest.mark.parametrize(
    ("data", "options", "block"),
    [
        (LINES, (), TextBlock(LINES.decode())),
        (b"three short words", (), TextBlock("three short words")),
        (RECORDS, ("--type", "application/json"), TextBlock(RECORDS.decode())),
        ("Grüße\r\n".encode(), (), TextBlock("Grüße\r\n")),
        (b"a\0b", ("--type", "text/plain"), TextBlock("a\0b")),
        (PICTURE, ("--type", "image/png"), MediaBlock(PICTURE, "image/png")),
        (PICTURE, (), MediaBlock(PICTURE, "application/octet-stream")),
        (b"a\0b", (), MediaBlock(b"a\0b", "application/octet-stream")),
        (b"plain", ("--type", "application/pdf"), MediaBlock(b"plain", "application/pdf")),
    ],
)
def test_put_shows_what_a_model_would_see(
    data: bytes, options: tuple[str, ...], block: Block, folder: Path, tmp_path: Path
) -> None:
    ran = run("put", *options, given=data)

    outcome = Offloader(FileStorage(tmp_path / "other")).offload([block], tool_name="stdin", policy=Always())
    expected = "\n".join(block.text for block in outcome.blocks if isinstance(block, TextBlock))
    (reference,) = outcome.references
    assert ran.exit_code == 0
    assert ran.stdout_bytes.decode() == f"{expected}\n"
    assert ran.stderr == f"Read it with: coatcheck get {reference.id}\n"
    assert Offloader(FileStorage(folder)).load(reference).data == data


def test_put_tells_programs_the_facts(folder: Path) -> None:
    facts = answered("put", "--name", "kubectl logs", given=LINES)

    assert facts.keys() == {"reference", "content_type", "bytes", "shown"}
    assert facts["reference"].startswith("kubectl_logs-")
    assert (facts["content_type"], facts["bytes"]) == ("text/plain", len(LINES))
    assert facts["reference"] in facts["shown"]


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (b"", (), "nothing was stored: standard input is empty"),
        (b"\xff\xfe", ("--type", "text/csv"), "standard input is not text/csv in UTF-8: invalid start byte at byte 0"),
        (b"x", ("--type", "png"), "--type must be a MIME type such as image/png, not 'png'"),
        (b"x", ("--scope", ""), "scope must be a text of 1 to 4,096 characters, not ''"),
    ],
)
def test_put_refuses_on_one_line(data: bytes, options: tuple[str, ...], said: str, folder: Path) -> None:
    ran = run("put", *options, given=data)

    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"coatcheck: {said}\n")
    assert not folder.exists()


def test_put_does_not_store_a_placeholder_of_its_own(folder: Path) -> None:
    shown = run("put", given=LINES).stdout_bytes

    ran = run("put", given=shown)

    assert ran.exit_code == 2
    assert ran.stderr == "coatcheck: nothing was stored: this is itself a placeholder, of what is stored already\n"


@pytest.mark.parametrize("times", [1, 20_000])
def test_a_storage_that_refuses_is_named_on_one_line(times: int, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ran = run("put", "--storage", tmp_path / "file", given=b"some more words\n" * times)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"coatcheck: nothing was stored: FileStorage('{tmp_path / 'file'}') could not save")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("data", "options", "asked"),
    [
        (LINES, (), {}),
        (LINES, ("--pattern", "line 77$", "--context-lines", "1"), {"pattern": "line 77$", "context_lines": 1}),
        (LINES, ("--pattern", "-no such line"), {"pattern": "-no such line"}),
        (LINES, ("--lines", "10:20"), {"line_range": "10:20"}),
        (LINES, ("--line-range", "10-20"), {"line_range": "10-20"}),
        (LINES, ("--pattern", "9$", "--lines", "10:40"), {"pattern": "9$", "line_range": "10:40"}),
        (LINES, ("--offset", "-20"), {"offset": -20}),
        (RECORDS, ("--query", "[?id == `7`].price"), {"query": "[?id == `7`].price"}),
        (PICTURE, (), {}),
    ],
)
def test_get_answers_as_the_retrieval_tool_does(
    data: bytes, options: tuple[str, ...], asked: dict[str, object], folder: Path
) -> None:
    reference = stored(data)

    ran = run("get", reference, *options)

    expected = Offloader(FileStorage(folder)).retrieve(reference, **asked)  # type: ignore[arg-type]
    assert (ran.exit_code, ran.stdout) == (0, f"{expected.text}\n")
    assert answered("get", reference, *options) == {
        "text": expected.text,
        "matches": expected.matches,
        "next_call": expected.next_call,
    }


def test_get_is_as_long_as_it_may_be(folder: Path) -> None:
    reference = stored(LINES)

    assert len(run("get", reference, "--max-tokens", "256").stdout) < 1_200
    assert len(run("get", reference, "--max-tokens", "5000").stdout) > 10_000
    assert run("get", reference, "--max-tokens", "255").exit_code == 2


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        (("--lines", "3:800"), 3, 800),
        (("--pattern", "line", "--lines", "5:800", "--context-lines", "0"), 5, 800),
        (("--max-tokens", "300", "--lines", "1:100"), 1, 100),
    ],
)
def test_the_command_that_reads_on_reads_all_of_it(
    options: tuple[str, ...], first: int, last: int, folder: Path
) -> None:
    answers = read_on(["get", stored(SOME_LINES, "--scope", "it's mine"), *options, "--scope", "it's mine"])

    assert 1 < len(answers) < 10
    read = [int(number) for answer in answers for number in re.findall("line ([0-9]+)(?=\n)", answer)]
    assert read == list(range(first, last + 1))


@pytest.mark.parametrize(("options", "first"), [((), 0), (("--offset=-7000",), len(SOME_LINES) - 7_000)])
def test_the_command_that_reads_on_reads_every_character(options: tuple[str, ...], first: int, folder: Path) -> None:
    answers = read_on(["get", stored(SOME_LINES), *options])

    assert len(answers) == 2
    parts = [re.match("\\[Characters ([0-9,]+)-([0-9,]+) of", answer) for answer in answers]
    ends = [int(number.replace(",", "")) for part in parts if part for number in part.groups()]
    assert ends == [first, ends[1], ends[1] + 1, len(SOME_LINES) - 1]


def test_the_next_command_names_a_storage_that_is_not_the_usual_one(tmp_path: Path, folder: Path) -> None:
    elsewhere = tmp_path / "a folder"

    ran = run("put", "--storage", elsewhere, given=b"words")

    command = shlex.split(ran.stderr.removeprefix("Read it with: coatcheck "))
    assert command[2:] == [f"--storage={elsewhere}"]
    assert "words" in run(*command).stdout


@pytest.mark.parametrize("data", [LINES, PICTURE, b"\r\n\0\xff", "☃\u2028\n".encode()])
def test_cat_gives_every_byte_back(data: bytes, folder: Path) -> None:
    assert run("cat", stored(data)).stdout_bytes == data


@pytest.mark.parametrize("command", ["get", "cat", "show"])
def test_another_scope_is_refused_like_what_never_was(command: str, folder: Path) -> None:
    reference = stored(b"secret words", "--scope", "mine")

    ran = run(command, reference, "--scope", "yours")
    unknown = run(command, "stdin-0123456789abcdef-0000", "--scope", "yours")

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == unknown.stderr.replace("stdin-0123456789abcdef-0000", reference)
    assert ran.stderr.startswith(f"coatcheck: reference not found: {reference}. ")
    assert ran.stderr.endswith(f" Looked in scope 'yours' of FileStorage('{folder}').\n")
    assert run(command, reference, env={"COATCHECK_SCOPE": "mine"}).exit_code == 0


@pytest.mark.parametrize("command", ["get", "cat", "show"])
def test_what_is_gone_is_told_from_what_never_was(command: str, folder: Path) -> None:
    reference = stored(b"words")
    Offloader(FileStorage(folder)).delete_scope("default")

    ran = run(command, reference)

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"coatcheck: reference expired: {reference}.")


def test_damaged_content_is_never_written_out(folder: Path) -> None:
    reference = stored(b"words")
    (content,) = folder.rglob("*.txt")
    content.write_bytes(b"wards")

    ran = run("cat", reference)

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "its SHA-256 differs" in ran.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--query", "[", "--json"), "query"),
        (("--lines", "20:10"), "line_range.start (20) is after line_range.end (10)"),
        (("--query", "a", "--pattern", "b"), "query cannot be combined"),
    ],
)
def test_a_wrong_selector_could_not_run(options: tuple[str, ...], said: str, folder: Path) -> None:
    ran = run("get", stored(RECORDS), *options)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_show_tells_what_is_known(folder: Path) -> None:
    reference = stored(LINES)
    (content,) = folder.rglob("*[!y].txt")

    facts = answered("show", reference)
    shown = run("show", reference).stdout.splitlines()

    assert {name: facts[name] for name in ("reference", "scope", "content_type", "bytes", "characters", "lines")} == {
        "reference": reference,
        "scope": "default",
        "content_type": "text/plain",
        "bytes": len(LINES),
        "characters": len(LINES),
        "lines": 20_000,
    }
    assert facts["path"] == str(content)
    assert facts["modified"].endswith("+00:00")
    assert f"bytes         {len(LINES):,}" in shown
    assert f"path          {content}" in shown


def test_show_leaves_out_what_is_not_known(folder: Path) -> None:
    shown = run("show", stored(PICTURE, "--type", "image/png")).stdout

    assert "image/png" in shown
    assert "lines" not in shown


def test_showing_is_no_use_and_reading_is(folder: Path) -> None:
    reference = stored(b"words")
    (content,) = folder.rglob("*.txt")
    os.utime(content, (1_000, 1_000))

    assert answered("show", reference)["modified"] == "1970-01-01T00:16:40+00:00"
    run("get", reference)
    assert answered("show", reference)["modified"] != "1970-01-01T00:16:40+00:00"
