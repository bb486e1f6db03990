"""Data that every Python has, megabytes of each kind, and one question about each.

    text    the source of the standard library, all files as one string
    JSON    every Unicode character that has a name of its own, as records

To add a kind, add a ``Case`` and its script. The data is the same on every run of one Python.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck.cli.demo_script import Case, NotFound, first_match, numbered_lines, query_result
from coatcheck.cli.failure import CannotRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.cli.demo_script import Arguments, Facts

__all__ = ("FindCharacter", "FindClass", "builtin_cases", "standard_library", "unicode_characters")

_LINES_BEFORE, _LINES_BEHIND = 40, 12
"""Lines read before and after the definition of a class: back to the head of its file, and on through its docstring."""

_NOT_LIBRARY = frozenset({"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"})
_HEAD = re.compile(r"==== (\S+) ====")
_ATTRIBUTE = re.compile(r" {4}(\w+): ")


def builtin_cases() -> Iterator[Case]:
    """Yield the demo's own questions, each with its data, which is read when the question is reached.

    Raises:
        CannotRun: the source of the standard library is not on this machine.

    """
    yield Case(
        title="Text: the source of Python's standard library",
        tool_name="read_standard_library",
        tool_description="Return the source of the standard library: every file with its name above it, as one text.",
        result=standard_library(Path(sysconfig.get_path("stdlib"))),
        script=FindClass("JSONDecodeError"),
    )
    yield Case(
        title="JSON: the characters of Unicode",
        tool_name="list_unicode_characters",
        tool_description="Return every Unicode character with code, name and category, as a JSON list.",
        result=unicode_characters(),
        script=FindCharacter("SNOWMAN"),
    )


def standard_library(folder: Path) -> str:
    """Return every Python file below ``folder`` but its tests, each under a line with its name, sorted by name.

    Raises:
        CannotRun: there is none.

    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if path.is_file())
    library = [name for name in names if _NOT_LIBRARY.isdisjoint(name.split("/"))]
    if not library:
        msg = f"{folder} holds no source of the standard library: show the demo a file of your own with --input FILE"
        raise CannotRun(msg)
    texts = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in library)
    return "\n".join(f"==== {name} ====\n{text}" for name, text in zip(library, texts, strict=True))


def unicode_characters() -> str:
    """Return the records as JSON. Leave out characters that are named by their code alone, such as ideographs."""
    records = [
        {"code": f"U+{code:04X}", "character": chr(code), "name": name, "category": unicodedata.category(chr(code))}
        for code in range(sys.maxunicode + 1)
        if (name := unicodedata.name(chr(code), "")) and not _is_systematic(name, code)
    ]
    return json.dumps(records, ensure_ascii=False)


def _is_systematic(name: str, code: int) -> bool:
    return name.startswith("HANGUL SYLLABLE ") or name.endswith(f"-{code:04X}")


@dataclass(frozen=True, slots=True)
class FindClass:
    """Asks which file of the library defines a class, on which line, and what its docstring lists."""

    name: str

    @property
    def question(self) -> str:
        """What the user asks."""
        return f"Which file and line define the class {self.name}, and which attributes does its docstring list?"

    def first_call(self) -> Arguments:
        """Look for the definition."""
        return {"pattern": rf"^class {self.name}\b", "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Read the lines around it."""
        line = first_match(first).line
        return {"line_range": {"start": max(1, line - _LINES_BEFORE), "end": line + _LINES_BEHIND}}

    def facts(self, first: str, second: str) -> Facts:
        """Return file, line and attributes."""
        wanted, lines = first_match(first).line, dict(numbered_lines(second))
        if wanted not in lines:
            raise NotFound(self.name)
        return _class_facts(list(lines.values()), list(lines).index(wanted))

    def facts_in(self, whole: str) -> Facts:
        """Return the same from the whole text."""
        lines = whole.split("\n")
        definition = re.compile(rf"class {self.name}\b")
        at = next((at for at, line in enumerate(lines) if definition.match(line)), None)
        if at is None:
            raise NotFound(self.name)
        return _class_facts(lines, at)

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        file, line, *attributes = facts
        return f"{file}, line {line}; its docstring lists {', '.join(attributes) or 'none'}."


@dataclass(frozen=True, slots=True)
class FindCharacter:
    """Asks which code a character has, and how many characters share its category."""

    name: str

    @property
    def question(self) -> str:
        """What the user asks."""
        return f"Which code and category does {self.name} have, and how many characters are in that category?"

    def first_call(self) -> Arguments:
        """Look for the name."""
        return {"pattern": f'"{self.name}"', "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Count the records of its category."""
        return {"query": f"length([?category=='{self._record(first)[1]}'])"}

    def facts(self, first: str, second: str) -> Facts:
        """Return code, category and count."""
        return *self._record(first), str(query_result(second))

    def facts_in(self, whole: str) -> Facts:
        """Return the same from all records."""
        records = json.loads(whole)
        found = next((record for record in records if record["name"] == self.name), None)
        if found is None:
            raise NotFound(self.name)
        return found["code"], found["category"], str(sum(one["category"] == found["category"] for one in records))

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        code, category, count = facts
        return f"{self.name} is {code}, in category {category}, which has {int(count):,} characters."

    def _record(self, first: str) -> tuple[str, str]:
        form = rf'"code": "([^"]+)", "character": "[^"]*", "name": "{self.name}", "category": "(\w+)"'
        found = re.search(form, first)
        if found is None:
            raise NotFound(self.name)
        return found[1], found[2]


def _class_facts(lines: list[str], at: int) -> Facts:
    """Return the file, the line in that file and the attributes of the class that is defined at ``lines[at]``."""
    head = next((back for back in range(at, -1, -1) if _HEAD.fullmatch(lines[back])), None)
    if head is None:
        raise NotFound(lines[at])
    attributes = [found[1] for line in lines[at : at + _LINES_BEHIND] if (found := _ATTRIBUTE.match(line))]
    return lines[head].strip("= "), str(at - head), *attributes
