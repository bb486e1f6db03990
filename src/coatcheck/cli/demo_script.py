"""What a question of the demo is made of: the data, the script that finds the answer, and the check of the answer.

A script is told what to look for, never what the answer is. It chooses the next retrieval from what the last one
returned, and takes the facts from the text that it got. ``facts_in`` takes the same facts from the whole data, without
any offloading, to check the answer. The questions themselves are in ``demo_builtin`` and ``demo_input``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Protocol, TypeAlias

__all__ = (
    "Arguments",
    "Case",
    "Facts",
    "Match",
    "NotFound",
    "Script",
    "first_match",
    "numbered_lines",
    "query_result",
    "states",
)

Arguments: TypeAlias = dict[str, object]
"""Arguments of a call of the retrieval tool, except the reference."""

Facts: TypeAlias = tuple[str, ...]
"""The facts that a right answer states, each exactly as in the data."""

_MATCH = re.compile(r"^> *([0-9]+)(?: \[characters ([0-9,]+)-[0-9,]+\])?\| (.*)$", re.MULTILINE)
_LINE = re.compile(r"^[ >] *([0-9]+)\| (.*)$", re.MULTILINE)
_RESULT = re.compile(r"^\[Result of query .*?\]\n(.*)\n\[End of result\]$", re.DOTALL | re.MULTILINE)
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3})")


class NotFound(LookupError):
    """The text does not hold what the script looks for."""


class Script(Protocol):
    """Asks one question and knows how to find the answer."""

    @property
    def question(self) -> str:
        """What the user asks."""
        ...

    def first_call(self) -> Arguments:
        """Return what to retrieve first: a pattern."""
        ...

    def second_call(self, first: str) -> Arguments:
        """Return what to retrieve next, from what the first retrieval returned.

        Raises:
            NotFound: it returned nothing to go on with.

        """
        ...

    def facts(self, first: str, second: str) -> Facts:
        """Return the facts from what both retrievals returned.

        Raises:
            NotFound: they are not there.

        """
        ...

    def facts_in(self, whole: str) -> Facts:
        """Return the facts from the whole data.

        Raises:
            NotFound: they are not there.

        """
        ...

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of the demo: a tool, what it returns, and a question about that."""

    title: str
    tool_name: str
    tool_description: str
    result: str
    script: Script


@dataclass(frozen=True, slots=True)
class Match:
    """The first match that a search shows."""

    line: int
    text: str
    start: int | None
    """Where the shown part of a long line begins, in characters of the content; None for a line shown whole."""


def first_match(answer: str) -> Match:
    """Return the first match in the answer to a pattern.

    Raises:
        NotFound: there is none.

    """
    found = _MATCH.search(answer)
    if found is None:
        raise NotFound(answer)
    return Match(int(found[1]), found[3], int(found[2].replace(",", "")) if found[2] else None)


def numbered_lines(answer: str) -> list[tuple[int, str]]:
    """Return the lines in the answer to a line range, each with its number."""
    return [(int(found[1]), found[2]) for found in _LINE.finditer(answer)]


def query_result(answer: str) -> object:
    """Return the value in the answer to a query.

    Raises:
        NotFound: there is none, or it is not complete.

    """
    found = _RESULT.search(answer)
    if found is None:
        raise NotFound(answer)
    try:
        return json.loads(found[1])
    except ValueError:
        raise NotFound(answer) from None


def states(answer: str, fact: str) -> bool:
    """Return whether an answer states a fact: as a whole word, however spaces and thousands are written."""
    stated, wanted = (" ".join(_THOUSANDS.sub("", text).split()) for text in (answer, fact))
    before = r"(?<!\w)" if re.match(r"\w", wanted) else ""
    behind = r"(?!\w)" if re.search(r"\w\Z", wanted) else ""
    return re.search(f"{before}{re.escape(wanted)}{behind}", stated) is not None
