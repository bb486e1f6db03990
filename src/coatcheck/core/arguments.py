"""The arguments of the retrieval tool: how the model sees them, how they are parsed, which exclude each other.

The table ``ARGUMENTS`` defines the JSON schema, the parsed request, the options of ``coatcheck get`` and the calls that
a notice suggests. Tests compare it with what Python code must repeat by hand, such as the signature of
``Offloader.retrieve``. To add an argument, add a row here and a field of ``Request`` with the code that uses it, then
whatever the tests name.

Models send numbers as strings, empty strings for arguments that they omit, and ranges in half a dozen shapes. The
parsers here accept or refuse all of that; the rest of the package trusts a ``Request``. Nothing here looks at content.

A refusal, here or in ``reading.wording``, says what is wrong, then a colon or a full stop, then what to do instead.
Only after the colon or full stop may it name an argument that the model did not give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coatcheck.core.checks import is_number
from coatcheck.core.errors import LONGEST_NUMBER, InvalidRequest, describe_value
from coatcheck.core.forks import loading

__all__ = (
    "ARGUMENTS",
    "DEFAULT_CONTEXT_LINES",
    "LAST_LINE",
    "LISTING",
    "MAX_CONTEXT_LINES",
    "MAX_SELECTOR_CHARACTERS",
    "OPTIONS",
    "PROPOSED",
    "RANGE_FORMS",
    "Argument",
    "Exclusion",
    "Request",
    "asks_for_list",
    "parse_request",
)

DEFAULT_CONTEXT_LINES = 5
"""Lines around a match: as many as Strands' own tool shows, which models may know."""

MAX_CONTEXT_LINES = 100
"""Lines. A larger number is clamped: context is for judging a match, and ``line_range`` reads further."""

MAX_SELECTOR_CHARACTERS = 1_000
"""The most characters of a pattern or query. People write at most about 200; the rest leaves room for generated
alternatives."""

LAST_LINE = 10**LONGEST_NUMBER
"""Stands for the end of an open line range. Larger than any accepted number."""

LISTING = "*"
"""The reference that asks for the list of what is stored. A call without a reference asks for it too."""

RANGE_FORMS = '"10-20", "10-" or "10"'
"""The forms of a line range that error messages suggest. The parser accepts more."""

_INTEGER = re.compile(r"-?[0-9]{1,15}")
_RANGE = re.compile(r"([0-9]{1,15})(?:\s*([-:])\s*([0-9]{1,15})?)?|:\s*([0-9]{1,15})")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3}){1,4}(?=\s*[-:])|(?<=[-:])\s*[0-9]{1,3}(?:,[0-9]{3}){1,4}")
"""A number with thousands separators, as placeholders write it. Matched only next to a dash or colon, where it cannot
be two numbers. It has at most 15 digits, like any other: unbounded, a long one would take quadratic time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """The arguments that another one excludes, and what the model reads if it gives both."""

    others: tuple[str, ...]
    """Arguments that are refused."""

    unless: str | None = None
    """An argument that lifts the exclusion if it is given too."""

    message: str
    """What the model reads: which arguments conflict, then what to give instead. ``{others}`` stands for the given ones
    of ``others``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of the retrieval tool."""

    name: str
    """Its name in the schema and in ``Offloader.retrieve``."""

    json_type: str
    """Its type in the JSON schema. ``parse`` accepts more."""

    parse: Callable[[str, object], object]
    """Takes the argument's name, for messages, and the value that a model sent. Returns the value for ``Request``, or
    raises ``InvalidRequest``."""

    described: str | None = None
    """Its description in the schema; None if the name says enough. Every request pays for these words."""

    default: object = None
    """Its default in ``Offloader.retrieve``."""

    option: str | None = None
    """Its option in ``coatcheck get``; None for the reference, which is positional there."""

    metavar: str | None = None
    """Stands for the option's value in help texts and in notices for a shell."""

    selects: bool = True
    """Whether it selects a part of the content by itself. If not, it only changes how a part is shown, and alone it
    requests the whole content. (Strands reads ``context_lines`` alone as the first lines; its adapter turns that into a
    ``line_range`` before the core sees it.)"""

    proposed: bool = False
    """Whether placeholders name it, as do messages that refuse a query. Each name costs tokens in every placeholder,
    and the schema lists all arguments anyway."""

    excludes: Exclusion | None = None
    """The arguments that it excludes. If two exclude each other, only one row says so."""

    @property
    def schema(self) -> dict[str, str]:
        """Its JSON schema, as a new dict for each caller."""
        return {"type": self.json_type, **({} if self.described is None else {"description": self.described})}


def _unread(_: str, value: object) -> object:
    """Return ``value`` unchanged: ``references`` decides what a reference may look like."""
    return value


def _string(name: str, value: object) -> str:
    if is_number(value) and abs(value) < LAST_LINE:
        value = str(value)  # a model that searches for 404 may omit the quotes
    if not isinstance(value, str):
        msg = f"{name} must be a string, not {describe_value(value)}"
        raise InvalidRequest(msg)
    if len(value) > MAX_SELECTOR_CHARACTERS:
        msg = f"{name} has {len(value):,} characters; at most {MAX_SELECTOR_CHARACTERS:,} are accepted"
        raise InvalidRequest(msg)
    return value


def _context_lines(name: str, value: object) -> int:
    lines = _integer(name, value)
    if lines is None:
        return DEFAULT_CONTEXT_LINES
    return max(0, min(lines, MAX_CONTEXT_LINES))


def _line_range(name: str, value: object) -> tuple[int, int] | None:
    ends = _range_ends(name, value)
    if ends is None:
        return None
    # "3-1" has no `start` and no `end`, so a message about it must not name them.
    first, last = (
        (f"the first line of {name}", "the last") if isinstance(value, str) else (f"{name}.start", f"{name}.end")
    )
    start, end = _integer(first, ends[0]), _integer(last, ends[1])
    if start is None and end is None:
        return None
    start = 1 if start is None else start
    if start < 1:
        msg = f"{first} ({start}) must be >= 1."
        raise InvalidRequest(msg)
    if end is not None and end < start:
        msg = f"{first} ({start}) must be <= {last} ({end})."
        raise InvalidRequest(msg)
    return start, LAST_LINE if end is None else end


def _range_ends(name: str, value: object) -> tuple[object, object] | None:
    """Return both ends of a range in any accepted shape, unchecked; None if no range was given."""
    if isinstance(value, str) and len(value) <= MAX_SELECTOR_CHARACTERS:
        value = value.strip()
        if not value:
            return None
        found = _RANGE.fullmatch(_GROUPED.sub(lambda number: number[0].replace(",", ""), value))
        if found is not None:
            start, dash, end, upto = found.groups()
            return (start, end if dash else start) if upto is None else (None, upto)
        if value[0] in "{[":
            with loading:
                import orjson  # noqa: PLC0415 - see json_text in blocks
            try:  # noqa: SIM105 - pure modules import no contextlib
                value = orjson.loads(value)
            except ValueError:
                pass  # refused below
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value
    if isinstance(value, Mapping) and value.keys() <= {"start", "end"}:
        return value.get("start"), value.get("end")
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value) == 2:  # noqa: PLR2004 - a pair
        return value[0], value[1]
    msg = f"{name} must look like {RANGE_FORMS}, not {describe_value(value)}"
    raise InvalidRequest(msg)


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
        return int(value)  # JSON does not distinguish 10 from 10.0
    msg = f"{name} must be a whole number, not {describe_value(value)}"
    raise InvalidRequest(msg)


ARGUMENTS = (
    Argument(name="reference", json_type="string", parse=_unread),
    Argument(
        name="pattern",
        json_type="string",
        described="RE2 regex",
        parse=_string,
        option="--pattern",
        metavar="REGEX",
        proposed=True,
    ),
    # An object of two integers is accepted too, but as the schema's type it would cost 25 more tokens in every request.
    Argument(
        name="line_range",
        json_type="string",
        described="Such as 10-20",
        parse=_line_range,
        option="--lines",
        metavar="10:20",
        proposed=True,
    ),
    Argument(
        name="context_lines",
        json_type="integer",
        parse=_context_lines,
        default=DEFAULT_CONTEXT_LINES,
        option="--context-lines",
        metavar="N",
        selects=False,
    ),
    Argument(
        name="query",
        json_type="string",
        described="JMESPath, such as items[?price > `9`].name",
        parse=_string,
        option="--query",
        metavar="JMESPATH",
        proposed=True,
        excludes=Exclusion(
            others=("pattern", "line_range"),
            message="query cannot be combined with {others}: give either query or {others}",
        ),
    ),
    Argument(
        name="offset",
        json_type="integer",
        described="Characters; negative: from the end",
        parse=_integer,
        option="--offset",
        metavar="N",
        proposed=True,
        excludes=Exclusion(
            others=("line_range",),
            unless="pattern",
            message="offset counts characters and line_range counts lines: give one of the two, or add a pattern",
        ),
    ),
)
"""All arguments, in schema order."""

OPTIONS = {each.name: each for each in ARGUMENTS if each.option is not None}
"""All arguments but the reference: those that select a part, and those that say how it is shown."""

PROPOSED = {name: f"{each.option}={each.metavar}" for name, each in OPTIONS.items() if each.proposed}
"""The arguments that placeholders propose, each with its form in a shell, such as ``--pattern=REGEX``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Validated options. No two of them exclude each other."""

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
        """Whether the request is for the whole content, from its start."""
        return not any(getattr(self, name) for name, each in OPTIONS.items() if each.selects)

    def given(self) -> dict[str, object]:
        """Return the options that differ from their defaults."""
        return {name: value for name, each in OPTIONS.items() if (value := getattr(self, name)) != each.default}


def asks_for_list(reference: object) -> bool:
    """Return whether a call names no content, and so asks for the list of what the scope holds."""
    return reference is None or (isinstance(reference, str) and reference.strip(" \t\r\n\"'`") in {"", LISTING})


def parse_request(**options: object) -> Request:
    """Parse a model's arguments into a ``Request``. None, an empty string and a default mean "not given".

    Raises:
        InvalidRequest: a value cannot be understood, or two arguments exclude each other. The message says what is
            accepted.

    """
    given = {name: value for name, value in options.items() if value not in (None, "", OPTIONS[name].default)}
    values: dict[str, Any] = {name: OPTIONS[name].parse(name, value) for name, value in given.items()}
    asked = {name for name, value in values.items() if value}  # an offset of 0 or a range without ends does not count
    for name, each in OPTIONS.items():
        excluded = each.excludes
        if excluded is None or name not in asked or excluded.unless in asked:
            continue
        others = [other for other in excluded.others if other in asked]
        if others:
            raise InvalidRequest(excluded.message.format(others=" and ".join(others)))
    return Request(**values)
