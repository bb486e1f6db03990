"""Read a TOML file into tables that know their lines, so that every complaint about a value names file, line and key.

Only that belongs here; which keys there are, and what they mean, is in ``config``.
"""

from __future__ import annotations

import re
import stat
import sys
from bisect import bisect_left
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from coatcheck import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ("Mistake", "Table", "dotted", "read_tables", "shown")

_MAX_BYTES = 100_000
"""People write a few hundred bytes. A larger file is some other file."""

_LONGEST_VALUE = 60
"""Characters. A message quotes at most this much of a value."""

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_HEAD = re.compile(r"\s*\[(tools|servers)\.([^]\"']+)\]")
"""The header of a table whose name has no quotes."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Mistake(InvalidRequest):
    """A refused value, key or table of a file."""

    def __init__(self, message: str, *, line: int, keys: tuple[str, ...], what: str) -> None:
        """Take the message, the line and keys of what is refused, and what is wrong with it."""
        super().__init__(message)
        self.line = line
        self.keys = keys
        self.what = what


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a file, and its place there."""

    file: Path
    text: str
    keys: tuple[str, ...]
    """The keys that lead to this table; empty for the file itself."""

    values: Mapping[str, Any]

    def refuse(self, key: str | None, what: str) -> NoReturn:
        """Raise ``complaint(key, what)``.

        Raises:
            Mistake: always.

        """
        keys = self._keys_to(key)
        raise Mistake(self.complaint(key, what), line=_line_of(self.text, keys), keys=keys, what=what) from None

    def within(self, key: str, values: Mapping[str, Any]) -> Table:
        """Return the table ``key`` within this one."""
        return replace(self, keys=(*self.keys, key), values=values)

    def without(self, keys: tuple[str, ...]) -> Table:
        """Return the table without what ``keys`` lead to from here."""
        key, *deeper = keys
        if deeper:
            inner = self.within(key, self.values[key]).without(tuple(deeper))
            return replace(self, values={**self.values, key: inner.values})
        return replace(self, values={name: value for name, value in self.values.items() if name != key})

    def complaint(self, key: str | None, what: str) -> str:
        """Return file, line and key, and what is wrong with the key, or with the table itself if ``key`` is None."""
        keys = self._keys_to(key)
        name = f"[{dotted(keys)}]" if key is None else dotted(keys)
        return f"{self.file}:{_line_of(self.text, keys)}: {name} {what}"

    def _keys_to(self, key: str | None) -> tuple[str, ...]:
        return self.keys if key is None else (*self.keys, key)

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Refuse a key that nobody reads: a typo would have no effect, and nobody would notice.

        Raises:
            InvalidRequest: there is such a key.

        """
        for key in self.values:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
                self.refuse(key, f"is unknown; {hint}")

    def refuse_dots(self) -> None:
        """Refuse a table within this one: its name has a dot, which TOML takes for nesting unless there are quotes.

        Raises:
            InvalidRequest: there is such a table.

        """
        for key, value in self.values.items():
            if isinstance(value, dict):
                names, values = [*self.keys[1:], key], value
                while len(values) == 1 and isinstance(inner := next(iter(values.values())), dict):
                    names, values = [*names, next(iter(values))], inner
                self.refuse(key, f"has a dot in its name, which needs quotes: {_quoted(self.keys[0], '.'.join(names))}")

    def tables(self, key: str) -> Mapping[str, Table]:
        """Return the tables within the table ``key``, by name.

        Raises:
            InvalidRequest: one of them is not a table.

        """
        found = self.values.get(key, {})
        if not isinstance(found, dict):
            self.refuse(key, f"must be a table for each name, as in [{key}.NAME], not {shown(found)}")
        table = self.within(key, found)
        for name, values in found.items():
            if not isinstance(values, dict):
                table.refuse(name, f"must be a table, as in [{dotted((key, name))}], not {shown(values)}")
        return {name: table.within(name, values) for name, values in found.items()}

    def string(self, key: str) -> str | None:
        """Return a ``str`` that is not empty; None if there is no such key.

        Raises:
            InvalidRequest: the value is something else.

        """
        value = self.values.get(key)
        if value is not None and not (isinstance(value, str) and value):
            self.refuse(key, f"must be a non-empty string, not {shown(value)}")
        return value

    def strings(self, key: str) -> Mapping[str, str]:
        """Return a table of strings; an empty one if there is no such key.

        Raises:
            InvalidRequest: the value is something else.

        """
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            self.refuse(key, f'must be a table of strings, as in {{NAME = "value"}}, not {shown(values)}')
        for name, value in values.items():
            if not isinstance(value, str):
                self.within(key, values).refuse(name, f"must be a string, not {shown(value)}")
        return values

    def array(self, key: str) -> tuple[str, ...]:
        """Return an array of strings; an empty one if there is no such key.

        Raises:
            InvalidRequest: the value is something else.

        """
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            other = "an array of other values" if isinstance(values, list) else shown(values)
            self.refuse(key, f'must be an array of strings, as in ["--port", "8080"], not {other}')
        return tuple(values)


def read_tables(file: Path) -> Table:
    """Read a whole file.

    Raises:
        InvalidRequest: it cannot be read, or is not TOML. The message names file and line.

    """
    text = _read(file)
    try:
        return Table(file, text, (), tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else 1 + text.rstrip().count("\n")
        head = _HEAD.match(text.split("\n")[line - 1])
        hint = f"; a name with such characters needs quotes: {_quoted(head[1], head[2])}" if head else ""
        msg = f"{file}:{line}: this is not TOML: {_PLACE.sub('', str(error))}{hint}"
        raise InvalidRequest(msg) from None
    except RecursionError:
        msg = f"{file}:1: tables or arrays are nested too deep"
        raise InvalidRequest(msg) from None
    except ValueError:  # Python does not read an integer of thousands of digits
        msg = f"{file}:1: a number has too many digits"
        raise InvalidRequest(msg) from None


def _quoted(key: str, name: str) -> str:
    return f'[{key}."{name}"]'


def dotted(keys: Iterable[str]) -> str:
    """Return keys as one dotted name in TOML."""
    return ".".join(key if _BARE.fullmatch(key) else f'"{key}"' for key in keys)


def shown(value: object) -> str:
    """Return a refused value as a message shows it: in TOML's words, and never long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "an array"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _read(file: Path) -> str:
    try:
        found = file.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):  # a pipe would wait for a writer
            msg = f"{file} is not a regular file; name the file of your settings, or none for the defaults"
            raise InvalidRequest(msg)
        if found.st_size > _MAX_BYTES:
            msg = f"{file} has {found.st_size:,} bytes, more than {_MAX_BYTES:,}: it is not a coatcheck.toml"
            raise InvalidRequest(msg)
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}; name the file of your settings, or none for the defaults"
        raise InvalidRequest(msg) from None
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        msg = f"{file}:{line}: this is not UTF-8; save the file as UTF-8"
        raise InvalidRequest(msg) from None


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """Return the line on which a key is set, or a table begins.

    The parser does not give lines, so parse only the first lines of the file, which are valid TOML unless they end
    within a value. The key is on the last of the fewest lines that have it.
    """
    lines = text.split("\n")

    def is_set_by(count: int) -> bool:
        whole = next(values for end in range(count, len(lines) + 1) if (values := _parsed(lines[:end])) is not None)
        return _holds(whole, keys)

    return 1 + bisect_left(range(1, len(lines)), x=True, key=is_set_by)


def _parsed(lines: list[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _holds(values: object, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True
