"""What adapters do to content: JSON values, base64 and data URLs, the simplest conversion, and marks on messages.

Only values go in and come out. Which blocks a framework has is the adapter's business.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from coatcheck.core.blocks import OpaqueBlock, TextBlock
from coatcheck.core.copies import Copy, find_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.core.retrieved import Content

__all__ = (
    "MARK",
    "Copy",
    "decode_base64",
    "decode_data_url",
    "encode_base64",
    "find_copy",
    "holds_iterator",
    "is_light",
    "json_value",
    "mark_reference",
    "plain_blocks",
    "read_marks",
    "references_in",
    "text_tokens",
    "texts_in",
    "with_lists",
)

MARK = "coatcheck"
"""The key of our marks, in whatever place a framework has for extra data on a message."""


# JSON values


_MAX_LIGHT_VALUES, _MAX_LIGHT_CHARACTERS = 500, 100_000
_ROWS = 1_000
_CONTAINERS = frozenset({dict, list, tuple})


def is_light(value: object) -> bool:
    """Return whether a value of dicts, lists and strings can be walked or written as JSON in about a millisecond.

    A larger value needs a thread: see ``call_off_loop``. Tuples count as lists, anything else counts like a number.
    """
    left, values, characters = [value], 0, 0
    while left and values < _MAX_LIGHT_VALUES and characters < _MAX_LIGHT_CHARACTERS:
        one = left.pop()
        values += 1
        if isinstance(one, str):
            characters += len(one)
        elif isinstance(one, dict):
            characters += sum(len(key) for key in islice(one, _MAX_LIGHT_VALUES) if isinstance(key, str))
            left += islice(one.values(), _MAX_LIGHT_VALUES)
        elif isinstance(one, list | tuple):
            left += one[:_MAX_LIGHT_VALUES]
    return not left and characters < _MAX_LIGHT_CHARACTERS


def holds_iterator(value: object) -> bool:
    """Return whether a value is an iterator, or consists of dicts, lists and tuples that hold one. May be slow."""
    left, seen = [value], set[int]()
    while left:
        one: Any = left.pop()
        if hasattr(type(one), "__next__"):
            return True
        if type(one) in _CONTAINERS and id(one) not in seen:
            seen.add(id(one))  # it may contain itself
            left += one.values() if type(one) is dict else one
    return False


def with_lists(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return a value with a list in place of each iterator that ``holds_iterator`` finds.

    Raises:
        Exception: whatever an iterator raises.

    """
    if hasattr(type(value), "__next__"):
        return [with_lists(each) for each in value]
    if type(value) is dict:
        return {key: with_lists(each) for key, each in value.items()}
    if type(value) in _CONTAINERS:
        return type(value)(map(with_lists, value))
    return value


def json_value(value: Any, *, otherwise: Callable[[Any], Any] | None = None) -> Any:  # noqa: ANN401 - any value
    """Return ``value`` if JSON can express it; a tuple becomes a list.

    Tuples inside the value stay, as they are written like lists.

    ``otherwise`` converts what JSON cannot express, each row by itself.

    Lists, alone or in an object, go to the encoder in batches of 1,000 rows. The encoder holds the interpreter's lock
    until it is done, on any thread, and so blocks the event loop: most of a second for 400,000 rows.

    Raises:
        TypeError: JSON cannot express it, and there is no ``otherwise``.
        ValueError: it contains itself.
        RecursionError: it is nested too deeply.

    """
    if isinstance(value, list | tuple):
        pieces = (value[start : start + _ROWS] for start in range(0, len(value), _ROWS))
        return [row for piece in pieces for row in _encodable_rows(piece, otherwise)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {
            key: json_value(each, otherwise=otherwise) if isinstance(each, list) else _encodable(each, otherwise)
            for key, each in value.items()
        }
    return _encodable(value, otherwise)


def _encodable_rows(rows: Sequence[Any], otherwise: Callable[[Any], Any] | None) -> Sequence[Any]:
    try:
        json.dumps(rows)
    except TypeError:
        return [_encodable(row, otherwise) for row in rows]
    return rows


def _encodable(value: Any, otherwise: Callable[[Any], Any] | None) -> Any:  # noqa: ANN401 - as above
    try:
        json.dumps(value)
    except TypeError:
        if otherwise is None:
            raise
        return otherwise(value)
    return value


# Base64


_PIECE = 3 * 2**18
"""Characters or bytes, a multiple of 3 and of 4. Decoding and encoding hold the interpreter's lock, so large media in
one go would stall an event loop, from any thread."""

_OF_OTHER_FORMS = " \t\r\n-_"
_TO_PLAIN_FORM = str.maketrans("-_", "+/", " \t\r\n")


def decode_base64(encoded: str) -> bytes:
    """Decode base64; return ``b""`` if it is malformed. May be slow: see ``call_off_loop``.

    Spaces, tabs and line ends are ignored, as in MIME (RFC 2045, 6.8). The URL-safe alphabet is read too (RFC 4648, 5).
    """
    if any(map(encoded.__contains__, _OF_OTHER_FORMS)):
        encoded = encoded.translate(_TO_PLAIN_FORM)
    pieces = [encoded[start : start + _PIECE] for start in range(0, len(encoded), _PIECE)]
    if any("=" in piece for piece in pieces[:-1]):  # padding belongs at the end
        return b""
    decoded = io.BytesIO()  # joining the pieces would take twice the memory
    try:
        for piece in pieces:
            decoded.write(base64.b64decode(piece, validate=True))
    except ValueError:
        return b""
    return decoded.getvalue()


def encode_base64(data: bytes) -> str:
    """Return bytes as base64. May be slow: see ``call_off_loop``."""
    pieces = (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
    return b"".join(base64.b64encode(piece) for piece in pieces).decode("ascii")


def decode_data_url(url: str) -> tuple[bytes, str]:
    """Return the bytes and the MIME type in a ``data:`` URL; both empty if it is another URL, or malformed."""
    head, _, encoded = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        return b"", ""
    data = decode_base64(encoded)
    return (data, head.removeprefix("data:").partition(";")[0]) if data else (b"", "")


def text_tokens(characters: int, *, encoded: int = 0) -> int:
    """Estimate the tokens of text: one for every four ``characters``, and one for every two of base64, ``encoded``.

    For ``Arrival.measured_tokens``, if a framework shows base64 as text.
    """
    return characters // 4 + encoded // 2


# Conversion after the adapter's own failed


def plain_blocks(content: object, text_of: Callable[[Any], object] | None = None) -> tuple[Block, ...]:
    """Convert content to blocks in the simplest way: each ``str`` to a ``TextBlock``, all else to an ``OpaqueBlock``.

    For ``Arrival.convert_plainly``. ``text_of`` returns the text of one part of the framework's content, or anything
    but a ``str`` if it has none.
    """
    parts = content if isinstance(content, list | tuple) else [content]
    texts = [part if isinstance(part, str) or text_of is None else text_of(part) for part in parts]
    return tuple(
        TextBlock(text) if isinstance(text, str) else OpaqueBlock(part) for part, text in zip(parts, texts, strict=True)
    )


# Marks


def references_in(mark: object) -> tuple[str, ...]:
    """Return the references in what a message keeps of ``outcome.mark``: the whole mark, or only its references."""
    references = mark.get("references") if isinstance(mark, Mapping) else mark
    return tuple(each for each in references if isinstance(each, str)) if isinstance(references, list | tuple) else ()


def mark_reference(reference: str, **more: object) -> dict[str, Any]:
    """Return the mark that replaces a value next to the content that was stored; ``more`` is for the host."""
    return {MARK: {"reference": reference, **more}}


def read_marks(holder: Mapping[str, Any]) -> dict[str, str]:
    """Return the references in the marks of ``mark_reference`` that a mapping holds, by key."""
    found: dict[str, str] = {}
    for key, value in holder.items():
        mark = value.get(MARK) if isinstance(value, Mapping) and len(value) == 1 else None
        if isinstance(mark, Mapping) and isinstance(mark.get("reference"), str):
            found[key] = mark["reference"]
    return found


def texts_in(contents: Iterable[Content]) -> list[str]:
    """Return the strings of a result, in order, from the contents that it was stored as."""
    texts: list[str] = []
    for content in contents:
        items = content.items  # set if the entry holds many blocks
        texts += [item.decode("utf-8", "surrogatepass") for item in items] if items else [content.text]
    return texts
