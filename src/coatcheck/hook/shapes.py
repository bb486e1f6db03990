"""Finds the strings in a tool's response, and replaces some of them.

A client checks that a replaced response has the shape of the tool's own; otherwise it silently shows the original. So
nothing here knows the fields of a tool: a string that is too large is replaced where it is, and everything else is
copied. A table of tools and fields was rejected, because clients change them without notice.

Above the hard limit, lists and objects are replaced too, by the same kind of value with one string in it, if possible
in a field that had a string. A client may refuse any other shape, and then it shows the original; or it draws only the
fields that it knows, and the model never sees the reference.
"""

from __future__ import annotations

import json
import math
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from coatcheck.core.forks import loading
from coatcheck.hook.numbers import marked, unmarked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = (
    "MIN_BYTES",
    "OF_SERVER",
    "Path",
    "as_text",
    "byte_size",
    "heavy_values",
    "large_texts",
    "replaced",
    "stays",
    "without_copy",
)

Path: TypeAlias = tuple["str | int", ...]
"""The keys and indexes that lead to what one string replaces: a string, a list of strings, or a value too large."""

MIN_BYTES = 4_000
"""Bytes. A smaller string is never replaced: its placeholder would be as large."""

_MIN_MEDIUM = MIN_BYTES // 4
"""Bytes. Smaller media data counts as text, which adds little."""

_MAX_LEVELS = 50
"""A list or an object that is deeper counts as one string, its JSON. Python gives up at a thousand levels."""

_MAX_LOOKED_AT = 8
"""The number of members that are measured first, to choose how many to measure at once."""

_PLACEHOLDER_BYTES = 2_600
"""The size of a placeholder with a preview of 500 tokens, which are four bytes each here."""

_MAX_APART = 8
"""The most values that leave one by one; if there are more, what holds them leaves. As ``core.items.MAX_APART``."""

_MAX_FIELDS = 100
"""An object with more fields is not a tool's record, and would not be small."""

_WRITES = frozenset({"Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Write"})
"""Tools whose response the client draws for people; the model reads only a line or two of it."""

_MEDIA = frozenset({"audio", "image", "parts", "pdf"})
_NOT_TEXT = frozenset({"base64", "blob", "image_data"})
"""Keys that hold bytes. Claude Code has the last one in the outputs of a notebook."""

_DATA = _NOT_TEXT | {"data"}
_MEDIA_TYPE = re.compile(r"(?:audio|image|video)(?:/.*)?|(?:application/)?pdf")
_SAYING = frozenset({"type", "mimeType", "media_type"})
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\r\n]*(?:[=\t ][=\s]*)?")
_ADDRESSES = frozenset({"image_url", "uri", "url"})
_DATA_URL = re.compile(r"data:[^,]{,200};base64,")
_PLAIN = frozenset({bool, float, int, type(None)})
"""The types of values that are never large."""

_STRUCTURED = "structuredContent"
OF_SERVER = "mcp__"
"""Claude Code names a tool of an MCP server ``mcp__SERVER__TOOL``."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=marked)


def stays(tool_name: str, response: object) -> bool:
    """Return whether a response stays at any size, because the model does not read it whole.

    The client draws it for people, has written it to a file, or shows it as an image. The fields that say so are the
    client's own: in the response of an MCP server, they mean nothing.
    """
    if not isinstance(response, dict) or tool_name.startswith(OF_SERVER):
        return False
    return tool_name in _WRITES or bool(response.get("persistedOutputPath") or response.get("isImage"))


def large_texts(response: object, limit: int) -> dict[Path, str]:
    """Return the strings to remove so that at most ``limit`` bytes stay, as far as that is possible."""
    left, found = _texts(response)
    chosen: dict[Path, str] = {}
    for path, text in sorted(found.items(), key=lambda item: byte_size(item[1]), reverse=True):
        if left <= limit:
            break
        chosen[path] = text
        left -= byte_size(text)
    return chosen


def heavy_values(response: object, texts: Mapping[Path, str], limit: int) -> dict[Path, str]:
    """Return ``texts``, and what else to remove so that at most ``limit`` bytes stay.

    That is a list or an object as its JSON, or a string that is too small or too well hidden to be among ``texts``.
    What is inside such a value no longer leaves separately. Media do not count: a model pays for them by the piece. In
    ``structuredContent`` they do, since no client shows media from there.
    """
    together = sum(len(text) for text in texts.values()) > limit and len(texts) > _MAX_APART
    found = {} if together else dict(texts)  # otherwise the placeholders alone would be too large
    left = replaced(response, dict.fromkeys(found, ""))
    before, weight = math.inf, _weight(left) + _placeholders(found)
    while limit < weight < before:
        path = _heaviest(left, weight - limit)
        found = {other: text for other, text in found.items() if other[: len(path)] != path}
        found[path] = as_text(_at(response, path))
        left = replaced(left, {path: ""})
        before, weight = weight, _weight(left) + _placeholders(found)
    return found


def _placeholders(texts: Mapping[Path, str]) -> int:
    """Estimate the bytes of the placeholders of these strings."""
    return sum(min(len(text), _PLACEHOLDER_BYTES) for text in texts.values())


def replaced(response: Any, texts: Mapping[Path, str]) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a copy of a response with these strings at their paths."""
    changed = response
    for path, text in texts.items():
        changed = _with(changed, path, text)
    return changed


def without_copy(response: object) -> object:
    """Return a response without MCP's ``structuredContent`` if that only repeats the text of ``content``."""
    if not (isinstance(response, dict) and _STRUCTURED in response and isinstance(response.get("content"), list)):
        return response
    with loading:
        from coatcheck.core.copies import find_copy  # noqa: PLC0415 - not for a small result

    texts = [text for text in map(_text_of, response["content"]) if text is not None]
    if find_copy(response[_STRUCTURED], texts) is None:
        return response
    return {key: value for key, value in response.items() if key != _STRUCTURED}


def _texts(response: object) -> tuple[int, dict[Path, str]]:
    """Return the bytes of all strings in a response, and the strings that are large enough to leave.

    A value too small to hold such a string counts with its JSON.
    """
    total, found = 0, dict[Path, str]()
    waiting: list[tuple[Path, Any, bool]] = [((), response, False)]
    while waiting:
        path, value, is_medium = waiting.pop()
        if (text := _text_at(path, value)) is not None:
            size = byte_size(text)
            total += size
            if size >= MIN_BYTES:
                found[path] = text
            continue
        if isinstance(value, dict) and not _SAYING.isdisjoint(value):
            if _is_medium(value):
                continue
            is_medium = is_medium or _says_medium(value)
        size, members = _divided(value, MIN_BYTES)
        total += size
        held = [each for each in members if not _is_data(each.key, each.value, is_medium=is_medium)]
        waiting += [((*path, key), member, is_medium) for key, member, _ in held]
    return total, found


class _Member(NamedTuple):
    """A member of a list or an object, with its index or key, and its size in bytes."""

    key: str | int
    value: Any
    size: int


def _divided(value: object, least: int) -> tuple[int, list[_Member]]:
    """Return the bytes of the members of a value that are smaller than ``least`` bytes, and the other members.

    Members are measured in groups that should have about half of ``least``, judging by the first ones. A group that has
    ``least`` or more is halved. Measuring each of a million separately would take seconds.
    """
    keys: Sequence[str | int]
    members: list[Any]
    if isinstance(value, dict):
        keys, members = list(value), list(value.values())
    else:
        members = value if isinstance(value, list) else []
        keys = range(len(members))
    small, large = 0, []
    step = 1
    if len(members) > _MAX_LOOKED_AT:
        of_first = _together(members[:_MAX_LOOKED_AT]) + _MAX_LOOKED_AT
        step = max(1, least // 2 * _MAX_LOOKED_AT // of_first)
    waiting = [(start, start + step) for start in range(0, len(members), step)][::-1]
    while waiting:
        start, end = waiting.pop()
        few = members[start:end]
        size = _together(few)
        if size < least:
            small += size
        elif len(few) == 1:
            large.append(_Member(keys[start], few[0], size))
        else:
            middle = start + (len(few) + 1) // 2
            waiting += [(middle, end), (start, middle)]
    return small, large


def _together(members: list[Any]) -> int:
    """Return the bytes of some members: a single string as it is, others as their JSON; plain values count as 0."""
    held = [member for member in members if type(member) not in _PLAIN]
    if len(held) == 1 and isinstance(held[0], str):
        return byte_size(held[0])
    return len(_json(held)) - len(held) - 1 if held else 0


def _is_medium(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in _MEDIA  # a JSON Schema may have a list there


def _text_at(path: Path, value: object) -> str | None:
    """Return what leaves as one string; None for a value with members, each of which is looked at."""
    if isinstance(value, dict) and len(path) < _MAX_LEVELS:
        return None
    if isinstance(value, list) and (joined := _joined(value)) is not None:
        return joined
    return as_text(value) if len(path) >= _MAX_LEVELS or not isinstance(value, (dict, list)) else None


def _is_data(key: str | int, value: object, *, is_medium: bool = False) -> bool:
    """Return whether a member holds bytes. Our text in their place would break the medium, and so the conversation."""
    if key in _NOT_TEXT:
        return True
    if not isinstance(value, str):
        return False
    if key in _ADDRESSES:
        return _DATA_URL.match(value) is not None
    return key in _DATA and (is_medium or _BASE64.fullmatch(value) is not None)


def _joined(items: list[Any]) -> str | None:
    """Return a list as one string: joined by newlines, if it holds strings, or blocks that differ only in their text.

    Many blocks that also differ in something else, such as their annotations, leave as JSON. None for a few such
    blocks, each of which leaves separately, and for any other list.
    """
    if not items or _text_of(items[0]) is None:
        return None
    texts = [text for text in map(_text_of, items) if text is not None]
    if len(texts) < len(items):
        return None
    if _differ_in_text_only(items):
        return "\n".join(texts)
    return as_text(items) if len(items) > _MAX_APART else None


def _differ_in_text_only(items: list[Any]) -> bool:
    if not isinstance(items[0], dict):
        return not any(isinstance(item, dict) for item in items)
    return all(isinstance(item, dict) and {**item, "text": ""} == {**items[0], "text": ""} for item in items)


def _text_of(item: object) -> str | None:
    if isinstance(item, dict):
        item = item.get("text") if item.get("type") == "text" else None
    return item if isinstance(item, str) else None


def _with(value: Any, path: Path, text: str) -> Any:  # noqa: ANN401 - as above
    if path:
        copy = value.copy()
        copy[path[0]] = _with(value[path[0]], path[1:], text)
        return copy
    part = {"type": "text", "text": text}
    if isinstance(value, list):
        if not _is_part(value[0]):
            return [_with_text(value[0], text) or text]
        is_same = _joined(value) is not None and _differ_in_text_only(value)
        return [{**value[0], "text": text} if is_same else part]
    if isinstance(value, dict):
        return part if _is_part(value) else _with_text(value, text) or {"offloaded": text}
    return text


def _with_text(value: object, text: str) -> dict[str, Any] | None:
    """Return an object with ``text`` in place of its longest string, and nothing large in its other members.

    None: it is not an object, has no string, holds large data or too many members, or would still be large. A large
    object in it is removed with its key: an empty one might pass for a medium.
    """
    if not isinstance(value, dict) or len(value) > _MAX_FIELDS:
        return None
    texts = [key for key, member in value.items() if isinstance(member, str) and not _is_data(key, member)]
    large = {key for key, member in value.items() if len(_json(member)) > _MIN_MEDIUM}
    if not texts or any(_is_data(key, value[key]) for key in large):
        return None
    longest = max(texts, key=lambda key: len(value[key]))
    empty = {key: type(value[key])() for key in large if isinstance(value[key], str | list)}
    left = {key: empty.get(key, member) for key, member in value.items() if key not in large or key in empty}
    return {**left, longest: text} if len(_json({**left, longest: ""})) < MIN_BYTES else None


def _is_part(value: object) -> bool:
    """Return whether a value is a content block, as in MCP and model APIs."""
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _says_medium(value: object) -> bool:
    """Return whether an object says that its data is an image, audio, video or PDF."""
    said = [value.get(key) for key in _SAYING] if isinstance(value, dict) else ()
    return any(isinstance(each, str) and _MEDIA_TYPE.fullmatch(each) for each in said)


def as_text(value: object) -> str:
    """Return a string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else _json(value).decode("utf-8", "surrogatepass")


def byte_size(text: str) -> int:
    """Return the size of a string in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _json(value: object) -> bytes:
    """Return the JSON of a value, without whitespace. orjson is ten times as fast, but slow to load.

    orjson writes some exponents of a Python ``float`` differently (``1e-7`` for ``1e-07``). The numbers are the same,
    and everything else is the same to the byte.
    """
    if (fast := sys.modules.get("orjson")) is not None:
        with suppress(TypeError):  # an integer of more than 64 bits, a lone surrogate, or more than 254 levels
            data: bytes = fast.dumps(value)
            return data
    return unmarked(_ENCODER.encode(value).encode("utf-8", "surrogatepass"))


# Above the hard limit.


def _heaviest(value: Any, excess: int) -> Path:  # noqa: ANN401 - as above
    """Return the path to what must leave first: descend while a few members of a value hold ``excess`` bytes."""
    path: Path = ()
    is_medium, is_plain = False, not _names_data(_json(value))
    while len(path) < _MAX_LEVELS:
        is_medium = is_medium or _says_medium(value)
        _, members = _divided(value, MIN_BYTES)
        weights = [
            (size if is_plain else _weight(member, (*path, key), is_medium=is_medium), key)
            for key, member, size in members
        ]
        largest = sorted(weights, key=lambda each: each[0], reverse=True)[:_MAX_APART]
        if not largest or largest[0][0] < MIN_BYTES or sum(weight for weight, _ in largest) < excess:
            break
        key = largest[0][1]
        path, value = (*path, key), value[key]
    if path and (path[-1] in _DATA or _is_data(path[-1], value, is_medium=is_medium)):
        last = max((index for index, key in enumerate(path) if isinstance(key, int)), default=len(path) - 2)
        return path[: last + 1]
    return path


def _weight(value: object, path: Path = (), *, is_medium: bool = False) -> int:
    """Return the bytes of a value's JSON, without the data of media."""
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else _json(value)
    key = path[-1] if path else ""
    if _STRUCTURED not in path and (key in _DATA or _names_data(data)):
        return len(data) - sum(_media(value, key, is_medium=is_medium, level=0))
    return len(data)


def _names_data(data: bytes) -> bool:
    """Return whether JSON may have a key of media data."""
    return any(f'"{each}"'.encode() in data for each in _DATA)


def _media(value: object, key: str | int, *, is_medium: bool, level: int) -> Iterator[int]:
    """Yield the size of the data of each medium in a value."""
    if isinstance(value, str):
        if is_medium and key in _DATA and _BASE64.fullmatch(value):
            yield len(value)
    elif level < _MAX_LEVELS:
        is_medium = is_medium or _says_medium(value)
        for name, member, _ in _divided(value, _MIN_MEDIUM)[1]:
            if name != _STRUCTURED:
                yield from _media(member, name, is_medium=is_medium, level=level + 1)


def _at(value: Any, path: Path) -> Any:  # noqa: ANN401 - as above
    for key in path:
        value = value[key]
    return value
