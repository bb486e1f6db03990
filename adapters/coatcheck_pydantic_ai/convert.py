"""Convert what a tool returned into content blocks, and blocks into such a result.

Only these two conversions and finding references in a message belong here. A tool returns any value, which the model
gets as JSON; a list with files among the values; or a ``ToolReturn``, whose ``content`` the model gets as a separate
message. A file that names a location instead of bytes passes through as the same object.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic_ai import BinaryContent, ToolReturn
from pydantic_ai.messages import ToolReturnPart, is_multi_modal_content
from pydantic_core import to_json

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import plain_blocks, references_of_results

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("blocks_of", "offloaded_references", "plain_blocks_of", "result_of", "text_of")

_JSON = (dict, list, int, float, bool, type(None))


def blocks_of(result: object) -> tuple[Block, ...]:
    """Convert what a tool returned into blocks, in order. A list without files is one JSON value."""
    value, content = _halves_of(result)
    return tuple(map(_block_of, [*_items_of(value), *content]))


def plain_blocks_of(result: object) -> tuple[Block, ...]:
    """Convert only text. Values become JSON text, or their ``str`` if that fails."""
    value, content = _halves_of(result)
    parts = [
        part if isinstance(part, str) or is_multi_modal_content(part) else _words_of(part) for part in _listed(value)
    ]
    return plain_blocks([*parts, *content], lambda part: getattr(part, "content", None))


def result_of(blocks: Sequence[Block], result: object) -> Any:  # noqa: ANN401 - a tool may return anything
    """Convert blocks into the replacement of ``result``: the text as one ``str``, and the files as its content.

    If a provider accepts only text as a tool's result, a list of text and files would reach the model as JSON, with
    each line end escaped.
    """
    files = [_file_of(block, result) for block in blocks if isinstance(block, MediaBlock | OpaqueBlock)]
    if isinstance(result, ToolReturn):
        return replace(result, return_value=text_of(blocks), content=files or None)
    if len(files) == len(blocks) == 1:  # Anthropic and Bedrock refuse empty text, and accept a file as a result
        return files[0]
    return ToolReturn(return_value=text_of(blocks), content=files) if files else text_of(blocks)


def text_of(blocks: Sequence[Block]) -> str:
    """Return the text of the blocks, including JSON values, joined by line ends."""
    texts = (
        block.text if isinstance(block, TextBlock) else json.dumps(block.value, ensure_ascii=False)
        for block in blocks
        if isinstance(block, TextBlock | JsonBlock)
    )
    return "\n".join(texts)


def offloaded_references(message: object) -> tuple[str, ...]:
    """Return the references in a message or one tool result, for user interfaces. Empty if nothing was stored.

    Pass one to ``ToolOffloader.offloader.load`` for the whole content. With more than eight contents, the placeholder
    names only some of them, and text that lists all of them, one per line.

    Args:
        message: a message of a run, or one ``ToolReturnPart`` from it.

    """
    whole = message if hasattr(message, "parts") else SimpleNamespace(parts=[message])
    return references_of_results([whole])


def _halves_of(result: object) -> tuple[object, Sequence[object]]:
    """Return the value that a tool returned, and the parts of the content that the model gets next to it."""
    if not isinstance(result, ToolReturn):
        return result, ()
    content = result.content or ()
    return result.return_value, (content,) if isinstance(content, str) else content


def _words_of(value: object) -> str:
    try:
        return to_json(value).decode()
    except Exception:  # noqa: BLE001 - the same error may have caused the fallback
        return str(value)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else [value]


def _items_of(value: Any) -> Sequence[object]:  # noqa: ANN401 - a tool may return anything
    """Return the strings, files and JSON values into which Pydantic AI converts a value for the model."""
    if isinstance(value, str):
        return [value]
    part = ToolReturnPart(tool_name="", content=value, tool_call_id="")
    items = part.content_items(mode="jsonable")
    return [items] if isinstance(value, list) and not part.files else items


def _block_of(item: Any) -> Block:  # noqa: ANN401 - any part of a content
    if isinstance(item, str):
        return TextBlock(item)
    if isinstance(item, BinaryContent):
        return MediaBlock(item.data, item.media_type)
    if isinstance(item, _JSON):
        return JsonBlock(item)
    text = getattr(item, "content", None)  # text with metadata for the host has this attribute
    return TextBlock(text) if isinstance(text, str) else OpaqueBlock(item)


def _file_of(block: MediaBlock | OpaqueBlock, result: object) -> Any:  # noqa: ANN401 - as it came
    """Return the original file, with its identifier and provider details. A new file has only bytes and media type."""
    if isinstance(block, OpaqueBlock):
        return block.native
    value, content = _halves_of(result)
    came = (part for part in [*_listed(value), *content] if isinstance(part, BinaryContent) and part.data is block.data)
    return next(came, None) or BinaryContent(block.data, media_type=block.media_type)
