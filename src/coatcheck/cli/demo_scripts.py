"""What the demo asks, and how its scripted model finds the answer: one script for each kind of data.

A script is told what to look for and never what the answer is. It goes from what one retrieval returned to the next, and
takes the facts from the text that it got. ``facts_in`` takes the same facts from the whole data, without any offloading:
that is what an answer is checked against. Nothing here runs a model.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Protocol, TypeAlias

__all__ = (
    "Arguments",
    "Facts",
    "FindCharacter",
    "FindClass",
    "FindRecord",
    "FindWord",
    "NotFound",
    "Script",
    "contains",
    "file_heading",
    "simple_facts",
)

Arguments: TypeAlias = dict[str, object]
"""Arguments of a call of the retrieval tool, beside the reference."""

Facts: TypeAlias = tuple[str, ...]
"""What a right answer contains, each as it stands in the data."""

LINES_BEFORE, LINES_BEHIND = 40, 12
"""Read around a class: back to the head of its file, and on through its docstring."""

AROUND = 20
"""Characters quoted on both sides of a word. Search shows at least 100 of a long line."""

MOST_FACTS = 5
LONGEST_FACT = 40

_MATCH = re.compile(r"^> *([0-9]+)(?: \[characters ([0-9,]+)-[0-9,]+\])?\| (.*)$", re.MULTILINE)
_LINE = re.compile(r"^[ >] *([0-9]+)\| (.*)$", re.MULTILINE)
_FILE = re.compile(r"==== (\S+) ====")
_ATTRIBUTE = re.compile(r" {4}(\w+): ")
_RESULT = re.compile(r"^\[Result of query .*?\]\n(.*)\n\[End of result\]$", re.DOTALL | re.MULTILINE)


class NotFound(LookupError):
    """The text does not hold what the script looks for."""


class Script(Protocol):
    """Asks one question and knows how to go about it."""

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


def contains(answer: str, fact: str) -> bool:
    """Return whether an answer states a fact: as a whole word, however its blanks and its thousands are written."""
    stated, wanted = (" ".join(re.sub(r"(?<=\d),(?=\d{3})", "", text).split()) for text in (answer, fact))
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)|^{re.escape(wanted)}$", stated) is not None


def file_heading(name: str) -> str:
    """Return the line that stands above a file's content where many files make one text."""
    return f"==== {name} ===="


@dataclass(frozen=True, slots=True)
class FindClass:
    """Which file of a text of many Python files defines a class, on which line, and what its docstring lists."""

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
        line = int(_first_match(first)[1])
        return {"line_range": {"start": max(1, line - LINES_BEFORE), "end": line + LINES_BEHIND}}

    def facts(self, first: str, second: str) -> Facts:
        """Return file, line and attributes."""
        numbered = [(int(found[1]), found[2]) for found in _LINE.finditer(second)]
        wanted = int(_first_match(first)[1])
        at = next((at for at, (line, _) in enumerate(numbered) if line == wanted), None)
        return _class_facts([text for _, text in numbered], at)

    def facts_in(self, whole: str) -> Facts:
        """Return the same from the whole text."""
        lines = whole.split("\n")
        definition = re.compile(rf"class {self.name}\b")
        return _class_facts(lines, next((at for at, line in enumerate(lines) if definition.match(line)), None))

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        file, line, *attributes = facts
        return f"{file}, line {line}. Its docstring lists {', '.join(attributes)}."


@dataclass(frozen=True, slots=True)
class FindCharacter:
    """Which code a Unicode character has, and how many characters share its category."""

    name: str

    @property
    def question(self) -> str:
        """What the user asks."""
        return f"Which code and category has the character {self.name}, and how many characters are in that category?"

    def first_call(self) -> Arguments:
        """Look for the name."""
        return {"pattern": f'"{self.name}"', "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Count the records of its category."""
        return {"query": f"length([?category=='{self._record(first)[1]}'])"}

    def facts(self, first: str, second: str) -> Facts:
        """Return code, category and count."""
        code, category = self._record(first)
        return code, category, str(_query_result(second))

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
        return f"{self.name} is {code} in category {category}, which has {int(count):,} characters."

    def _record(self, first: str) -> tuple[str, str]:
        around = rf'"code": "([^"]+)", "character": "[^"]*", "name": "{self.name}", "category": "(\w+)"'
        found = re.search(around, first)
        if found is None:
            raise NotFound(self.name)
        return found[1], found[2]


@dataclass(frozen=True, slots=True)
class FindWord:
    """On which line of any text a word first stands, and what stands around it."""

    word: str

    @property
    def question(self) -> str:
        """What the user asks."""
        return f'On which line does "{self.word}" first stand, and what stands around it on that line?'

    def first_call(self) -> Arguments:
        """Look for the word."""
        return {"pattern": re.escape(self.word), "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Read its line, or where that is long the characters around the word."""
        found = _first_match(first)
        if found[2]:
            return {"offset": int(found[2].replace(",", ""))}
        return {"line_range": {"start": int(found[1]), "end": int(found[1]) + 2}}

    def facts(self, first: str, second: str) -> Facts:
        """Return the line's number and the word with what is around it."""
        found = _first_match(first)
        if found[2]:
            return found[1], self._quote(second.partition("\n")[2].rpartition("\n")[0])
        line = next((line[2] for line in _LINE.finditer(second) if line[1] == found[1]), "")
        return found[1], self._quote(line)

    def facts_in(self, whole: str) -> Facts:
        """Return the same from the whole text."""
        quote = self._quote(whole)
        return str(whole.count("\n", 0, whole.index(self.word)) + 1), quote

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        line, quote = facts
        return f"On line {int(line):,}: {quote}"

    def _quote(self, text: str) -> str:
        at = text.find(self.word)
        if at < 0:
            raise NotFound(self.word)
        end = at + len(self.word)
        before, after = text[max(0, at - AROUND) : at], text[end : end + AROUND]
        return " ".join(f"{before.rpartition(chr(10))[2]}{self.word}{after.partition(chr(10))[0]}".split())


@dataclass(frozen=True, slots=True)
class FindRecord:
    """Which record of a JSON list holds a value, and what else it holds. The model learns the field by looking."""

    value: str
    """A value that stands once in the data; letters, digits and blanks only, so that it needs no escapes."""

    under: str = ""
    """The key of the list, or nothing where the list is the whole."""

    @property
    def question(self) -> str:
        """What the user asks."""
        where = f' of "{self.under}"' if self.under else ""
        return f'What else does the record{where} hold in which "{self.value}" stands?'

    def first_call(self) -> Arguments:
        """Look for the value."""
        return {"pattern": f'"{self.value}"', "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Select the record by the field that the value was found in."""
        found = re.search(rf'"([^"\\]+)"\s*:\s*"{self.value}"', _first_match(first)[3])
        if found is None:
            raise NotFound(self.value)
        under = f'"{self.under}"' if self.under else ""
        return {"query": f"""{under}[?"{found[1]}"=='{self.value}'] | [0]"""}

    def facts(self, first: str, second: str) -> Facts:  # noqa: ARG002 - all of it is in the second
        """Return what the record holds."""
        return simple_facts(_query_result(second))

    def facts_in(self, whole: str) -> Facts:
        """Return the same from all records."""
        content = json.loads(whole)
        records = content[self.under] if self.under else content
        found = next((one for one in records if isinstance(one, dict) and self.value in one.values()), None)
        return simple_facts(found)

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        return f"The record holds {'; '.join(facts)}."


def simple_facts(record: object) -> Facts:
    """Return the first few fields of a record whose values are short texts or whole numbers, each as "key: value".

    Raises:
        NotFound: it is no record.

    """
    if not isinstance(record, dict):
        raise NotFound(record)
    plain = [(key, value) for key, value in record.items() if type(value) in {int, str}]
    facts = [f"{key}: {value}" for key, value in plain if len(f"{key}{value}") <= LONGEST_FACT]
    return tuple(facts[:MOST_FACTS])


def _class_facts(lines: list[str], at: int | None) -> Facts:
    """Return file, line in the file and attributes of the class that is defined at ``lines[at]``."""
    head = next((back for back in range(at, -1, -1) if _FILE.fullmatch(lines[back])), None) if at is not None else None
    if at is None or head is None:
        raise NotFound
    attributes = [found[1] for line in lines[at : at + LINES_BEHIND] if (found := _ATTRIBUTE.match(line))]
    return lines[head].strip("= "), str(at - head), *attributes


def _first_match(text: str) -> re.Match[str]:
    found = _MATCH.search(text)
    if found is None:
        raise NotFound(text)
    return found


def _query_result(text: str) -> object:
    found = _RESULT.search(text)
    if found is None:
        raise NotFound(text)
    try:
        return json.loads(found[1])
    except ValueError:
        raise NotFound(text) from None
