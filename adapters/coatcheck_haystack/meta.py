"""Remove the copy of a result that a component or a hook put into a message's ``meta``, and restore it.

``meta`` is the host's and stays, except for a value equal to the stored text. It is as large as the result, and would
stay in every saved conversation. Only such exact copies are handled here. None of Haystack's own components makes one,
and neither does its MCP integration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coatcheck import TextBlock
from coatcheck.adapting import mark_reference, read_marks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from haystack.dataclasses import ChatMessage

    from coatcheck import Block, Offloader, Reference, Scope

__all__ = ("arestore_meta", "restore_meta", "take_out_copies")


def take_out_copies(
    meta: Mapping[str, Any], blocks: Sequence[Block], references: Sequence[Reference]
) -> dict[str, Any]:
    """Return ``meta`` with a small mark in place of each value that equals the only stored text."""
    if len(blocks) != 1 or len(references) != 1 or not isinstance(blocks[0], TextBlock):
        return dict(meta)
    text, mark = blocks[0].text, mark_reference(references[0].id)
    return {key: mark if isinstance(value, str) and value == text else value for key, value in meta.items()}


def restore_meta(message: ChatMessage, offloader: Offloader, *, scope: Scope | None = None) -> dict[str, Any]:
    """Return the ``meta`` of a message with every copy of its result back in place.

    Args:
        message: the message of a tool result, from the conversation.
        offloader: the ``hook.offloader`` that stored the result.
        scope: the scope in which the content was stored. If None, the ambient scope, else ``"default"``.

    Raises:
        ReferenceNotFound: this scope never had the result or, as the subclass ``ReferenceExpired``, has it no longer.
        StorageError: the storage failed.
        InvalidRequest: ``scope`` is wrong.

    """
    found = {key: offloader.load(reference, scope=scope).text for key, reference in read_marks(message.meta).items()}
    return {**message.meta, **found}


async def arestore_meta(message: ChatMessage, offloader: Offloader, *, scope: Scope | None = None) -> dict[str, Any]:
    """Do what ``restore_meta`` does, without blocking the event loop."""
    marks = read_marks(message.meta)
    found = {key: (await offloader.aload(reference, scope=scope)).text for key, reference in marks.items()}
    return {**message.meta, **found}
