"""``python -m benchmarks.quality``: what it holds out, what it compares, and that it ends with 1 if a kind loses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.quality import __main__ as quality
from benchmarks.quality import methods
from benchmarks.quality.intervals import interval
from benchmarks.quality.kinds import kind_of
from benchmarks.quality.methods import COUNTER, PLAIN, all_ways
from benchmarks.quality.transcripts import is_held_out, read_results
from coatcheck import Always, Offloader, TextBlock

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.quality.methods import Way
    from benchmarks.quality.transcripts import Result

pytestmark = pytest.mark.no_cover  # tests `benchmarks`, whose coverage is not measured

RESULTS = 32
"""Results of one kind, one in each conversation: enough for the interval to decide."""


def chosen_ways() -> dict[str, Way]:
    return {name: way for name, way in all_ways().items() if name in {methods.OURS, *PLAIN}}


@pytest.fixture(autouse=True)
def _few_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare ours with the plain ways only: the others need other packages or take long."""
    monkeypatch.setattr(quality, "all_ways", chosen_ways)
    monkeypatch.setattr(quality, "BUDGETS", (100, 250))


def conversation(number: int, *, needed: str) -> dict[str, Any]:
    records = [{"id": f"R-{number}-{row}", "name": f"record number {row}"} for row in range(40)]
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return {
        "id": f"conversation-{number}",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": json.dumps(records)},
            {"role": "assistant", "content": needed.format(number=number)},
        ],
    }


def written(folder: Path, name: str, *, needed: str = "It is R-{number}-1.", count: int = RESULTS) -> Path:
    lines = [json.dumps(conversation(number, needed=needed)) for number in range(count)]
    (folder / "transcripts").mkdir(exist_ok=True)
    (folder / f"transcripts/{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def losing(result: Result, budget: int) -> str:
    return ""


def test_it_ends_with_0_if_no_kind_loses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quality.main([str(written(tmp_path, "a_set"))]) == 0
    assert "No kind loses" in capsys.readouterr().out


@pytest.mark.parametrize(("count", "code"), [(RESULTS, 1), (29, 0)])
def test_it_ends_with_1_if_a_kind_with_enough_results_loses(
    count: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ways: dict[str, Way] = {**chosen_ways(), methods.OURS: losing}
    monkeypatch.setattr(quality, "all_ways", lambda: ways)

    assert quality.main([str(written(tmp_path, "a_set", count=count))]) == code
    said = "all: JSON at 100 tokens loses to head: -100.0 [-100.0, -100.0], 32 results"
    assert (said in capsys.readouterr().out) == bool(code)


def test_the_held_out_half_comes_first_and_holds_only_the_named_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(written(tmp_path, "late"), "early")

    quality.main([str(folder), "--hold-out", "late"])

    half, everything = capsys.readouterr().out.split("### ")[1:]
    held_out = sum(is_held_out("late", f"conversation-{number}", ["late"]) for number in range(RESULTS))
    assert 0 < held_out < RESULTS
    assert half.startswith("The held-out half")
    assert f"| method | 100 ({held_out}) | 250 ({held_out}) |" in half
    assert f"| method | 100 ({2 * RESULTS}) | 250 ({2 * RESULTS}) |" in everything
    assert "| late |" in half
    assert "| early |" not in half


def test_a_conversation_is_held_out_by_the_hash_of_its_name() -> None:
    names = [name for name in ("one", "two", "three", "four") if is_held_out("late", name, ["late"])]

    assert names == ["one", "three", "four"]
    assert not is_held_out("early", "one", ["late"])


def test_what_ours_missed_in_the_held_out_half_is_never_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ways: dict[str, Way] = {**chosen_ways(), methods.OURS: losing}
    monkeypatch.setattr(quality, "all_ways", lambda: ways)

    quality.main([str(written(tmp_path, "late")), "--missed", "100", "JSON", "--hold-out", "late"])

    listed = capsys.readouterr().out
    for number in range(RESULTS):
        held_out = is_held_out("late", f"conversation-{number}", ["late"])
        assert (f"=== late/conversation-{number}: ours 0%, head 100%: ['R-{number}-1']" in listed) == (not held_out)


def test_a_whole_placeholder_fits_the_budget(tmp_path: Path) -> None:
    (result,) = read_results(written(tmp_path, "a_set", count=1))

    for budget in (100, 250):
        made = methods.ours(result, max(0, budget - methods.header_tokens(result)))
        assert COUNTER.count(made) + methods.header_tokens(result) <= budget
    offloader = Offloader(preview_tokens=250 - methods.header_tokens(result), policies={"*": Always()})
    (block,) = offloader.offload([TextBlock(result.text)], tool_name="tool", scope="a").blocks
    assert isinstance(block, TextBlock)
    assert COUNTER.count(block.text) <= 250
    assert block.text.endswith(made)


def test_numbers_are_written_only_between_the_marks_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: written by the benchmark -->\nold\n<!-- end of figures -->\nafter\n")

    quality.write(r"new \1 figures", page)
    quality.write(r"new \1 figures", page)

    assert page.read_text().split("\n\n") == [
        "before\n<!-- figures: written by the benchmark -->",
        r"new \1 figures",
        "<!-- end of figures -->\nafter\n",
    ]


def test_a_folder_without_conversations_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "output.jsonl").write_text('{"a": 1}\n', encoding="utf-8")

    with pytest.raises(SystemExit) as ended:
        quality.main([str(tmp_path)])

    assert ended.value.code == 2
    assert "holds no conversation" in capsys.readouterr().err


def test_an_interval_resamples_conversations_and_not_results() -> None:
    values = [1.0, 1.0, 1.0, 0.0]

    alone = interval(values, ["a", "b", "c", "d"])
    together = interval(values, ["a", "a", "a", "b"])

    assert alone.mean == together.mean == pytest.approx(0.75)
    assert together.low == 0.0
    assert together.high == 1.0
    assert alone.low > 0.0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": 1}', "JSON"),
        ("[('a', 1), (None, 2)]", "Python rows"),
        ("<!DOCTYPE html><p>x", "HTML"),
        ("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n", "diff"),
        ("1| import a\n2| import b\n3| c", "numbered source"),
        ("./a\n./b/c\nd:\n", "listing"),
        ("ok: true\ntools:\n- name: a\n  about: it\n", "YAML"),
        ("meta=None content=[TextContent(type='text', text='hello')]", "wrapped"),
        ('Found {"id": 1, "name": "x", "cut": "of', "wrapped"),
        ("# A\n\nSee [this](http://x) and [that](http://y).", "Markdown"),
        ("Just some words.", "other text"),
        ("", "other text"),
    ],
)
def test_kinds_are_recognised_by_the_content(text: str, kind: str) -> None:
    assert kind_of(text) == kind
