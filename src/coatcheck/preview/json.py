"""JSON: its shape first, then as many records as fit, the first and the last before those between.

Field names are the real ones, so that a query can use them. A record is shown whole or with its long strings and
nested containers abbreviated by name and size, never broken off. JSON that is too large to parse is shown as text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.blocks import JsonValue
    from coatcheck.preview.source import Previewed
    from coatcheck.tokens import TokenCounter

__all__ = ("looks_like_json", "preview_json")

MAX_PARSED_CHARACTERS = 8_000_000
"""Parsing holds the interpreter's lock, 0.1 to 0.3 s for 8 MB of records: an exception to staying off the loop."""

_SAMPLED_RECORDS = 100
"""Records whose fields are looked at for the shape, from both ends of the list."""

_SHAPE_SHARE = 0.5
"""Of the budget, at most, for the shape; the records show what the shape cannot."""

_LONGEST_STRING = 160
_LONGEST_RECORD = 600
_MOST_RECORDS = 200

_MAYBE_ROUNDED = re.compile(r"\de\+?\d")
"""orjson reads an integer beyond 64 bits as a rounded float; where the preview shows such a float, the standard
``json``, which is exact, reads the text again."""

_KINDS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", dict: "object"}
_EDGES = {"[": "]", "{": "}"}


def looks_like_json(content: Previewed) -> bool:
    """Return whether the text may be a JSON object or list, by its first and last characters."""
    if len(content.text) > MAX_PARSED_CHARACTERS:
        return False
    head, tail = content.text[:64].lstrip(), content.text[-64:].rstrip()
    return bool(head and tail) and _EDGES.get(head[0]) == tail[-1]


def preview_json(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return shape and records within ``budget`` tokens, or None if the text is no JSON or nothing useful fits."""
    try:
        value: JsonValue = orjson.loads(content.text)
    except ValueError:
        return None
    if not counter.exceeds(content.text, budget):
        return content.text
    shown = _show(value, budget, counter)
    if shown is not None and _MAYBE_ROUNDED.search(shown):
        try:
            return _show(json.loads(content.text), budget, counter)
        except (RecursionError, ValueError):
            return None  # nested deeper than the standard parser goes, or a number of more digits than Python reads
    return shown


def _show(value: JsonValue, budget: int, counter: TokenCounter) -> str | None:
    if isinstance(value, list):
        return _records("", value, [f"list of {_items(value)}"], budget, counter)
    if isinstance(value, dict):
        return _object(value, budget, counter)
    return None


def _object(value: dict[str, JsonValue], budget: int, counter: TokenCounter) -> str | None:
    """Show every key with its value or its shape, then the records of the longest list among them."""
    fields = [f"{_key(key)}: {_summary(child)}" for key, child in value.items()]
    head = [f"object with {len(value):,} keys:" if len(value) != 1 else "object with 1 key:", *fields]
    lists = [(key, child) for key, child in value.items() if isinstance(child, list) and child]
    if not lists:
        return _fit(head, budget, counter)
    key, longest = max(lists, key=lambda item: len(item[1]))
    return _records(_key(key), longest, head, budget, counter)


def _records(name: str, items: Sequence[JsonValue], shape: list[str], budget: int, counter: TokenCounter) -> str | None:
    """Show ``shape``, then records of ``items``: the first, the last, the second, and so on while they fit."""
    shown_shape = _fit(shape, int(budget * _SHAPE_SHARE) if items else budget, counter)
    if shown_shape is None:
        return None
    left = budget - counter.count(shown_shape) - 1
    lines: dict[int, str] = {}
    for index in _outside_in(len(items)):
        line = f"{name}[{index}] {_record(items[index])}"
        cost = counter.count(line) + 4  # the line end, and a gap mark that this record may need beside it
        if cost > left:
            break
        lines[index] = line
        left -= cost
    while lines:
        text = "\n".join((shown_shape, *_with_gaps(lines, len(items))))
        if not counter.exceeds(text, budget):
            return text
        lines.popitem()
    return shown_shape


def _with_gaps(lines: dict[int, str], total: int) -> Iterator[str]:
    expected = 0
    for index in sorted(lines):
        if index > expected:
            yield "…"
        yield lines[index]
        expected = index + 1
    if expected < total:
        yield "…"


def _outside_in(length: int) -> Iterator[int]:
    for step in range(min((length + 1) // 2, _MOST_RECORDS)):
        yield step
        if length - 1 - step > step:
            yield length - 1 - step


def _fit(lines: list[str], budget: int, counter: TokenCounter) -> str | None:
    """Return the lines joined, as many as fit, saying how many are left out; None if not even the first fits."""
    shown = len(lines)
    while shown:
        rest = len(lines) - shown
        text = "\n".join((*lines[:shown], f"… and {rest:,} more keys") if rest else lines)
        if not counter.exceeds(text, budget):
            return text
        shown = shown // 2 if shown > 16 else shown - 1  # noqa: PLR2004 - halving first keeps this logarithmic
    return None


def _items(items: Sequence[JsonValue]) -> str:
    """Say what a list holds: ``2,000 objects: id int, name str, note str?``; ``?`` marks a field that some lack."""
    sample = [*items[:_SAMPLED_RECORDS], *items[_SAMPLED_RECORDS:][-_SAMPLED_RECORDS:]]
    records = [item for item in sample if isinstance(item, dict)]
    if not records or len(records) < len(sample):
        kinds = sorted({_kind(item) for item in sample})
        noun = "item" if len(items) == 1 else "items"
        return f"{len(items):,} {noun} ({', '.join(kinds)})" if kinds else "0 items"
    fields: dict[str, set[str]] = {}
    present: dict[str, int] = {}
    for record in records:
        for key, child in record.items():
            fields.setdefault(key, set()).add(_kind(child))
            present[key] = present.get(key, 0) + 1
    described = [
        f"{_key(key)} {'|'.join(sorted(kinds))}{'' if present[key] == len(records) else '?'}"
        for key, kinds in fields.items()
    ]
    return f"{_count(len(items), 'object')}: {', '.join(described)}"


def _summary(value: JsonValue) -> str:
    """Say what a value is in one line: a scalar itself, a list by what it holds, an object by its keys."""
    if isinstance(value, list):
        return f"list of {_items(value)}"[:_LONGEST_RECORD]
    if isinstance(value, dict):
        keys = ", ".join(map(_key, value))
        return f"object with {_count(len(value), 'key')}: {keys}"[:_LONGEST_RECORD]
    return _scalar(value)


def _record(value: JsonValue) -> str:
    """Return one record in one line: whole where it is short, else with nested containers named by their size."""
    whole = _compact(value)
    if whole is not None:
        return whole
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_nested(child)}" for key, child in value.items())
            + "}"
        )
    if isinstance(value, list):
        return f"[{_count(len(value), 'item')}]"
    return _scalar(value)


def _compact(value: JsonValue) -> str | None:
    """Return a short value as JSON, or None if it is long or nested too deeply to be shown."""
    try:
        if len(orjson.dumps(value)) > _LONGEST_RECORD * 4:
            return None
    except TypeError:
        if not isinstance(value, int):
            return None  # nested beyond orjson's 254 levels, or holds an integer beyond 64 bits
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_RECORD else None


def _nested(value: JsonValue) -> str:
    if isinstance(value, list):
        noun = "object" if value and all(isinstance(item, dict) for item in value[:_SAMPLED_RECORDS]) else "item"
        return f"[{_count(len(value), noun)}]"
    if isinstance(value, dict):
        return "{" + _count(len(value), "key") + "}"
    return _scalar(value)


def _scalar(value: JsonValue) -> str:
    if isinstance(value, str) and len(value) > _LONGEST_STRING:
        return f"{json.dumps(value[:_LONGEST_STRING], ensure_ascii=False)}… ({len(value):,} characters)"
    return json.dumps(value, ensure_ascii=False)


def _kind(value: JsonValue) -> str:
    """Return the name of a value's type, in the words that Python, SQL and most models share."""
    return _KINDS.get(type(value), "list")


def _key(key: str) -> str:
    """Return a field name as a query writes it: bare where it is a word, else in double quotes."""
    return key if key.isascii() and key.isidentifier() else json.dumps(key, ensure_ascii=False)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
