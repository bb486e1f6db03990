"""Remove the copy of a result that MCP adapters put into ``ToolMessage.artifact``, and restore it.

An artifact is for host code and stays. One shape is an exception: ``{"structured_content": ...}``, as
``langchain-mcp-adapters`` and ``langchain.mcp`` make it, if its structured content says the same as the stored text.
Such a copy is as large as the result, and would stay in every checkpoint. Only that shape is handled here.
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
"""A reference made by the core. A storage that names its own references cannot tell where each of many joined strings
begins."""


def take_out_copy(message: ToolMessage, outcome: Offloaded | Truncated) -> object:
    """Return the artifact of an offloaded message. A copy of the result in it is replaced by a small mark."""
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
    """Return the artifact of a message as its tool made it, whether or not a copy of the result was taken out of it.

    Args:
        message: a tool message from the conversation or from a checkpoint.
        storage: the ``Offloader`` that stored the result, or its storage.
        scope: the scope that the result was stored in. If None, the ambient scope, else ``"default"``. Pass the
            ``thread_id`` if the result was stored under it.

    Raises:
        ReferenceNotFound: this scope never had the result or, as the subclass ``ReferenceExpired``, has it no longer.
        StorageError: the storage failed, or has lost where each of many strings begins.
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
    """Return the mark that ``take_out_copy`` put into an artifact; None for anything else, such as server data."""
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
    """Return the text in which a message names its references: its mark or, after ``offload_tool``, its content.

    The artifact cannot be trusted: its structured content comes from an MCP server, which could name another tool's
    references.
    """
    mark = message.additional_kwargs.get(MARK)
    return "\n".join(references_in(mark)) if isinstance(mark, dict) else str(message.content)


def _index_for(mark: dict[str, Any], said: str) -> str | None:
    """Return the message's only reference if it is not one of the mark's, because then it leads to a list of them."""
    named = list(find_references_in([said]))
    return named[0] if len(named) == 1 and not _names_all(said, mark) else None


def _text_of(content: Content) -> str:
    return content.data.decode("utf-8", "replace")


def _names_all(said: str, mark: dict[str, Any]) -> bool:
    return all(reference and reference in said for reference in mark["references"])


def _restore(message: ToolMessage, mark: dict[str, Any], contents: Sequence[Content]) -> Any:  # noqa: ANN401 - whatever a tool put there
    texts = texts_in(contents)
    if len(texts) != mark["texts"]:
        msg = f"the artifact was made from {mark['texts']} strings, and the storage no longer knows where each begins"
        raise StorageError(msg)
    try:
        return {_STRUCTURED: Copy(mark["key"], mark["is_list"], mark["is_json"]).make(texts)}
    except ValueError:  # not JSON, so this mark is not ours
        return message.artifact
