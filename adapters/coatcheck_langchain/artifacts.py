"""The copy of a result that MCP adapters put into ``ToolMessage.artifact``: taken out, and given back.

An artifact is for host code and stays. One shape is an exception: ``{"structured_content": ...}``, as
``langchain-mcp-adapters`` and ``langchain.mcp`` make it, where the structured content says the same as the text that
was stored. Such a copy would stay in every checkpoint, as large as the result. Only that shape is handled here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from coatcheck import Offloaded, StorageError, TextBlock
from coatcheck.adapting import MARK, Copy, find_copy, find_references_in, make_offloader, references_in, texts_in
from coatcheck_langchain.convert import blocks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import ToolMessage

    from coatcheck import Content, Scope, Truncated
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("arestore_artifact", "restore_artifact", "take_out_copy")

_STRUCTURED = "structured_content"

_OWN_REFERENCE = re.compile(r"[0-9a-z_]+-[0-9a-f]{16}-[0-9a-f]{4}", re.ASCII)
"""A reference that the core made. A storage that names its references itself cannot say where each of many joined texts
begins."""


def take_out_copy(message: ToolMessage, outcome: Offloaded | Truncated) -> object:
    """Return the artifact of an offloaded message, with a small mark in place of a copy of the result."""
    artifact = message.artifact
    if not isinstance(outcome, Offloaded) or not isinstance(artifact, dict) or artifact.keys() != {_STRUCTURED}:
        return artifact
    texts = [block.text for block in blocks_of(message.content) if isinstance(block, TextBlock) and block.text]
    stored = [reference.id for reference in outcome.references if reference.content_type == "text/plain"]
    if len(stored) == len(texts) + 1:  # the last one is the index
        del stored[-1]
    joined = len(stored) == 1 and _OWN_REFERENCE.fullmatch(stored[0]) is not None
    copy = find_copy(artifact[_STRUCTURED], texts) if joined or len(stored) == len(texts) else None
    if copy is None:
        return artifact
    return {_STRUCTURED: {MARK: {"references": stored, "texts": len(texts), **copy._asdict()}}}


def restore_artifact(message: ToolMessage, storage: StorageOrOffloader, *, scope: Scope | None = None) -> Any:  # noqa: ANN401 - whatever a tool put there
    """Return the artifact of a message as its tool made it, whether or not a copy of the stored result was taken out.

    Args:
        message: a tool message, as it is in the conversation or in a checkpoint.
        storage: the ``Offloader`` that stored the result, or its storage.
        scope: the scope that the result was stored in; else the ambient scope, else ``"default"``. If the result was
            stored under the ``thread_id``, pass that.

    Raises:
        ReferenceNotFound: the stored result is not known in this scope, or, as ``ReferenceExpired``, no longer there.
        StorageError: the storage failed, or has lost where each of many texts begins.
        InvalidRequest: ``storage`` or ``scope`` is wrong.

    """
    mark, offloader = _mark_of(message), make_offloader(storage, {})
    if mark is None:
        return message.artifact
    said = _said_by(message)
    if (index := _index_for(mark, said)) is not None:
        said = _text_of(offloader.load(index, scope=scope))
    if not _names_all(said, mark):
        return message.artifact
    contents = [offloader.load(reference, scope=scope) for reference in mark["references"]]
    return _restore(message, mark, contents)


async def arestore_artifact(message: ToolMessage, storage: StorageOrOffloader, *, scope: Scope | None = None) -> Any:  # noqa: ANN401 - whatever a tool put there
    """Do what ``restore_artifact`` does, without blocking the event loop."""
    mark, offloader = _mark_of(message), make_offloader(storage, {})
    if mark is None:
        return message.artifact
    said = _said_by(message)
    if (index := _index_for(mark, said)) is not None:
        said = _text_of(await offloader.aload(index, scope=scope))
    if not _names_all(said, mark):
        return message.artifact
    contents = [await offloader.aload(reference, scope=scope) for reference in mark["references"]]
    return _restore(message, mark, contents)


def _mark_of(message: ToolMessage) -> dict[str, Any] | None:
    """Return what ``take_out_copy`` put into an artifact; None for anything else, such as a server's own values."""
    match message.artifact:
        case {
            "structured_content": {
                "coatcheck": {
                    "references": [str(), *_] as references,
                    "texts": int(texts),
                    "key": str() | None,
                    "is_list": bool(is_list),
                    "is_json": bool(),
                    **rest,
                }
            }
        } if not rest and texts > 0 and (is_list or texts == 1) and all(isinstance(each, str) for each in references):
            return dict(message.artifact[_STRUCTURED][MARK])
        case _:
            return None


def _said_by(message: ToolMessage) -> str:
    """Return the text in which a message names what was stored of it: its mark or, after ``offload_tool``, its content.

    The artifact cannot be asked: its structured content is an MCP server's, which could name what another tool stored.
    """
    mark = message.additional_kwargs.get(MARK)
    return "\n".join(references_in(mark)) if isinstance(mark, dict) else str(message.content)


def _index_for(mark: dict[str, Any], said: str) -> str | None:
    """Return the one reference that a message names, if that is not one of the mark's but leads to a list of them."""
    named = list(find_references_in([said]))
    return named[0] if len(named) == 1 and not _names_all(said, mark) else None


def _text_of(content: Content) -> str:
    return content.data.decode("utf-8", "replace")


def _names_all(said: str, mark: dict[str, Any]) -> bool:
    return all(reference and reference in said for reference in mark["references"])


def _restore(message: ToolMessage, mark: dict[str, Any], contents: Sequence[Content]) -> Any:  # noqa: ANN401 - whatever a tool put there
    texts = texts_in(contents)
    if len(texts) != mark["texts"]:
        msg = f"the artifact was made of {mark['texts']} texts, and the storage has lost where each of them begins"
        raise StorageError(msg)
    try:
        return {_STRUCTURED: Copy(mark["key"], mark["is_list"], mark["is_json"]).make(texts)}
    except ValueError:  # the text is not JSON: this mark is not ours
        return message.artifact
