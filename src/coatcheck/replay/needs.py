"""What an agent later used of its tool results: the spans of each result that a later turn repeats.

A span is an identifier, a number, a name or a quoted string. A result supplied a span if the result contains it and
nothing before the result does. The agent needed it if a later turn wrote it, in its words or in the arguments of a
call. Numbers of one or two digits do not count, because they match by chance. Neither do words that may begin any
sentence, which previews do not take for names either.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.blocks import JsonBlock, TextBlock, json_text
from coatcheck.core.preview.names import SENTENCE_WORDS
from coatcheck.replay.conversation import Result, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.replay.conversation import Call, Part

__all__ = ("Need", "find_needs", "holds", "text_of")

_MIN_CHARACTERS = 3
_MAX_CHARACTERS = 80

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_IDENTIFIER = r"[A-Za-z_./~](?:[^\W\d_]|[~+])*[\d_./@:-][\w./~@:+-]*\w"
"""There is only one way to reach the first character that plain words lack; otherwise this would take cubic time."""

_DIGIT_FIRST = r"(?=[\w./~@:+-]{5})\d+(?:[^\W\d_]+[\d./@:-]|[_/@:-]\w|\.\d+\.\w)[\w./~@:+-]*\w"
"""An identifier that begins with a digit: a UUID, a commit hash, an address, a date. A number with a unit is a number.
Anything of four characters or fewer, such as ``9:30``, matches by chance like short numbers."""

_NAME = r"[A-Z]\w*[^\W\d_]"
_QUOTED = r"\"(\w[^\"\n]{1,78}\w)\"|'(\w[^'\n]{1,78}\w)'|`(\w[^`\n]{1,78}\w)`"
"""The content begins and ends with a letter or digit, unlike the text between two quoted strings."""

_TOO_LONG = re.compile(r"[\w./~@:+-]{200,}")
"""Not a span: a ruler such as ``......``, or encoded data, for which ``_SPAN`` would take quadratic time."""

_WORD = re.compile(r"\w+")
"""A word, of which every span has at least one. Only the few parts that contain that word are searched for the span:
searching all parts for every span would take quadratic time."""

_SPAN = re.compile(rf"{_QUOTED}|({_IDENTIFIER})|({_DIGIT_FIRST})|({_NAME})|({_NUMBER})")


@dataclass(frozen=True, slots=True)
class Need:
    """A span that the agent took from a result."""

    span: str
    turn: int
    """Position, among the conversation's parts, of the first turn that wrote it."""


def find_needs(parts: Sequence[Part]) -> dict[int, tuple[Need, ...]]:
    """Return what was needed of each result, by the result's position. Leave out results that were not needed."""
    texts = [text_of(part) for part in parts]
    written: dict[str, list[int]] = {}
    for position, part in enumerate(parts):
        if isinstance(part, Turn):
            for span in dict.fromkeys(_spans(texts[position])):
                written.setdefault(span, []).append(position)
    words = {span: max(_WORD.findall(span), key=len) for span in written}
    places: dict[str, list[int]] = {word: [] for word in words.values()}
    for position, text in enumerate(texts):
        for word in {each for found in _WORD.finditer(text) if (each := found[0]) in places}:
            places[word].append(position)
    found: dict[int, list[Need]] = {}
    for span, turns in written.items():
        before = (position for position in places[words[span]] if position < turns[-1])
        first = next((position for position in before if holds(texts[position], span)), None)
        if first is not None and isinstance(parts[first], Result):
            turn = next(turn for turn in turns if turn > first)
            found.setdefault(first, []).append(Need(span, turn))
    return {position: tuple(needs) for position, needs in found.items()}


def holds(text: str, span: str) -> bool:
    """Return whether ``text`` contains ``span`` as a whole word."""
    # Most strings do not contain it, and a plain search finds that many times faster.
    return span in text and re.search(rf"(?<!\w){re.escape(span)}(?!\w)", text) is not None


def text_of(part: Part) -> str:
    """Return the text of a part: its blocks, and the argument values of its calls."""
    if isinstance(part, Result):
        return "\n".join(map(_text_of_block, part.result.blocks))
    if isinstance(part, Turn):
        return "\n".join((*map(_text_of_block, part.said), *(value for call in part.calls for value in _values(call))))
    return "\n".join(map(_text_of_block, part.blocks))


def _text_of_block(block: Block) -> str:
    match block:
        case TextBlock():
            return block.text
        case JsonBlock():
            return json_text(block.value)
        case _:
            return ""


def _values(call: Call) -> list[str]:
    try:
        arguments = json.loads(call.arguments)
        return [str(value) for value in arguments.values()] if isinstance(arguments, dict) else [str(arguments)]
    except (ValueError, RecursionError):
        return [call.arguments]


def _spans(text: str) -> Iterator[str]:
    for found in _SPAN.finditer(_TOO_LONG.sub(" ", text)):
        span = next(group for group in found.groups() if group).rstrip(".:,-")
        if _MIN_CHARACTERS <= len(span) <= _MAX_CHARACTERS and span.lower() not in SENTENCE_WORDS:
            yield span
            if "," in span and span.replace(",", "").isdigit():
                yield span.replace(",", "")
