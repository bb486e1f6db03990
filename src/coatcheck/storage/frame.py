"""Content with its type and its metadata in one piece, for backends that keep only bytes.

    two bytes: the length of the head   |   the head, JSON   |   the content, unchanged

The head may be a bare MIME type, as Strands' own offloader writes it. Only this format belongs here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from coatcheck.core.errors import CorruptContent, StorageError
from coatcheck.storage.protocol import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Head", "framed", "read_head", "unframed")

_LENGTH_BYTES = 2
_LONGEST_HEAD = 256**_LENGTH_BYTES - 1

_LATEST = 253_402_300_799
"""The last second of the year 9999, in seconds since the epoch. ``datetime`` has no later one, so a head with a later
one is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a frame says about its content."""

    content_type: str
    metadata: Mapping[str, str]

    saved: float
    """Seconds since the epoch; 0 if the frame does not say."""

    size: int | None
    """Bytes of the content; None if the frame does not say."""

    start: int
    """Where the content begins in the frame, in bytes."""


def framed(
    content: bytes, *, content_type: str, metadata: Mapping[str, str], saved: float, start: int | None = None
) -> bytes:
    """Return a frame around ``content``; with ``start``, the content begins at that byte, whatever the head holds.

    Raises:
        StorageError: type and metadata are too long for the head.

    """
    described = {"content_type": content_type, "metadata": dict(metadata), "saved": saved, "size": len(content)}
    head = orjson.dumps(described)
    longest = _LONGEST_HEAD if start is None else start - _LENGTH_BYTES
    if len(head) > longest:
        msg = f"type and metadata take {len(head):,} bytes, more than {longest:,}"
        raise StorageError(msg)
    if start is not None:
        head = head.ljust(longest)  # JSON may end with spaces
    return b"".join((len(head).to_bytes(_LENGTH_BYTES, "big"), head, content))


def read_head(frame: bytes, name: str) -> Head:
    """Return the head of a frame; ``frame`` may end right after it, and ``name`` is for the error message.

    Raises:
        CorruptContent: it is not a frame.

    """
    start = _LENGTH_BYTES + int.from_bytes(frame[:_LENGTH_BYTES], "big")
    head = frame[_LENGTH_BYTES:start]
    try:
        if not head or len(frame) < start:
            raise ValueError(len(frame))  # noqa: TRY301 - reported below, like every other damage
        found: dict[str, Any] = (
            orjson.loads(head) if head.startswith(b"{") else {"content_type": head.decode(), "metadata": {}}
        )
        saved, size = float(found.get("saved", 0.0)), found.get("size")
        if not 0 <= saved <= _LATEST or (size is not None and int(size) < 0):
            raise ValueError(saved, size)  # noqa: TRY301 - as above
        return Head(
            content_type=str(found["content_type"]),
            metadata=dict(found["metadata"]),
            saved=saved,
            size=None if size is None else int(size),
            start=start,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{name!r} is not a frame of type and content: {error}"
        raise CorruptContent(msg) from error


def unframed(frame: bytes, name: str) -> tuple[Stored, float]:
    """Return the entry in a frame, and when it was saved.

    Raises:
        CorruptContent: it is not a frame, or not the whole one.

    """
    head = read_head(frame, name)
    content = frame[head.start :]
    if head.size not in {None, len(content)}:
        msg = f"{name!r} holds {len(content):,} bytes of content, and {head.size:,} were saved"
        raise CorruptContent(msg)
    entry = Stored(content=content, content_type=head.content_type, metadata=head.metadata, size=len(content))
    return entry, head.saved
