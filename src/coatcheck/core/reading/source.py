"""What is known of stored content, what reading asks for, and what it answers.

The seam between this package, which does no I/O, and the engine, which does: a reading is a generator that yields
``Part`` and ``IndexNeeded``, is sent bytes, and returns an ``Answer``. Only those values and the question whether a
content type can be read as text belong here.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Answer", "IndexNeeded", "Part", "Reading", "Source", "Steps", "is_text")

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Stored content, as far as it is known without reading it."""

    reference: str
    """As the model sees it; the literal next call repeats it."""

    content_type: str
    """MIME type of the stored bytes."""

    size: int
    """Bytes stored."""

    characters: int | None
    """Characters of the decoded text, or None if nobody has counted them."""

    lines: int | None
    """Lines of the decoded text, or None if nobody has counted them."""

    has_index: bool = False
    """Whether a line index was stored with the content, so that asking for it is worth the while."""

    has_items: bool = False
    """Whether many texts were joined, so that the index says where each begins."""


@dataclass(frozen=True, slots=True)
class Part:
    """Asks for the ``length`` bytes from ``start``. The answer has exactly that many."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class IndexNeeded:
    """Asks for the stored line index. The answer is its bytes, or None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model reads, and what it may ask next."""

    text: str
    """The whole answer: valid Unicode, within the budget."""

    next_call: Mapping[str, object] | None = None
    """Keyword arguments of the next call, without the reference; None when nothing is left to read."""

    matches: int | None = None
    """All matches of a pattern, counted up to 10,000; None for a request without one."""


Steps: TypeAlias = Generator[Part | IndexNeeded, bytes | None, _Result]
"""A computation that asks for bytes on its way to a result."""

Reading: TypeAlias = Steps[Answer]

_TEXT_TYPES = frozenset(
    {
        "application/csv",
        "application/ecmascript",
        "application/graphql",
        "application/html",
        "application/javascript",
        "application/json",
        "application/json5",
        "application/jsonl",
        "application/jsonlines",
        "application/markdown",
        "application/md",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/txt",
        "application/x-javascript",
        "application/x-jsonlines",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-toml",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
"""Text outside ``text/``. ``application/csv``, ``html``, ``md`` and ``txt`` are what Strands makes of its documents."""


def is_text(content_type: str) -> bool:
    """Return whether content of this MIME type is read as UTF-8 text. Parameters and case do not matter."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence in _TEXT_TYPES or essence.endswith(("+json", "+xml", "+yaml"))
