"""``coatcheck demo`` as a user runs it: on its own data, on the user's files, and with arguments that are wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from coatcheck import TiktokenCounter
from coatcheck.cli.demo_input import FindWord
from coatcheck.replay.measure import definition_tokens
from tests.cli.running import facts, run
from tests.docs.figures import NUMBER, of_demo
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

WORDS = "\n".join(f"line {number} holds word{number:05}" for number in range(20_000))
RECORDS = json.dumps([{"id": number, "customer": f"Customer {number}", "paid": True} for number in range(5_000)])


@pytest.fixture(scope="module")
def own_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the demo says about its own data, run as a separate program; other tests run it in this process."""
    folder = tmp_path_factory.mktemp("storage")
    command = [sys.executable, "-m", "coatcheck.cli", "demo", "--json", "--storage", str(folder)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ran.stderr == ""
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def test_it_offloads_megabytes_of_text_and_json(own_data: dict[str, Any]) -> None:
    assert [part["bytes"] > 1_000_000 for part in own_data["parts"]] == [True, True]
    assert {part["outcome"] for part in own_data["parts"]} == {"offloaded"}
    assert all(part["shown_tokens"] <= 2_500 for part in own_data["parts"])


def test_its_answers_are_checked_against_the_data(own_data: dict[str, Any]) -> None:
    assert own_data["verified"]
    text, characters = own_data["parts"]
    assert text["answer"].startswith("json/decoder.py, line ")
    assert "U+2603" in characters["answer"]


def test_it_reads_back_twice_with_a_pattern_and_then_lines_or_a_field(own_data: dict[str, Any]) -> None:
    used = [[*call["arguments"]] for part in own_data["parts"] for call in part["retrievals"]]

    assert used == [["pattern", "context_lines"], ["line_range"], ["pattern", "context_lines"], ["query"]]


def test_the_stored_file_holds_what_the_tool_returned(own_data: dict[str, Any]) -> None:
    for part in own_data["parts"]:
        assert Path(part["path"]).stat().st_size == part["bytes"]
        assert Path(part["path"]).is_relative_to(own_data["storage"])
        assert part["reference"] in part["shown"]


def test_the_pages_say_what_it_sends(own_data: dict[str, Any]) -> None:
    for page, sentence in of_demo(own_data):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        said = re.search(NUMBER.pattern.join(map(re.escape, NUMBER.split(sentence))), text)
        assert said is not None, f"{page} must say: {sentence}; `python -m tests.docs.rewrite`"
        # The demo reads the standard library's source, which differs a little between versions of Python.
        for number, sent in zip(NUMBER.findall(said[0]), NUMBER.findall(sentence), strict=True):
            assert float(number.replace(",", "")) == pytest.approx(float(sent.replace(",", "")), rel=0.1)


@pytest.mark.no_cover
def test_the_tokens_without_offloading_are_counted_and_not_estimated(own_data: dict[str, Any]) -> None:
    counter = TiktokenCounter()
    for part in own_data["parts"]:
        text = Path(part["path"]).read_bytes().decode()
        assert part["tokens"] == counter.count(text)


def test_the_saving_is_the_tokens_that_were_not_sent(own_data: dict[str, Any]) -> None:
    for part in own_data["parts"]:
        assert part["tokens_sent_without"] >= part["tokens"]
        assert part["tokens_saved"] == part["tokens_sent_without"] - part["tokens_sent"]
        assert part["tokens_sent"] < 0.01 * part["tokens_sent_without"]
        assert part["model_calls"] == 4


@pytest.mark.no_cover
def test_the_screen_is_readable_in_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    ran = run("demo")

    assert ran.exit_code == 0
    lines = ran.output.splitlines()
    assert [line for line in lines if cell_len(line) > 80 and "/coatcheck-demo-" not in line] == []
    assert "\x1b" not in ran.output
    for label in ("Question", "Tool returned", "Retrieval 2", "Answer", "Checked", "Tokens sent", "Saved", "Time"):
        assert sum(line.startswith(f"{label} ") for line in lines) == 2, label
    stored = [Path(line.removeprefix("Stored file:").strip()) for line in lines if line.startswith("Stored file:")]
    assert all(path.is_relative_to(tmp_path) and path.stat().st_size > 1_000_000 for path in stored)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("threshold", "name", "text", "way"),
    [  # each way of reading back, at both thresholds
        (100, "lines.txt", WORDS, "line_range"),
        (2_500, "one line.txt", WORDS.replace("\n", " "), "offset"),
        (2_500, "windows.txt", WORDS.replace("\n", "\r\n"), "line_range"),
        (100, "no words.txt", "-\n" * 50_000, "line_range"),
        (100, "Chinese.txt", "工具返回的结果太大了。" * 20_000, "offset"),
        (100, "long lines.txt", "\n".join(chr(0x12000 + number) * 900 for number in range(300)), "offset"),
        (100, "controls.txt", "".join(f"\x1b[2J\x00{number}\u2028\x85\n" for number in range(20_000)), "line_range"),
        (100, "records.json", RECORDS, "query"),
        (2_500, "indented.json", json.dumps({"of": 1, "orders": json.loads(RECORDS)}, indent=2), "query"),
        (100, "nested.json", json.dumps({str(key): [{"a": [key]}] for key in range(9_000)}), "offset"),
        (2_500, "numbers.json", json.dumps(list(range(50_000))), "offset"),
        (2_500, "lines.jsonl", "\n".join(json.dumps({"id": number}) for number in range(20_000)), "line_range"),
        (2_500, "large.json", json.dumps([{"id": number, "of": "x" * 100} for number in range(80_000)]), "offset"),
    ],
)
def test_on_any_text_or_json_the_answer_is_in_the_data(
    name: str, text: str, way: str, threshold: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(text.encode())

    (part,) = facts(
        "--input", tmp_path / name, "--storage", tmp_path / "storage", "--max-result-tokens", str(threshold)
    )["parts"]

    assert part["answer_in_data"]
    assert part["stored_exactly"]
    assert way in part["retrievals"][1]["arguments"]


def test_a_different_file_gets_a_different_answer(tmp_path: Path) -> None:
    def answer(text: str) -> str:
        (tmp_path / "file").write_text(text)
        return str(facts("--input", tmp_path / "file", "--storage", tmp_path)["parts"][0]["answer"])

    assert answer(RECORDS) != answer(RECORDS.replace('"id": 2500', '"id": 777777'))
    assert "777777" in answer(RECORDS.replace('"id": 2500', '"id": 777777'))
    assert answer(WORDS) != answer(f"one more line\n{WORDS}")


def test_a_small_file_stays_in_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "small").write_text("only a few\nwords in here\n")

    (part,) = facts("--input", tmp_path / "small", "--storage", tmp_path)["parts"]

    assert (part["outcome"], part["path"], part["retrievals"]) == ("kept", None, [])
    assert part["shown"] == "only a few\nwords in here\n"
    assert part["answer_in_data"]
    # The only cost is what coatcheck adds to each call.
    assert part["tokens_saved"] == -part["model_calls"] * definition_tokens(TiktokenCounter())


def test_a_small_file_is_shown_as_kept(tmp_path: Path) -> None:
    (tmp_path / "small").write_text("only a few words")

    ran = run("demo", "--input", tmp_path / "small", "--storage", tmp_path)

    assert "the result stays as it is" in ran.output
    assert "Stored file" not in ran.output
    assert ran.output.endswith("Nothing was stored.\n")


def test_no_folder_is_left_when_nothing_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "small").write_text("only a few words")

    assert run("demo", "--input", tmp_path / "small").exit_code == 0
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "is empty"), (b" \n\t\n", "is empty"), (bytes(range(256)), "neither text nor JSON")]
)
def test_a_file_without_text_is_refused_on_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)

    ran = run("demo", "--input", tmp_path / "file")

    assert ran.exit_code == 2
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_missing_file_is_refused() -> None:
    ran = run("demo", "--input", "no-such-file")

    assert ran.exit_code == 2
    assert "does not exist" in ran.stderr


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    (tmp_path / "file").write_text("words")
    monkeypatch.setattr(Path, "read_bytes", refuse)

    ran = run("demo", "--input", tmp_path / "file")

    assert (ran.exit_code, ran.stderr) == (2, f"coatcheck: {tmp_path / 'file'} cannot be read: Permission denied\n")


def test_a_storage_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("words")

    ran = run("demo", "--input", tmp_path / "file", "--storage", tmp_path / "file" / "folder")

    assert ran.exit_code == 2
    assert "cannot be used as storage" in ran.stderr


@pytest.mark.parametrize("threshold", ["0", "-1", "many"])
def test_an_invalid_threshold_is_refused(threshold: str) -> None:
    assert run("demo", "--max-result-tokens", threshold).exit_code == 2


def test_a_python_without_library_source_is_answered_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))

    ran = run("demo", "--storage", tmp_path)

    assert ran.exit_code == 2
    assert "--input FILE" in ran.stderr


def test_a_wrong_answer_is_reported_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text(WORDS)
    monkeypatch.setattr(FindWord, "sentence", lambda *_: "On line 1: I do not know.")

    ran = run("demo", "--input", tmp_path / "file", "--storage", tmp_path)

    assert ran.exit_code == 1
    assert "WRONG" in ran.output
    assert "Not answered from the data" in ran.output


def test_a_model_that_finds_nothing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text(WORDS)
    monkeypatch.setattr(FindWord, "first_call", lambda _: {"pattern": "no such words at all"})

    ran = run("demo", "--json", "--input", tmp_path / "file", "--storage", tmp_path)

    (part,) = json.loads(ran.stdout)["parts"]
    assert ran.exit_code == 1
    assert part["answer"] == "I could not find the answer in what I was given."
    assert len(part["retrievals"]) == 1


def test_the_users_data_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("\x1b]0;owned\x07\x1b[2J[bold]word\r\n" * 20_000)

    ran = run("demo", "--input", tmp_path / "file", "--storage", tmp_path)

    assert ran.exit_code == 0
    assert not {"\x1b", "\x07", "\r"} & set(ran.output)
    assert "[bold]" in ran.output


@pytest.fixture(scope="module")
def in_a_pipe(tmp_path_factory: pytest.TempPathFactory, make_httpserver: HTTPServer) -> tuple[bytes, list[object]]:
    """Run the demo into an ASCII pipe with tracing on; return what it wrote, and the requests that it made."""
    folder = tmp_path_factory.mktemp("pipe")
    (folder / "file").write_text("☃ snowman\n" * 20_000, encoding="utf-8")
    tracing = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "none"}
    tracing |= {"LANGSMITH_ENDPOINT": make_httpserver.url_for(""), "NO_PROXY": "127.0.0.1,localhost"}
    before = len(make_httpserver.log)
    ran = subprocess.run(
        [sys.executable, "-m", "coatcheck.cli", "demo", "--input", folder / "file", "--storage", folder],
        check=True,
        capture_output=True,
        env={**os.environ, **tracing, "PYTHONIOENCODING": "ascii"},
    )
    return ran.stdout, [*make_httpserver.log[before:]]


def test_an_ascii_pipe_gets_what_it_can_encode(in_a_pipe: tuple[bytes, list[object]]) -> None:
    assert b"? snowman" in in_a_pipe[0]


def test_no_tracing_service_gets_the_data(in_a_pipe: tuple[bytes, list[object]]) -> None:
    assert in_a_pipe[1] == []
