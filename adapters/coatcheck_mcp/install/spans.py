"""Parse JSON with comments into values that know where they are in the text, so that one can be edited in place.

Only reading belongs here. The packages that edit such files in place either have few users or bring a native parser
that refuses the trailing commas that editors allow. What is needed of such a package fits into this file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from coatcheck import InvalidRequest

__all__ = ("Member", "Value", "comments", "parse", "skip")

_MAX_LEVELS = 100
"""The deepest nesting that is read. Clients write about ten levels. Python's own stack ends at several hundred."""

_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.+-])")


@dataclass(frozen=True, slots=True)
class Value:
    """A value, and its place in the text: ``text[start:end]``."""

    start: int
    end: int
    raw: str = field(default="", repr=False)
    """The text of a string, a number or a word; empty for the others."""

    members: tuple[Member, ...] | None = None
    """The members of an object, in order; None for any other value."""

    items: tuple[Value, ...] | None = None
    """The items of an array, in order; None for any other value."""

    @property
    def string(self) -> str | None:
        """The string; None for any other value."""
        return json.loads(self.raw) if self.raw.startswith('"') else None

    @property
    def strings(self) -> list[str] | None:
        """The items of an array of strings; None for any other value."""
        found = [item.string for item in self.items or ()]
        strings = [text for text in found if text is not None]
        return strings if self.items is not None and len(strings) == len(found) else None

    def member(self, name: str) -> Member | None:
        """Return the member of this name; None if there is none.

        Raises:
            InvalidRequest: the name is there more than once; clients differ in which one they take.

        """
        found = [member for member in self.members or () if member.name == name]
        if len(found) > 1:
            msg = f"{name!r} is there {len(found)} times; keep one of them"
            raise InvalidRequest(msg)
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and its value."""

    key: Value
    value: Value
    name: str


def parse(text: str) -> Value:
    """Parse a whole text: JSON, which may have comments, and commas before closing brackets.

    Raises:
        InvalidRequest: it is not such JSON. The message begins with the number of the line.

    """
    scanner = _Scanner(text)
    start = skip(text, 1 if text.startswith("\ufeff") else 0)
    value = scanner.value(start, level=0)
    if skip(text, value.end) < len(text):
        raise scanner.wrong(skip(text, value.end), "nothing more should come here")
    return value


def skip(text: str, at: int) -> int:
    """Return where the next token begins: after blanks, line ends and comments."""
    found = _SKIPPED.match(text, at)
    return found.end() if found else at


def comments(*gaps: str) -> str:
    """Return what is around a removed part, without its commas; an empty string if only blanks are left."""
    left = ""
    for gap in gaps:
        comma = skip(gap, 0)
        left += gap[:comma] + gap[comma + 1 :]
    return left if left.strip() else ""


@dataclass(frozen=True, slots=True)
class _Scanner:
    text: str

    def wrong(self, at: int, what: str) -> InvalidRequest:
        return InvalidRequest(f"{1 + self.text.count(chr(10), 0, at)}: this is not JSON: {what}")

    def value(self, at: int, *, level: int) -> Value:
        if level > _MAX_LEVELS:
            raise self.wrong(at, f"more than {_MAX_LEVELS} levels")
        if self.text.startswith("{", at):
            return self._object(at, level + 1)
        if self.text.startswith("[", at):
            return self._array(at, level + 1)
        found = _STRING.match(self.text, at) or _WORD.match(self.text, at)
        if found is None:
            raise self.wrong(at, "a value should come here")
        return Value(at, found.end(), found[0])

    def _object(self, start: int, level: int) -> Value:
        members: list[Member] = []
        at = skip(self.text, start + 1)
        while not self.text.startswith("}", at):
            found = _STRING.match(self.text, at)
            if found is None:
                raise self.wrong(at, "a key in double quotes should come here")
            colon = skip(self.text, found.end())
            if not self.text.startswith(":", colon):
                raise self.wrong(colon, "a colon should come here")
            value = self.value(skip(self.text, colon + 1), level=level)
            members.append(Member(Value(at, found.end(), found[0]), value, json.loads(found[0])))
            at = self._after(value, "}")
        return Value(start, at + 1, members=tuple(members))

    def _array(self, start: int, level: int) -> Value:
        items: list[Value] = []
        at = skip(self.text, start + 1)
        while not self.text.startswith("]", at):
            items.append(self.value(at, level=level))
            at = self._after(items[-1], "]")
        return Value(start, at + 1, items=tuple(items))

    def _after(self, value: Value, closing: str) -> int:
        """Return where the next token begins: after a comma, or at the closing bracket."""
        at = skip(self.text, value.end)
        if self.text.startswith(",", at):
            return skip(self.text, at + 1)
        if self.text.startswith(closing, at):
            return at
        raise self.wrong(at, f"a comma or {closing} should come here")
