"""``python -m benchmarks.quality.thresholds``: what it counts, checked by hand, and which conversations come first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.quality import thresholds
from benchmarks.quality.transcripts import is_held_out
from coatcheck.replay.measure import definition_tokens
from tests.replay.samples import BIG, openai

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = definition_tokens(thresholds._COUNTER)


@pytest.fixture(autouse=True)
def _small_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "THRESHOLDS", (1_000, 100_000))
    monkeypatch.setattr(thresholds, "PREVIEWS", (250,))


def written(folder: Path, *conversations: list[dict[str, Any]]) -> Path:
    lines = [json.dumps({"id": f"c{number}", "messages": each}) for number, each in enumerate(conversations)]
    (folder / "a_set.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def replayed(folder: Path) -> list[thresholds.Replayed]:
    return list(thresholds.replay(folder, hold_out=["a_set"]))


def test_the_saving_is_a_share_of_the_whole_bill_with_prefix_and_definition(tmp_path: Path) -> None:
    (each,) = replayed(written(tmp_path, openai(BIG)))

    (left,) = each.left[1_000, 250].values()
    said, asked, result, _ = (part.tokens for part in each.plain)
    outcome = thresholds.count([each], 5_000, knobs=(1_000, 250))

    before = (5_000 + said) + (5_000 + said + asked + result)
    after = before + 2 * DEFINITION - result + left.placeholder_tokens
    assert outcome.saved[0] == pytest.approx(1 - after / before)
    written_once, again = 5_000 + said + asked + result, 5_000 + said
    cached = 1.25 * (written_once + DEFINITION - result + left.placeholder_tokens) + 0.1 * (again + DEFINITION)
    assert outcome.saved[1] == pytest.approx(1 - cached / (1.25 * written_once + 0.1 * again))
    assert outcome.dearer == (0.0, 0.0)


def test_a_conversation_counts_as_dearer_from_two_percent_upwards(tmp_path: Path) -> None:
    each = replayed(written(tmp_path, openai(BIG), openai("short")))

    short = 2 * DEFINITION
    dear, fair = (thresholds.count(each, prefix, knobs=(1_000, 250)).dearer for prefix in (100, 50 * short))

    assert dear == (0.5, 0.5)
    assert fair == (0.0, 0.0)


def test_read_backs_are_the_needed_ones_none_or_one_of_each_result(tmp_path: Path) -> None:
    more = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": "It is in row 500."}]
    each = replayed(written(tmp_path, [*openai(BIG), *more], openai(BIG)))
    ways = {"needed": thresholds._by_need, "none": thresholds._never, "each": thresholds._each_once}

    saved = {name: thresholds.count(each, 0, knobs=(1_000, 250), reads=reads).saved[0] for name, reads in ways.items()}

    assert saved["none"] > saved["needed"] > saved["each"]


def test_a_tool_offered_late_saves_its_definition_and_costs_the_cache(tmp_path: Path) -> None:
    each = replayed(written(tmp_path, [*openai("short"), *openai("short"), *openai(BIG)], openai("short")))

    always, late = (thresholds.count(each, 5_000, knobs=(1_000, 250), when_needed=when) for when in (False, True))

    assert late.saved[0] > always.saved[0]
    assert late.saved[1] < always.saved[1]


def test_the_held_out_half_comes_first_with_a_row_for_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, *([openai("short")] * 6))
    held_out = sum(is_held_out("a_set", f"c{number}", ["a_set"]) for number in range(6))
    assert 0 < held_out < 6

    assert thresholds.main([str(folder), "--hold-out", "a_set"]) == 0

    half, everything = capsys.readouterr().out.split("### ")[1:]
    assert half.startswith(f"The held-out half: {held_out} conversations")
    assert everything.startswith("All conversations: 6 conversations")
    threshold, preview = thresholds.DEFAULTS
    assert f"| **{threshold:,}** | **{preview:,}** |" in half
    assert f"{DEFINITION} tokens, offered once something has been offloaded" in half


def test_the_page_is_written_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- figures: written by the benchmark --><!-- end of figures -->")
    monkeypatch.setattr(thresholds, "DOCUMENT", page)

    thresholds.main([str(written(tmp_path, openai("short"))), "--write"])

    assert "### All conversations: 1 conversations" in page.read_text()


def test_a_folder_without_conversations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        thresholds.main([str(tmp_path)])

    assert ended.value.code == 2
