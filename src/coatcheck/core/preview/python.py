"""Python literals, such as the lists of tuples that database tools print: outlined like JSON.

They are rewritten as JSON and read by the JSON parser. ``ast`` rejects values that rows are full of, such as
``Decimal('1.5')`` and ``datetime.date(2024, 5, 1)``, and warns about text that only looks like Python; a parser written
in Python takes ten times as long. A value that is not a string, list or dict stays as it is written.
"""

from __future__ import annotations

import re
from contextlib import suppress
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, cast

import orjson

from coatcheck.core.preview.envelope import unescaped_text
from coatcheck.core.preview.names import ESCAPE, without_notation
from coatcheck.core.preview.notation import Verbatim
from coatcheck.core.preview.outline import fit_outline
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_python",)

MAX_PARSED_CHARACTERS = 1_000_000
"""Characters. A longer literal is shown as text."""

_UNITS_OF_A_VALUE = 15
_UNITS_OF_AN_ESCAPE = 30

_DEEPEST = 50
_BEGUN = r"{0}[^{0}\\\n]*(?:\\.[^{0}\\\n]*){{0,50000}}"
"""A string without its closing quote. With more than 50,000 escapes it does not match, and the content is shown as
text: ``re`` takes about 130 bytes for each escape and, without the inner repeats, for each character."""

_TEXT = re.compile("({}'|{}\")".format(*map(_BEGUN.format, "'\"")))
_OPENED = re.compile("{}'?|{}\"?".format(*map(_BEGUN.format, "'\"")))
"""Also matches a string that does not end. It never backtracks, so it takes linear time."""

_MAX_OPEN_WORK = 1_000_000
"""The most work on strings that do not end: escapes times characters, in all of them together. Each escaped quote may
begin another string, which is read to the end of the line. This much takes about 40 ms; without a limit, ``_TEXT``
could take minutes."""

_HELD = "\x00"
"""In the skeleton of a literal, marks where a string or a word was taken out."""

_WRITTEN = "\x01"
"""Begins a JSON string that holds a value to be shown as it is written."""

_NONE = "\x02"
"""Stands in for ``None``: rows are full of it, and replacing it takes a tenth of the time of regex matches."""

_MARKS = (_HELD, _WRITTEN, _NONE)

_WORD = re.compile(r"None|True|False|nan|-?inf|[-+]?[\d.][\d.eE+_-]*j?")
_OTHER = rf"\s\[\]){{}},:{_HELD}"
_TUPLE = r"(?<![\w.])\([^()]*\)"
_VALUE = re.compile(rf"([A-Za-z_][\w.]*\([^()]*(?:{_TUPLE}[^()]*)*\)|[bBuU]?{_HELD}|[^({_OTHER}]+(?=[{_OTHER}]|\Z))")
"""A call that contains tuples but no other call, as in ``OrderedDict([('a', 1)])``; a string with its prefix, if any;
or a word."""

_SIMPLE = re.compile(r"([A-Za-z_][\w.]*(?:\([^()\[\]{}\x00]*\))?)")
"""A word, or a call that holds nothing but words."""

_WORDS = frozenset({"None", "True", "False", "nan", "inf"})
_ODD_NUMBER = re.compile(r"(?<![.\d])\d{19}|\.\d+0(?!\d)")
"""A number that would look different after JSON parsing."""

_LONG_NUMBER = b"0" * 19
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")

_IS_WORD = re.compile(rf"[^\s\[\](){{}},:{_HELD}]")
_CALL = re.compile(r"[\w.]\(")
_DEEPEST_CALL = 3
_SET = re.compile(r"\{([^{}:]*[^{}:\s][^{}:]*)\}")
_LAST_COMMA = re.compile(r",\s*(?=[\]}])")
_AS_LISTS = str.maketrans("()", "[]")


def preview_python(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return an outline within ``budget`` tokens, or None if the text is not a literal or nothing useful fits."""
    if len(content.text) > MAX_PARSED_CHARACTERS:
        return None
    try:
        value = _parsed(content.text, counter)
    except ValueError:
        return None
    return fit_outline(value, budget, counter, text=content.text, names_of=without_notation(content.text, ESCAPE))


def _parsed(text: str, counter: TokenCounter) -> JsonValue:
    """Parse a literal; raise ``ValueError`` if there is none."""
    if any(mark in text for mark in _MARKS):
        raise ValueError
    if not ('"' in text or "\\" in text or "\n" in text):
        spend(counter, len(text) // 4)
        with suppress(ValueError):
            return _quickly(text, counter)
    if text.count("\\") * len(text) > _MAX_OPEN_WORK and sum(map(_open_work, _OPENED.findall(text))) > _MAX_OPEN_WORK:
        raise ValueError
    pieces = _TEXT.split(text)
    skeleton, held = _HELD.join(pieces[::2]), pieces[1::2]
    spend(counter, len(text) // 4 + _UNITS_OF_A_VALUE * len(held) + _UNITS_OF_AN_ESCAPE * text.count("\\"))
    has_words = _IS_WORD.search(skeleton) is not None
    if has_words:
        skeleton, held = _taken_out(skeleton, held, counter)
        for _ in range(_DEEPEST_CALL):
            if _CALL.search(skeleton) is None:
                break
            skeleton, held = _taken_out(skeleton, held, counter)
    written = [""] * (2 * len(held) + 1)
    written[::2] = _lists_of(skeleton).split(_HELD)
    written[1::2] = map(_AsJson().__getitem__, _unescaped(held, text))
    value: JsonValue = orjson.loads("".join(written))
    words = {one: Verbatim(one[1:]) for one in {*held} if one[0] == _WRITTEN} if has_words else {}
    return _restored(value, words, pairs=skeleton.count(":"))


def _quickly(text: str, counter: TokenCounter) -> JsonValue:
    """Parse a literal whose strings are in single quotes without escapes, as most are.

    Numbers are left to the JSON parser. Words, and calls without a string inside, become JSON strings.

    Raises:
        ValueError: it contains anything else.

    """
    pieces = text.split("'")
    outside = _SIMPLE.split(_HELD.join(pieces[::2]).replace("None", _NONE))
    words, skeleton = {*outside[1::2]}, " ".join(outside[::2])
    spend(counter, _UNITS_OF_A_VALUE * (len(outside) + 2 * skeleton.count(_NONE)))
    if not all(one[-1] == ")" or one in _WORDS for one in words) or _has_odd_number(skeleton):
        raise ValueError
    written = {one: f'"\\u0001{one}"'.replace("(", "\\u0028").replace(")", "\\u0029") for one in words}
    outside[1::2] = map(written.__getitem__, outside[1::2])
    if _NONE in skeleton:
        words.add("None")
    pieces[::2] = _lists_of("".join(outside)).replace(_NONE, '"\\u0001None"').split(_HELD)
    value: JsonValue = orjson.loads('"'.join(pieces))
    return _restored(value, {f"{_WRITTEN}{one}": Verbatim(one) for one in words}, pairs=skeleton.count(":"))


def _open_work(opened: str) -> int:
    """Return how many characters may be read to search a string for others if it does not end; 0 if it ends."""
    before_last = opened[:-1]
    is_escaped = (len(before_last) - len(before_last.rstrip("\\"))) % 2 == 1
    ends = len(opened) > 1 and opened[-1] == opened[0] and not is_escaped
    return 0 if ends else opened.count("\\") * len(opened)


def _has_odd_number(skeleton: str) -> bool:
    """Return whether a skeleton without words has a number that would look different after JSON parsing."""
    # Most have no fraction and no long number. Finding that out takes a tenth of the time of the search.
    if "." in skeleton or _LONG_NUMBER in skeleton.encode("utf-8", "replace").translate(_AS_ZEROS):
        return _ODD_NUMBER.search(skeleton) is not None
    return False


def _lists_of(skeleton: str) -> str:
    """Return a skeleton with tuples and sets as lists, and without trailing commas."""
    # A function, because a template could not be parsed while Python exits.
    lists = _SET.sub(lambda found: f"[{found[1]}]", skeleton.translate(_AS_LISTS)).replace(",]", "]")
    blanks, closings = ([sign for sign in signs if sign in lists] for signs in (", \t\r\n", "]}"))
    if any(f"{blank}{closing}" in lists for blank in blanks for closing in closings):
        lists = _LAST_COMMA.sub("", lists)
    return lists


def _unescaped(held: list[str], text: str) -> list[str]:
    """Return the strings with their escapes resolved.

    Raises:
        ValueError: one begins with ``_WRITTEN``.

    """
    if "\\" not in text:
        return held
    texts = [f"'{unescaped_text(one[1:-1])}'" if "\\" in one and one[0] != _WRITTEN else one for one in held]
    if any(one[1:2] == _WRITTEN for one in texts):
        raise ValueError
    return texts


def _taken_out(skeleton: str, held: Sequence[str], counter: TokenCounter) -> tuple[str, list[str]]:
    """Return a skeleton without its words and innermost calls, and everything that was taken out of it so far.

    Raises:
        ValueError: a word does not belong in a literal.

    """
    pieces = _VALUE.split(skeleton)
    values = pieces[1::2]
    spend(counter, _UNITS_OF_A_VALUE * len(values) + len(skeleton) // 4)
    words = {one: f"{_WRITTEN}{one}" for one in {*values} if one[-1] not in f"){_HELD}"}
    if not all(map(_WORD.fullmatch, words)):
        raise ValueError
    left = iter(held)
    kept = [next(left) if one == _HELD else words.get(one) or _filled(one, left) for one in values]
    return _HELD.join(pieces[::2]), kept


def _filled(call: str, left: Iterator[str]) -> str:
    """Return a call with what was taken out of it put back."""
    before, *parts = call.split(_HELD)
    return "".join((_WRITTEN, before, *(f"{next(left).removeprefix(_WRITTEN)}{part}" for part in parts)))


class _AsJson(dict[str, str]):
    """Maps each Python string, word or call to its JSON. Cached, since most of them come again and again."""

    def __missing__(self, held: str) -> str:
        self[held] = written = encode_basestring(held if held[0] == _WRITTEN else held[1:-1])
        return written


def _restored(value: JsonValue, words: Mapping[str, str], *, pairs: int) -> JsonValue:
    """Return a value with its words and calls as they are written.

    Raises:
        ValueError: it has fewer than ``pairs`` members, because a key is repeated or two look alike, such as 1 and '1',
            and the parser keeps only the last. Or it is nested too deep.

    """
    if words:
        value = _as_written(value, 0, words)
    containers, members = [value] if pairs else [], 0
    for one in containers:
        if isinstance(one, dict):
            members += len(one)
        children = one.values() if isinstance(one, dict) else cast("list[JsonValue]", one)
        containers += [child for child in children if isinstance(child, (dict, list))]
    if members < pairs:
        raise ValueError
    return value


def _as_written(value: JsonValue, depth: int, words: Mapping[str, str]) -> JsonValue:
    """Return a value with ``words`` in it as they are shown. Lists are changed in place: there are thousands of rows.

    Raises:
        ValueError: it is nested too deep.

    """
    if not isinstance(value, (list, dict)):
        return words.get(value, value) if isinstance(value, str) else value
    if depth > _DEEPEST:
        raise ValueError
    if isinstance(value, dict):
        return {words.get(name, name): _as_written(one, depth + 1, words) for name, one in value.items()}
    try:
        value[:] = map(cast("Mapping[JsonValue, JsonValue]", words).get, value, value)
    except TypeError:  # it holds lists or dicts
        value[:] = [_as_written(one, depth + 1, words) for one in value]
    return value
