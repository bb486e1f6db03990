"""The user's own file in the demo: how it is read, and a question that any text or JSON can answer.

    JSON with a list of records    a value that occurs once in it: what else does its record hold?
    anything else                  the rarest word in its middle: on which line, and what is around it?

To add a kind of file, add a function that returns its script, or None for a file of another kind.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.cli.demo_script import Case, NotFound, first_match, numbered_lines, query_result
from coatcheck.cli.failure import CannotRun
from coatcheck.core.settings import MAX_QUERY_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.cli.demo_script import Arguments, Facts

__all__ = ("FindRecord", "FindWord", "input_case")

_AROUND = 20
"""Characters quoted on each side of a word."""

_WORDS = tuple(map(re.compile, (r"\w{6,24}", r"\w{3,24}", r"\S{1,40}")))
"""What counts as a word: the first of these patterns with a match that occurs only once, or else the last."""

_MAX_RECORDS = 50_000
"""The most records to ask about: a query has a budget of steps, and looking at a record takes up to ten."""

_MAX_RECORD = 1_000
"""The most characters of a record's JSON, so that every answer holds the record whole."""

_MAX_TRIED = 20
"""The most values to try, to find one that occurs once in the text, before the file is treated as plain text."""

_MAX_FIELDS = 5
_LONGEST_VALUE = 40

_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.:@-]{2,58}[A-Za-z0-9]")
"""A value that needs no escapes in JSON, in a pattern or in a query, except for dots in a pattern."""

_KEY = re.compile(r"[A-Za-z0-9_ -]{1,60}")


def input_case(path: Path) -> Case:
    """Return the question about the user's file.

    Raises:
        CannotRun: the file is empty, is not text, or cannot be read.

    """
    text = read_input(path)
    return Case(
        title=f"Your file: {path.name}",
        tool_name="read_file",
        tool_description="Return the content of the user's file.",
        result=text,
        script=_record_script(text) or _word_script(text),
    )


def read_input(path: Path) -> str:
    """Return the text of a file, exactly.

    Raises:
        CannotRun: the file is empty, is not text, or cannot be read.

    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise CannotRun(msg) from None
    except UnicodeDecodeError as error:
        msg = f"{path} is neither text nor JSON in UTF-8: see its byte {error.start:,}"
        raise CannotRun(msg) from None
    if not text.strip():
        msg = f"{path} is empty: choose a file with some text or JSON in it"
        raise CannotRun(msg)
    return text


@dataclass(frozen=True, slots=True)
class FindWord:
    """Asks on which line of any text a word first occurs, and what is around it."""

    word: str

    @property
    def question(self) -> str:
        """What the user asks."""
        return f'On which line does "{self.word}" first occur, and what is around it on that line?'

    def first_call(self) -> Arguments:
        """Look for the word."""
        return {"pattern": re.escape(self.word), "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Read on from the word's line or, if that is not shown whole, from shortly before the shown part."""
        found = first_match(first)
        if found.start is not None:
            return {"offset": max(0, found.start - _AROUND)}
        return {"line_range": {"start": found.line, "end": found.line + 2}}

    def facts(self, first: str, second: str) -> Facts:
        """Return the line's number, and the word with what is around it."""
        found = first_match(first)
        if found.start is not None:
            text = second.partition("\n")[2].rpartition("\n")[0]
        else:
            text = dict(numbered_lines(second)).get(found.line, "")
        return str(found.line), self._quote(text if self.word in text else found.text)

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
        before = text[max(0, at - _AROUND) : at].rpartition("\n")[2]
        after = text[end : end + _AROUND].partition("\n")[0]
        return " ".join(f"{before}{self.word}{after}".split())


@dataclass(frozen=True, slots=True)
class FindRecord:
    """Asks what else a record of a JSON list holds. The model gets one value, and learns the fields by looking."""

    value: str
    """A value that occurs once in the data, and needs no escapes."""

    under: str = ""
    """The key of the list; empty if the list is the whole document."""

    @property
    def _pattern(self) -> str:
        return self.value.replace(".", r"\.")

    @property
    def question(self) -> str:
        """What the user asks."""
        where = f' of "{self.under}"' if self.under else ""
        return f'One record{where} has "{self.value}". What else does it hold?'

    def first_call(self) -> Arguments:
        """Look for the value."""
        return {"pattern": f'"{self._pattern}"', "context_lines": 0}

    def second_call(self, first: str) -> Arguments:
        """Select the record by the field that the value was found in."""
        found = re.search(rf'"([^"\\]+)"\s*:\s*"{self._pattern}"', first_match(first).text)
        if found is None:
            raise NotFound(self.value)
        records = f'"{self.under}"' if self.under else ""
        return {"query": f"""{records}[?"{found[1]}"=='{self.value}'] | [0]"""}

    def facts(self, first: str, second: str) -> Facts:  # noqa: ARG002 - the second has it all
        """Return names and values of some fields."""
        return _fields(query_result(second))

    def facts_in(self, whole: str) -> Facts:
        """Return the same from all records."""
        content = json.loads(whole)
        records = content[self.under] if self.under else content
        return _fields(next((one for one in records if isinstance(one, dict) and self.value in one.values()), None))

    def sentence(self, facts: Facts) -> str:
        """Return the facts as an answer."""
        pairs = zip(facts[::2], facts[1::2], strict=True)
        return f"It holds {', '.join(f'{key}: {value}' for key, value in pairs)}."


def _word_script(text: str) -> FindWord:
    """Ask for the rarest word; of several equally rare ones, for the first after the middle, which no preview shows."""
    for form in _WORDS:
        words = form.findall(text)
        counts = Counter(words)
        rarest = min(counts.values(), default=0)
        if rarest == 1:
            break
    middle = len(words) // 2
    return FindWord(next(word for word in (*words[middle:], *words) if counts[word] == rarest))


def _record_script(text: str) -> FindRecord | None:
    """Ask for a record from the middle of a JSON list, or return None if no record is suitable."""
    under, records = _records(text)
    if not 0 < len(records) <= _MAX_RECORDS:
        return None
    counts = Counter(value for record in records for value in record.values() if isinstance(value, str))
    middle = len(records) // 2
    candidates = [
        value
        for record in (*records[middle:], *records[:middle])
        if len(json.dumps(record)) <= _MAX_RECORD
        for key, value in record.items()
        if isinstance(value, str) and counts[value] == 1 and _KEY.fullmatch(key) and _VALUE.fullmatch(value)
    ]
    unique = (value for value in candidates[:_MAX_TRIED] if text.count(f'"{value}"') == 1)
    value = next(unique, None)
    return None if value is None else FindRecord(value, under)


def _records(text: str) -> tuple[str, list[dict[str, object]]]:
    """Return the key and the longest list of records in a JSON document; the list may be empty."""
    if len(text.encode()) > MAX_QUERY_BYTES:
        return "", []
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return "", []
    lists = content.items() if isinstance(content, dict) else [("", content)]
    found = [(key, value) for key, value in lists if _is_records(value) and (not key or _KEY.fullmatch(key))]
    return max(found, key=lambda item: len(item[1]), default=("", []))


def _is_records(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _fields(record: object) -> Facts:
    """Return names and values of the first few fields that are a short ``str`` or an ``int``.

    Raises:
        NotFound: the value is not a record.

    """
    if not isinstance(record, dict):
        raise NotFound(record)
    short = [(key, str(value)) for key, value in record.items() if type(value) in {int, str} and value != ""]
    pairs = [(key, value) for key, value in short if len(key) <= _LONGEST_VALUE and len(value) <= _LONGEST_VALUE]
    return tuple(part for pair in pairs[:_MAX_FIELDS] for part in pair)
