"""``put``, ``get``, ``cat`` and ``show``: what goes in comes out, worded as for a model but with shell commands."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, FileStorage, Offloader, TextBlock
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
    """Run a command, then each next command that an answer names; return the answers."""
    answers: list[str] = []
    while command and len(answers) < 10:
        ran = run(*command)
        assert ran.exit_code == 0
        answers.append(ran.stdout)
        command = next_command(ran.stdout)
    return answers


def next_command(answer: str) -> list[str]:
    """Return the arguments of the command at the end of an answer, if there is one."""
    found = re.search(r"\[More: coatcheck (.*)\]\n\Z", answer)
    return shlex.split(found[1]) if found else []


def stored(data: bytes, *options: str) -> str:
    return str(answered("put", *options, given=data)["reference"])


@pytest.mark.parametrize(
    ("data", "options", "block"),
    [
        (LINES, (), TextBlock(LINES.decode())),
        (RECORDS, ("--type", "application/json"), TextBlock(RECORDS.decode())),
    ],
)
def test_put_shows_the_preview_that_a_model_would_see(
    data: bytes, options: tuple[str, ...], block: Block, folder: Path, tmp_path: Path
) -> None:
    ran = run("put", *options, given=data)

    outcome = Offloader(FileStorage(tmp_path / "other")).offload([block], tool_name="stdin", policy=Always())
    (placeholder,) = (block.text for block in outcome.blocks if isinstance(block, TextBlock))
    reference = outcome.references[0].id
    first = "--lines=1:100   or --pattern=REGEX, --query=JMESPATH, --offset=N in place of --lines"
    if b"\n" not in data:  # a single line: --lines=1:100 would be all of it
        first = "--offset=0   or --pattern=REGEX, --query=JMESPATH in place of --offset"
    assert ran.exit_code == 0
    assert ran.stdout.splitlines()[:5] == [
        f"Stored as {reference} (text/plain, {len(data):,} bytes).",
        "Only a preview follows. Read on with one of these:",
        f"  coatcheck get {reference} {first}",
        f"  coatcheck cat {reference}   all of it",
        "",
    ]
    assert ran.stdout.partition("\n\n")[2] == placeholder.partition("\n\n")[2] + "\n"
    assert ran.stderr == ""
    assert Offloader(FileStorage(folder)).load(reference).data == data


def test_every_command_that_put_names_can_be_typed_as_it_is(folder: Path) -> None:
    shown = run("put", "--scope", "it's mine", given=LINES).stdout

    commands = [line.strip().partition("   ")[0] for line in shown.splitlines() if line.startswith("  coatcheck")]
    get, cat = (run(*shlex.split(command)[1:]) for command in commands)

    assert "  1| line 1\n" in get.stdout
    assert cat.stdout_bytes == LINES


@pytest.mark.parametrize("data", [b"three short words", "Grüße\r\n".encode(), b"[1,  2]", b"words " * 400])
def test_put_shows_a_small_input_whole_and_says_so(data: bytes, folder: Path) -> None:
    ran = run("put", given=data)

    head, _, rest = ran.stdout_bytes.decode().partition("\n\n")
    reference = head.split()[2]
    assert head.splitlines()[1] == f"All of it follows. This prints it again: coatcheck cat {reference}"
    assert rest == data.decode().removesuffix("\n") + "\n"
    assert run("cat", reference).stdout_bytes == data


@pytest.mark.parametrize(
    ("data", "options", "content_type"),
    [
        (PICTURE, ("--type", "image/png"), "image/png"),
        (PICTURE, (), "application/octet-stream"),
        (b"a\0b", (), "application/octet-stream"),
        (b"plain", ("--type", "application/pdf"), "application/pdf"),
    ],
)
def test_put_shows_nothing_of_content_that_is_not_text(
    data: bytes, options: tuple[str, ...], content_type: str, folder: Path
) -> None:
    first, second = run("put", *options, given=data).stdout.splitlines()[:2]

    reference = first.split()[2]
    assert first == f"Stored as {reference} ({content_type}, {len(data):,} bytes)."
    assert second == f"This is not text, so there is no preview. Get it with: coatcheck cat {reference} > FILE"
    assert Offloader(FileStorage(folder)).load(reference).data == data


@pytest.mark.parametrize(
    "selection", [(), ("--pattern", "ERROR"), ("--lines", "1:5"), ("--query", "a"), ("--offset", "5")]
)
def test_get_says_which_command_gives_content_that_is_not_text(selection: tuple[str, ...], folder: Path) -> None:
    reference = stored(PICTURE, "--type", "image/png")

    ran = run("get", reference, *selection)

    said = f"which this tool does not show: get it with coatcheck cat {reference} > FILE"
    if selection:
        assert ran.exit_code == 2
        assert ran.stderr == f"coatcheck: cannot search binary content (image/png), {said}\n"
    else:
        assert ran.stdout == f"[image/png, 400 bytes of binary content, {said}]\n"


def test_get_shows_a_line_of_content_as_it_is_if_it_reads_like_advice(folder: Path) -> None:
    line = "call the tool that returned it again if it can return text"

    assert line in run("get", stored(line.encode())).stdout


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (LINES + b"k\xe4se\n", (), f"Its byte {len(LINES) + 1:,} is not UTF-8. "),
        (b"a\0b", (), "Its byte 1 is NUL. "),
        (PICTURE, ("--type", "image/png"), ""),
    ],
)
def test_put_says_which_byte_is_not_text_and_how_to_store_text_all_the_same(
    data: bytes, options: tuple[str, ...], said: str, folder: Path
) -> None:
    _, _, *more = run("put", *options, given=data).stdout.splitlines()

    assert more == ([f"{said}If this is text all the same, put it again with --type text/plain."] if said else [])


def test_content_declared_as_text_is_taken_for_text(folder: Path) -> None:
    assert run("put", "--type", "text/plain", given=b"a\0b").stdout.endswith("\n\na\0b\n")
    assert run("put", "--type", "text/csv", given=b"k\xe4se;\xff").stdout.endswith("\n\nk\ufffdse;\ufffd\n")


def test_content_declared_as_text_is_previewed_and_searched_whatever_its_bytes(folder: Path) -> None:
    data = b"first k\xe4se\n" + LINES + b"last k\xe4se\n"

    stdout = run("put", "--type", "text/plain", given=data).stdout

    reference = stdout.split()[2]
    assert f"{reference} (text/plain, {len(data):,} bytes)" in stdout
    assert "\nOnly a preview follows. " in stdout
    assert "\n\nfirst k\ufffdse\nline 1\n" in stdout
    assert stdout.rstrip().endswith("\nlast k\ufffdse")
    assert "| last k\ufffdse\n" in run("get", reference, "--pattern", "^last").stdout
    assert run("cat", reference).stdout_bytes == data


def test_put_prints_the_facts_as_json_for_programs(folder: Path) -> None:
    facts = answered("put", "--name", "kubectl logs", given=LINES)

    assert facts.keys() == {"reference", "content_type", "bytes", "whole", "shown"}
    assert facts["reference"].startswith("kubectl_logs-")
    assert (facts["content_type"], facts["bytes"], facts["whole"]) == ("text/plain", len(LINES), False)
    assert facts["shown"].startswith("line 1\n")
    assert answered("put", given=b"few words\n").items() >= {"whole": True, "shown": "few words"}.items()


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (b"", (), "nothing was stored: standard input is empty"),
        (b"x", ("--type", "png"), "--type must be a MIME type such as image/png, not 'png'"),
        (b"x", ("--scope", ""), "scope must be a str of 1 to 4,096 characters or a tuple of 1 to 8 of them, not ''"),
    ],
)
def test_put_reports_a_refusal_on_one_line(data: bytes, options: tuple[str, ...], said: str, folder: Path) -> None:
    ran = run("put", *options, given=data)

    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"coatcheck: {said}\n")
    assert not folder.exists()


def test_put_with_a_file_argument_names_the_command_to_type(folder: Path) -> None:
    ran = run("put", "my log.txt")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == ("coatcheck: put reads standard input, not a named file: coatcheck put < 'my log.txt'\n")


def test_put_refuses_a_storage_before_reading_its_input() -> None:
    ran = run("put", "--storage", "memory://here", given=b"")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("coatcheck: memory://here is gone as soon as a command ends")


def test_put_refuses_to_store_a_placeholder(folder: Path) -> None:
    outcome = Offloader().offload([TextBlock(LINES.decode())], tool_name="read_log")
    (placeholder,) = (block.text for block in outcome.blocks if isinstance(block, TextBlock))

    ran = run("put", given=placeholder.encode())

    assert ran.exit_code == 2
    assert ran.stderr == "coatcheck: nothing was stored: this is itself a placeholder for stored content\n"


@pytest.mark.parametrize("times", [1, 20_000])
def test_a_failed_save_is_reported_on_one_line(times: int, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ran = run("put", "--storage", tmp_path / "file", given=b"some more words\n" * times)

    assert (ran.exit_code, ran.stdout) == (2, "")
    said = f"saving {16 * times:,} bytes (FileStorage) failed: NotADirectoryError: [Errno {errno.ENOTDIR}] "
    assert ran.stderr.startswith(f"coatcheck: nothing was stored: {said}")
    assert ran.stderr.endswith(f": {str(tmp_path / 'file')!r}\n")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        *(("ls",), ("stats",), ("verify",), ("sweep", "--max-age", "1d"), ("rm", "--scope", "mine", "--yes")),
        *(("get", "REFERENCE"), ("cat", "REFERENCE"), ("show", "REFERENCE")),
    ],
    ids=lambda command: command[0],
)
def test_a_storage_that_fails_ends_every_command_on_one_line(command: tuple[str, ...], folder: Path) -> None:
    reference = stored(LINES)
    (folder / "v1").rename(folder / "elsewhere")
    (folder / "v1").touch()  # a file where a folder belongs

    ran = run(*(reference if word == "REFERENCE" else word for word in command))

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "(FileStorage) failed: NotADirectoryError: " in ran.stderr
    assert str(folder) in ran.stderr
    assert ran.stderr.startswith("coatcheck: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("data", "options", "asked"),
    [
        (LINES, (), {}),
        (LINES, ("--pattern", "line 77$", "--context-lines", "1"), {"pattern": "line 77$", "context_lines": 1}),
        (LINES, ("--lines", "10:20"), {"line_range": "10:20"}),
        (LINES, ("--line-range", "10-20"), {"line_range": "10-20"}),
        (LINES, ("--pattern", "9$", "--lines", "10:40"), {"pattern": "9$", "line_range": "10:40"}),
        (LINES, ("--offset", "-20"), {"offset": -20}),
        (RECORDS, ("--query", "[?id == `7`].price"), {"query": "[?id == `7`].price"}),
    ],
)
def test_get_answers_as_the_retrieval_tool_does(
    data: bytes, options: tuple[str, ...], asked: dict[str, object], folder: Path
) -> None:
    reference = stored(data)

    ran = run("get", reference, *options)

    expected = Offloader(FileStorage(folder)).retrieve(reference, **asked)  # type: ignore[arg-type]
    text = re.sub(r"\[More: retrieve_offloaded_content\(.*\)\]\Z", "[More: ", expected.text)
    shown = re.sub(r"coatcheck get .*\]\n\Z", "", ran.stdout).removesuffix("\n")
    assert (ran.exit_code, shown) == (0, text)
    assert bool(next_command(ran.stdout)) == (expected.next_call is not None)
    assert answered("get", reference, *options) == {
        "text": ran.stdout.removesuffix("\n"),
        "matches": expected.matches,
        "next_call": expected.next_call,
    }


def test_an_answer_of_get_fills_max_tokens_and_no_more(folder: Path) -> None:
    reference = stored(LINES)

    assert len(run("get", reference, "--max-tokens", "256").stdout) < 1_200
    assert len(run("get", reference, "--max-tokens", "5000").stdout) > 10_000
    assert run("get", reference, "--max-tokens", "255").exit_code == 2


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        (("--lines", "3:800"), 3, 800),
        (("--pattern", "line", "--lines", "5:800", "--context-lines", "0"), 5, 800),
        (("--pattern", "line|\\[More: ", "--lines", "5:800", "--context-lines", "0"), 5, 800),
        (("--max-tokens", "300", "--lines", "1:100"), 1, 100),
    ],
)
def test_following_the_next_commands_reads_every_line(
    options: tuple[str, ...], first: int, last: int, folder: Path
) -> None:
    answers = read_on(["get", stored(SOME_LINES, "--scope", "it's mine"), *options, "--scope", "it's mine"])

    assert 1 < len(answers) < 10
    read = [int(number) for answer in answers for number in re.findall("line ([0-9]+)(?=\n)", answer)]
    assert read == list(range(first, last + 1))


@pytest.mark.parametrize(("options", "first"), [((), 0), (("--offset=-7000",), len(SOME_LINES) - 7_000)])
def test_following_the_next_commands_reads_every_character(options: tuple[str, ...], first: int, folder: Path) -> None:
    answers = read_on(["get", stored(SOME_LINES), *options])

    assert len(answers) == 2
    parts = [re.match("\\[Characters ([0-9,]+)-([0-9,]+) of", answer) for answer in answers]
    ends = [int(number.replace(",", "")) for part in parts if part for number in part.groups()]
    assert ends == [first, ends[1], ends[1] + 1, len(SOME_LINES) - 1]


def test_the_next_command_names_a_storage_that_is_not_the_default(tmp_path: Path, folder: Path) -> None:
    elsewhere = tmp_path / "a folder"

    ran = run("put", "--storage", elsewhere, given=b"words")

    command = shlex.split(ran.stdout.splitlines()[1].partition("coatcheck ")[2])
    assert command[2:] == [f"--storage={elsewhere}"]
    assert "words" in run(*command).stdout


@pytest.mark.parametrize("data", [LINES, PICTURE, b"\r\n\0\xff", "☃\u2028\n".encode()])
def test_cat_prints_every_byte(data: bytes, folder: Path) -> None:
    assert run("cat", stored(data)).stdout_bytes == data


@pytest.mark.parametrize("command", ["get", "cat", "show"])
def test_another_scopes_reference_is_refused_like_an_unknown_one(command: str, folder: Path) -> None:
    reference = stored(b"secret words", "--scope", "mine")

    ran = run(command, reference, "--scope", "yours")
    unknown = run(command, "stdin-0123456789abcdef-0000", "--scope", "yours")

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == unknown.stderr.replace("stdin-0123456789abcdef-0000", reference)
    assert ran.stderr == (
        f"coatcheck: scope 'yours' has no reference {reference}. Check both; looked in FileStorage('{folder}')\n"
    )
    assert run(command, reference, env={"COATCHECK_SCOPE": "mine"}).exit_code == 0


@pytest.mark.parametrize("reference", ["", " "])
@pytest.mark.parametrize("command", ["get", "cat", "show"])
def test_an_empty_reference_is_refused_instead_of_listing_the_scope(command: str, reference: str, folder: Path) -> None:
    stored(b"words", "--scope", "mine")

    ran = run(command, reference, "--scope", "mine")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "reference is " in ran.stderr


@pytest.mark.parametrize("command", ["get", "cat", "show"])
def test_content_that_is_gone_is_reported_differently_from_an_unknown_reference(command: str, folder: Path) -> None:
    reference = stored(b"words")
    Offloader(FileStorage(folder)).delete_scope("default")

    ran = run(command, reference)

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"coatcheck: FileStorage('{folder}') does not hold {reference}: check --storage, or it was deleted there\n"
    )


def test_a_reference_of_another_storage_is_answered_with_a_hint_at_the_storage(folder: Path, tmp_path: Path) -> None:
    reference = stored(b"words")
    stored(b"other words", "--storage", str(tmp_path / "other"))

    ran = run("get", reference, "--storage", tmp_path / "other")

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "check --storage" in ran.stderr
    assert "expired" not in ran.stderr


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
        (("--query", "[", "--json"), "invalid --query: "),
        (("--query", "a offset"), "invalid --query: "),
        (("--lines", "20:10"), "the first line of --lines (20) must be <= the last (10)."),
        (("--lines", "99:"), "the first line of --lines (99) is beyond content length (1 line)"),
        (("--lines", "line_range"), "--lines must look like 10:20, 10: or 10, not 'line_range'"),
        (
            ("--query", "a", "--pattern", "b"),
            "--query cannot be combined with --pattern: give either --query or --pattern",
        ),
        (("--offset=5", "--lines=1"), "--offset counts characters and --lines counts lines"),
        (("--context-lines=2",), "--context-lines is for --pattern: give a pattern, or leave it out"),
        (("--context-lines=2", "--lines=1"), "--context-lines is for --pattern: give a pattern, or leave it out"),
    ],
)
def test_an_invalid_selector_is_named_as_it_was_typed(options: tuple[str, ...], said: str, folder: Path) -> None:
    ran = run("get", stored(RECORDS), *options)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"coatcheck: {said}")
    assert ran.stderr.count("\n") == 1


def test_get_without_a_match_exits_as_grep_does(folder: Path) -> None:
    reference = stored(LINES)

    assert run("get", reference, "--pattern", "line 7$").exit_code == 0
    assert run("get", reference, "--pattern", "nowhere").exit_code == 1
    asked = run("get", reference, "--pattern", "nowhere", "--json")
    assert (asked.exit_code, json.loads(asked.stdout)["matches"]) == (1, 0)


@pytest.mark.parametrize(
    ("query", "code"),
    [("nope", 1), ("[?id == `999999`]", 1), ("[0].nope", 1), ("[0]", 0), ("length(@)", 0), ("`false`", 0), ("`{}`", 0)],
)
def test_get_with_a_query_that_selects_nothing_exits_as_with_a_pattern_without_a_match(
    query: str, code: int, folder: Path
) -> None:
    reference = stored(RECORDS)

    assert run("get", reference, "--query", query).exit_code == code
    asked = run("get", reference, "--query", query, "--json")
    assert (asked.exit_code, json.loads(asked.stdout)["matches"]) == (code, 0 if code else None)


def test_get_with_a_query_that_selects_nothing_from_any_line_exits_as_grep_does(folder: Path) -> None:
    assert run("get", stored(b'{"rows": [{"id": 1}]}\n' * 2_000), "--query", "rows[?id == `7`]").exit_code == 1


def test_a_tuple_scope_is_passed_part_by_part(folder: Path) -> None:
    parts = ("--scope", "tenant 7", "--scope", "thread-3")
    reference = stored(LINES, *parts)

    assert Offloader(FileStorage(folder)).load(reference, scope=("tenant 7", "thread-3")).data == LINES
    assert answered("show", reference, *parts)["scope"] == ["tenant 7", "thread-3"]
    command = next_command(run("get", reference, "--lines", "1:5000", *parts).stdout)
    assert command[-2:] == ["--scope=tenant 7", "--scope=thread-3"]
    assert run(*command).exit_code == 0
    assert run("cat", reference, "--scope", "thread-3", "--scope", "tenant 7").exit_code == 1
    assert answered("ls", *parts)[0]["reference"] in run("ls", *parts).stdout
    assert "('tenant 7', 'thread-3')" in run("stats", *parts).stdout
    assert answered("rm", "--yes", *parts)["scope"] == ["tenant 7", "thread-3"]


def test_a_scope_in_the_environment_is_one_str_whatever_it_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_SCOPE", "tenant 7")
    reference = stored(LINES)

    assert Offloader(FileStorage(folder)).load(reference, scope="tenant 7").data == LINES
    assert "--scope" not in run("get", reference, "--lines", "1:5000").stdout


def test_the_advice_after_no_match_names_options(folder: Path) -> None:
    ran = run("get", stored(LINES), "--pattern", "a pattern")

    assert ran.stdout == (
        "No matches found for --pattern 'a pattern' (searched 20000 lines).\n"
        "A match lies within one line and case counts. Try (?i), a shorter --pattern, or --lines.\n"
    )


@pytest.mark.parametrize("form", ["10:20", "10:", "10"])
def test_every_documented_form_of_lines_is_accepted(form: str, folder: Path) -> None:
    assert "  10| line 10\n" in run("get", stored(LINES), "--lines", form).stdout


def test_show_prints_all_that_is_known_about_content(folder: Path) -> None:
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


@pytest.mark.parametrize("reading", ["get", "cat"])
def test_reading_counts_as_use_and_showing_does_not(reading: str, folder: Path) -> None:
    reference = stored(b"words")
    (content,) = folder.rglob("*.txt")
    os.utime(content, (1_000, 1_000))

    assert answered("show", reference)["modified"] == "1970-01-01T00:16:40+00:00"
    run(reading, reference)
    assert answered("show", reference)["modified"] != "1970-01-01T00:16:40+00:00"
