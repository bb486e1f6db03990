"""Checks what docs/comparison.md says about Strands' own offloader, and that ours differs as it says.

Only the newest Strands is compared. ``tests/adapters/strands/test_upstream_*.py`` compares storages, tools and counts
point by point.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from strands.vended_plugins import context_offloader as theirs

import coatcheck_strands as ours
from coatcheck.testing.samples import long_line
from tests.adapters.strands.agents import BIG, RETRIEVE, agent, call, reading, references, results, returning, text_of
from tests.adapters.strands.test_upstream_storages import Custom

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

LINE = long_line(300_000)


def asked(package: ModuleType, *blocks: dict[str, Any] | str, **selectors: Any) -> str:  # noqa: ANN401
    """Let an agent read back; return the answer that it gets."""
    plugin = package.ContextOffloader(package.InMemoryStorage())
    subject = agent(plugin, turns=(call(), reading(**selectors)), tools=[returning(*blocks)])
    subject("go")
    return text_of(results(subject)[-1])


def test_theirs_shows_the_head_and_ours_the_tail_too() -> None:
    subjects = {package: agent(package.ContextOffloader(package.InMemoryStorage())) for package in (theirs, ours)}
    shown = {}
    for package, subject in subjects.items():
        subject("go")
        shown[package] = text_of(results(subject)[-1])

    assert "line 2,000 of" not in shown[theirs]
    assert "line 2,000 of" in shown[ours]


def test_theirs_returns_whole_content_at_once_and_ours_names_the_next_call() -> None:
    assert asked(theirs, BIG) == BIG
    assert len(asked(ours, BIG)) < len(BIG) / 4
    assert asked(ours, BIG).rpartition("\n")[2].startswith("[More: ")


def test_theirs_reaches_the_end_of_one_long_line_only_by_returning_all_of_it() -> None:
    end = "<299990>"

    assert end not in asked(theirs, LINE, pattern=end).replace(f"/{end}/", "")
    assert end not in asked(theirs, LINE, line_range={"start": 1, "end": 1})
    assert asked(theirs, LINE) == LINE
    assert end in asked(ours, LINE, offset=-100)


def first_of_two_with_one_call_id(package: ModuleType) -> str:
    storage = Custom()
    first, second = (
        agent(package.ContextOffloader(storage), tools=[returning(text)]) for text in (BIG, BIG.replace("line", "row"))
    )
    first("go")
    second("go")
    ask = call(RETRIEVE, reference=references(results(first)[0])[0], line_range={"start": 7, "end": 7})
    asking = agent(package.ContextOffloader(storage), turns=(ask,))
    asking("go")
    return text_of(results(asking)[-1])


ROWS = {"json": {"rows": [{"id": number, "note": "x" * 40} for number in range(1_000)]}}
TABLE = {"document": {"format": "csv", "name": "table", "source": {"bytes": b"id,note\n7,seven\n"}}}


@pytest.mark.parametrize(
    ("blocks", "selectors", "in_theirs", "in_ours"),
    [
        ([ROWS], {"pattern": '"id": 77,'}, '"id": 77,\n', '{"id":77,"note"'),
        ([ROWS], {"pattern": '"id":77,'}, "No matches found", '"id":77,"note"'),
        ([BIG], {"pattern": "^line 7(?= of)"}, ">  7| line 7 of", "look-ahead"),
        (
            ["\n".join(["line"] * 9_000 + ["end"])],
            {"pattern": "end", "context_lines": 150},
            " 8851| line",
            "\n\n  8901| line",
        ),
        (["\r\n".join(["one", "two"] * 9_000)], {"pattern": "two$"}, "[1 match for", "[9000 matches for"),
        ([BIG, TABLE], {"position": 1, "pattern": "seven"}, "cannot search binary content", "> 2| 7,seven"),
    ],
    ids=["indented JSON", "compact JSON", "look-ahead", "context", "CRLF", "CSV"],
)
def test_the_same_read_differs_as_the_page_on_switching_says(
    blocks: list[Any], selectors: dict[str, Any], in_theirs: str, in_ours: str
) -> None:
    assert in_theirs in asked(theirs, *blocks, **selectors)
    assert in_ours in asked(ours, *blocks, **selectors)


@pytest.mark.parametrize(
    ("selectors", "said"),
    [
        ({"line_range": {"start": 1_001, "end": 1_002}}, "[Lines 1001-1002 of 4000]"),
        (
            {"line_range": {"start": 5_000, "end": 6_000}},
            "line_range.start (5000) is beyond content length (4000 lines).",
        ),
        (
            {"pattern": "word", "line_range": {"start": 1_001, "end": 3_000}},
            "[2000 matches for /word/ in lines 1001-3000",
        ),
        ({"pattern": "none"}, "No matches found for pattern 'none' (searched 4000 lines)."),
    ],
    ids=["lines", "no such lines", "matches", "no matches"],
)
def test_lines_that_hosts_may_parse_have_the_same_numbers_as_theirs(selectors: dict[str, Any], said: str) -> None:
    text = "\n".join(["one word in each of many lines"] * 4_000)

    assert said in asked(theirs, text, **selectors)
    assert said in asked(ours, text, **selectors)


def test_theirs_keeps_one_content_per_call_id_in_the_same_storage() -> None:
    assert "row 7 of" in first_of_two_with_one_call_id(theirs)
    assert "line 7 of" in first_of_two_with_one_call_id(ours)


@pytest.mark.parametrize(("package", "scopes", "reads"), [(theirs, {}, True), (ours, {"scope": "another"}, False)])
def test_theirs_lets_anyone_with_a_reference_read_it(
    package: ModuleType, scopes: dict[str, str], *, reads: bool, tmp_path: Path
) -> None:
    owner = agent(package.ContextOffloader(package.FileStorage(str(tmp_path))))
    owner("go")
    ask = call(RETRIEVE, reference=references(results(owner)[0])[0], line_range={"start": 7, "end": 7})
    other = agent(package.ContextOffloader(package.FileStorage(str(tmp_path)), **scopes), turns=(ask,))
    other("go")

    assert ("line 7 of" in text_of(results(other)[-1])) is reads


def test_theirs_has_no_budget_for_a_step() -> None:
    assert not [name for name in inspect.signature(theirs.ContextOffloader).parameters if "step" in name]
