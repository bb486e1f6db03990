"""The model's arguments become one validated request.

Models send numbers as text, empty strings for what they leave out, and ranges in half a dozen shapes. All of that is
accepted or refused here, once; the rest of the package trusts a ``Request``. Nothing here looks at content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import DEFAULT_CONTEXT_LINES

__all__ = ("DEFAULT_CONTEXT_LINES", "LAST_LINE", "MAX_CONTEXT_LINES", "RANGE_FORMS", "Request", "parse_request")

MAX_CONTEXT_LINES = 100
"""More is clamped to this: context is there to judge a match by; ``line_range`` reads on."""

MAX_SELECTOR_CHARACTERS = 1_000
"""The longest pattern or query. People write at most some 200; the rest is room for generated alternatives."""

LAST_LINE = 10**15
"""Stands for "to the end" in a line range. Larger than any number that is accepted."""

RANGE_FORMS = '"10-20", "10-" or "10"'
"""The line ranges that are named where another is refused: those of the schema, not all that are accepted."""

_INTEGER = re.compile(r"-?[0-9]{1,15}")
_RANGE = re.compile(r"([0-9]{1,15})(?:\s*([-:])\s*([0-9]{1,15})?)?|:\s*([0-9]{1,15})")
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Validated selectors. At most one of ``query`` and (``pattern``, ``line_range``) is given."""

    pattern: str | None = None
    """A regular expression, not yet compiled."""

    line_range: tuple[int, int] | None = None
    """First and last line, both included, from 1; the last may be ``LAST_LINE``."""

    context_lines: int = DEFAULT_CONTEXT_LINES
    """Lines shown around each match."""

    query: str | None = None
    """A JMESPath expression, not yet parsed."""

    offset: int | None = None
    """Characters to skip; negative counts from the end."""

    @property
    def selects_nothing(self) -> bool:
        """Whether the content as a whole is asked for, from its start on."""
        return self.pattern is None and self.line_range is None and self.query is None and not self.offset


def parse_request(
    *,
    pattern: object = None,
    line_range: object = None,
    context_lines: object = DEFAULT_CONTEXT_LINES,
    query: object = None,
    offset: object = None,
) -> Request:
    """Return the request that the model's arguments mean. None and the empty text stand for "not given".

    Raises:
        InvalidRequest: an argument has no meaning, or two exclude each other. The message says what is accepted.

    """
    request = Request(
        pattern=_selector("pattern", pattern),
        line_range=_line_range(line_range),
        context_lines=_context_lines(context_lines),
        query=_selector("query", query),
        offset=_integer("offset", offset),
    )
    if request.query is not None and (request.pattern is not None or request.line_range is not None):
        msg = "query cannot be combined with pattern or line_range: give either query or those two"
        raise InvalidRequest(msg)
    if request.offset and request.line_range is not None and request.pattern is None:
        msg = "offset counts characters and line_range counts lines: give one of the two, or add a pattern"
        raise InvalidRequest(msg)
    return request


def _selector(name: str, value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LAST_LINE:
        value = str(value)  # a model that searches for 404 may leave the quotes out
    if not isinstance(value, str):
        msg = f"{name} must be a string, not {_shown(value)}"
        raise InvalidRequest(msg)
    if len(value) > MAX_SELECTOR_CHARACTERS:
        msg = f"{name} has {len(value):,} characters; at most {MAX_SELECTOR_CHARACTERS:,} are accepted"
        raise InvalidRequest(msg)
    return value


def _context_lines(value: object) -> int:
    lines = _integer("context_lines", value)
    if lines is None:
        return DEFAULT_CONTEXT_LINES
    return max(0, min(lines, MAX_CONTEXT_LINES))


def _line_range(value: object) -> tuple[int, int] | None:
    ends = _range_ends(value)
    if ends is None:
        return None
    start, end = _integer("line_range.start", ends[0]), _integer("line_range.end", ends[1])
    if start is None and end is None:
        return None
    start = 1 if start is None else start
    if start < 1:
        msg = f"line_range.start ({start}) must be >= 1."
        raise InvalidRequest(msg)
    if end is not None and end < start:
        msg = f"line_range.start ({start}) must be <= line_range.end ({end})."
        raise InvalidRequest(msg)
    return start, LAST_LINE if end is None else end


def _range_ends(value: object) -> tuple[object, object] | None:
    """Return both ends of a range in any of its shapes, not yet checked; None where no range was given."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value
    if isinstance(value, str):
        value = _range_text(value.strip())
    if value is None:
        return None
    if isinstance(value, Mapping) and value.keys() <= {"start", "end"}:
        return value.get("start"), value.get("end")
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value) == 2:  # noqa: PLR2004 - a pair
        return value[0], value[1]
    msg = f"line_range must look like {RANGE_FORMS}, not {_shown(value)}"
    raise InvalidRequest(msg)


def _range_text(text: str) -> object:
    """Return the value that a range given as text stands for, or ``text`` itself if it stands for none."""
    if not text:
        return None
    if text[0] in "{[":
        try:
            return orjson.loads(text)
        except ValueError:
            return text
    found = _RANGE.fullmatch(text)
    if found is None:
        return text
    start, dash, end, upto = found.groups()
    if upto is not None:
        return None, upto
    return start, end if dash else start


def _integer(name: str, value: object) -> int | None:
    if isinstance(value, str):
        value = value.strip()
        if not value:
            return None
        if _INTEGER.fullmatch(value):
            return int(value)
    elif value is None:
        return None
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < LAST_LINE:
        return value
    elif isinstance(value, float) and value.is_integer() and abs(value) < LAST_LINE:
        return int(value)  # JSON does not tell 10 from 10.0
    msg = f"{name} must be a whole number, not {_shown(value)}"
    raise InvalidRequest(msg)


def _shown(value: object) -> str:
    """Return a short form of a refused value. Python refuses to print integers beyond 4,300 digits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= LAST_LINE:
        return "a number of more than 15 digits"
    if isinstance(value, (str, int, float)):
        text = repr(value)
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return type(value).__name__
