"""What reading back returns: ``Retrieved`` for the model, bounded; ``Content`` and ``Listing`` for the host, whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.core.blocks import Block

__all__ = ("Content", "ListedContent", "Listing", "Retrieved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What a model reads of stored content."""

    text: str
    """The answer: at most ``max_retrieval_tokens``, valid Unicode, ending with the call that reads on."""

    blocks: tuple[Block, ...]
    """The answer as content blocks: the text, or the media block itself if ``native_media`` was requested."""

    next_call: Mapping[str, object] | None = None
    """Arguments of the call that reads on, besides the reference; None at the end."""

    matches: int | None = None
    """How many matches the pattern has, counted up to 10,000; 0 if a query gave null or an empty list; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Stored content as a whole, for the host."""

    data: bytes = field(repr=False)
    """The bytes as they were saved. They are checked against their digest, except in a storage that chooses its
    references itself, since it keeps none."""

    content_type: str
    """MIME type."""

    items: tuple[bytes, ...] | None = field(default=None, repr=False)
    r"""The bytes of each joined block, if more than eight were stored as one content. A JSON value is compact JSON.

    ``data`` is these, joined by ``\n``. None for all other content, in a storage that chooses its references itself,
    and if the entry that says where each begins is lost.
    """

    @property
    def text(self) -> str:
        """The bytes as text, exactly as the tool returned it, lone surrogates included.

        Raises:
            UnicodeDecodeError: the content is not text.

        """
        return self.data.decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedContent:
    """One stored content, as a listing describes it."""

    reference: str
    """What reads it back, in the scope that was listed."""

    size: int
    """Bytes stored."""

    modified: float
    """Time of the last save or, in a storage on this machine, of the last use; in seconds since the epoch."""

    tool_name: str | None = None
    """The tool that returned it; None if the storage did not say."""

    arguments: str | None = None
    """The call's arguments as JSON, cut to 600 characters of percent-encoding, in which a plain letter takes one and a
    Chinese character nine. None without ``list_arguments``."""

    content_type: str | None = None
    """MIME type; None if the storage did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of what a scope holds."""

    contents: tuple[ListedContent, ...]
    """Newest first. A page may hold fewer than requested, even none, without being the last."""

    after: str | None
    """What to pass for the next page; None if this is the last one."""
