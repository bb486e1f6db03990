"""The copy of a result that MCP adapters put into ``ToolMessage.artifact``: taken out, and given back.

An artifact is for host code and stays. One shape is an exception: ``{"structured_content": ...}``, as
``langchain-mcp-adapters`` and ``langchain.mcp`` make it, where the structured content says the same as the text that
was stored. It would stay in every checkpoint, as large as the result. Only that shape is handled here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck import Offloaded, StorageError, TextBlock
from coatcheck_langchain.convert import MARK, blocks_of
from coatcheck_langchain.options import offloader_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import ToolMessage

    from coatcheck import Content, Outcome
    from coatcheck_langchain.options import StorageOrOffloader

__all__ = ("arestore_artifact", "restore_artifact", "without_copy")

_STRUCTURED = "structured_content"

_OWN_REFERENCE = re.compile(r"[0-9a-z_]+-[0-9a-f]{16}-[0-9a-f]{4}", re.ASCII)
"""A storage that names its references itself cannot say where each of many joined texts begins."""


class _Copy(NamedTuple):
    """How structured content follows from the texts of its result."""

    key: str | None
    """The one key of the object around the value, as ``result``; None where the value is all there is."""

    is_list: bool
    """Whether the value is a list with one text for each item; else there is one text."""

    is_json: bool
    """Whether a text is the JSON of its value; else it is the value."""

    def value(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
        """Return the structured content."""
        values = [json.loads(text) for text in texts] if self.is_json else list(texts)
        value = values if self.is_list else values[0]
        return value if self.key is None else {self.key: value}


def without_copy(message: ToolMessage, outcome: Outcome) -> object:
    """Return the artifact of a message whose result left, with a small mark in place of a copy of what was stored."""
    artifact = message.artifact
    if not isinstance(outcome, Offloaded) or not isinstance(artifact, dict) or artifact.keys() != {_STRUCTURED}:
        return artifact
    texts = [block.text for block in blocks_of(message.content) if isinstance(block, TextBlock) and block.text]
    stored = [reference.id for reference in outcome.references if reference.content_type == "text/plain"]
    if len(stored) == len(texts) + 1:  # the last one is the index
        del stored[-1]
    joined = len(stored) == 1 and _OWN_REFERENCE.fullmatch(stored[0]) is not None
    copy = _copied_from(artifact[_STRUCTURED], texts) if joined or len(stored) == len(texts) else None
    if copy is None:
        return artifact
    return {_STRUCTURED: {MARK: {"references": stored, "texts": len(texts), **copy._asdict()}}}


def restore_artifact(message: ToolMessage, storage: StorageOrOffloader, *, scope: str | None = None) -> Any:  # noqa: ANN401 - whatever a tool put there
    """Return the artifact of a message as its tool made it, whether or not a copy of the stored result was taken out.

    Args:
        message: a tool message, as it is in the conversation or in a checkpoint.
        storage: the ``Offloader`` that the result left through, or its storage.
        scope: whose content may be read; else the ambient scope, else ``"default"``. The ``thread_id`` is that of the
            conversation, and must be passed.

    Raises:
        ReferenceNotFound: the stored result is not known in this scope, or, as ``ReferenceExpired``, no longer there.
        StorageError: the storage failed, or has lost where each of many texts begins.
        InvalidRequest: ``storage`` or ``scope`` is none.

    """
    mark, offloader = _mark_of(message), offloader_of(storage, {})
    if mark is None:
        return message.artifact
    return _restored(mark, [offloader.load(reference, scope=scope) for reference in mark["references"]])


async def arestore_artifact(message: ToolMessage, storage: StorageOrOffloader, *, scope: str | None = None) -> Any:  # noqa: ANN401 - whatever a tool put there
    """Do what ``restore_artifact`` does, without blocking the event loop."""
    mark, offloader = _mark_of(message), offloader_of(storage, {})
    if mark is None:
        return message.artifact
    return _restored(mark, [await offloader.aload(reference, scope=scope) for reference in mark["references"]])


def _copied_from(structured: object, texts: Sequence[str]) -> _Copy | None:
    """Return how structured content follows from the texts; None where it says anything else."""
    candidates: list[tuple[str | None, object]] = [(None, structured)]
    if isinstance(structured, dict) and len(structured) == 1:  # MCP wraps what is no object: {"result": [...]}
        candidates += list(structured.items())
    for key, value in candidates:
        for is_list in (False, True):
            values = value if is_list else [value]
            if not isinstance(values, list) or len(values) != len(texts) or not texts:
                continue
            if values == list(texts):
                return _Copy(key, is_list, is_json=False)
            if all(map(_is_json_of, texts, values)):
                return _Copy(key, is_list, is_json=True)
    return None


def _is_json_of(text: str, value: object) -> bool:
    try:
        # Written out, since 1, 1.0 and True are equal in Python.
        return _written(json.loads(text)) == _written(value)
    except (TypeError, ValueError, RecursionError):
        return False


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _mark_of(message: ToolMessage) -> dict[str, Any] | None:
    match message.artifact:
        case {"structured_content": {"coatcheck": {"references": [*_], "texts": int(), **rest}}} if rest.keys() == set(
            _Copy._fields
        ):
            return dict(message.artifact[_STRUCTURED][MARK])
        case _:
            return None


def _restored(mark: dict[str, Any], contents: Sequence[Content]) -> Any:  # noqa: ANN401 - whatever a tool put there
    texts: list[str] = []
    for content in contents:
        items = getattr(content, "items", None)  # of an entry that holds many blocks
        texts += [item.decode("utf-8", "surrogatepass") for item in items] if items else [content.text]
    if len(texts) != mark["texts"]:
        msg = f"the artifact was made of {mark['texts']} texts, and the storage has lost where each of them begins"
        raise StorageError(msg)
    return {_STRUCTURED: _Copy(mark["key"], mark["is_list"], mark["is_json"]).value(texts)}
