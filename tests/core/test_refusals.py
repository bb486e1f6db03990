"""Refused requests: a model reads what is wrong with the arguments it gave, never about one it did not give.

A refusal first says what is wrong. After its first colon or full stop it says what to do instead, and may name any
argument there. So any argument it names before that must have been given.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given

from coatcheck import (
    Always,
    InMemoryStorage,
    InvalidRequest,
    MediaBlock,
    Offloader,
    TextBlock,
    failure_for_model,
    retrieval_arguments,
)
from coatcheck.core.arguments import LISTING, OPTIONS
from coatcheck.core.notice import LIST_READ_INSTEAD, too_slow
from coatcheck.core.reading import wording
from tests.core.reading_driver import attempt
from tests.core.selections import ODD, odd_selections

if TYPE_CHECKING:
    from coatcheck import Block

CONTENTS: dict[str, Block] = {
    "lines": TextBlock("a line\n" * 900),
    "a huge line": TextBlock("x" * 1_200_000),
    "JSON": TextBlock(json.dumps([{"a": number} for number in range(90)])),
    "JSON Lines": TextBlock('{"a": 1}\n' * 90),
    "JSON with a number of thousands of digits": TextBlock(f"[{'9' * 5_000}]"),
    "an image": MediaBlock(b"\x89PNG" * 99, "image/png"),
}
"""Content that together causes nearly all refusals. None holds an argument's name, because a refusal may quote it."""

NAME = re.compile(rf"\b(?:{'|'.join(OPTIONS)})\b")


def named_as_wrong(refusal: str) -> set[str]:
    """Return the arguments that a refusal names before it says what to do instead."""
    *_, refusal = refusal.split(LIST_READ_INSTEAD)  # before that, only the reference is missing
    wrong, *_ = re.split(r"[:.] ", refusal, maxsplit=1)
    return set(NAME.findall(wrong))


@pytest.fixture(scope="module")
def offloader() -> Offloader:
    """Return an offloader that stores everything, and refuses queries of the huge line as too large."""
    return Offloader(InMemoryStorage(), policies={"*": Always()}, max_query_bytes=1_000_000)


@pytest.fixture(scope="module")
def references(offloader: Offloader) -> dict[str, str]:
    """Return the reference of each content, and the one that stands for the list of all."""
    outcomes = {name: offloader.offload([block], tool_name="t", scope="s") for name, block in CONTENTS.items()}
    return {**{name: outcome.references[0].id for name, outcome in outcomes.items()}, "the list": LISTING}


def _check_refusals(selection: dict[str, Any], offloader: Offloader, references: dict[str, str]) -> None:
    sent = {name for name, value in selection.items() if value not in (None, "")}
    for content, reference in references.items():
        arguments = retrieval_arguments({"reference": reference, **selection})
        answer = attempt(partial(offloader.retrieve, scope="s", **arguments))
        if isinstance(answer, InvalidRequest):
            refusal = failure_for_model(answer)
            named = named_as_wrong(refusal)
            assert named <= sent, f"{content}: {refusal}"
            # For an image, every selector is refused.
            assert named or content == "an image", f"{content}: no argument is named: {refusal}"


@pytest.mark.no_cover
@pytest.mark.parametrize("name", OPTIONS)
def test_a_refusal_of_one_argument_names_no_other(name: str, offloader: Offloader, references: dict[str, str]) -> None:
    for value in ODD[name]:
        _check_refusals({name: value}, offloader, references)


@example(selection={"query": "@", "pattern": "x"})
@example(selection={"query": "@", "line_range": "1-2"})
@example(selection={"query": "@", "line_range": "1-2", "pattern": "x"})
@example(selection={"query": "@", "offset": 10**9})
@example(selection={"offset": 5, "line_range": "1-2"})
@given(selection=odd_selections())
def test_a_refusal_names_only_arguments_that_were_given(
    selection: dict[str, Any], offloader: Offloader, references: dict[str, str]
) -> None:
    _check_refusals(selection, offloader, references)


@pytest.mark.parametrize(
    ("refusal", "named"), [(wording.TOO_MUCH_WORK, {"query"}), (too_slow(10.0), set())], ids=["a query", "a pattern"]
)
def test_a_refusal_of_slow_work_names_no_other_argument(refusal: str, named: set[str]) -> None:
    assert named_as_wrong(refusal) == named
