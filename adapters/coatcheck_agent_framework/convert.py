"""Convert the result of a tool into content blocks, and blocks into ``Content``.

Only these two conversions and finding references in what the framework keeps of a result belong here. A result is a
list of ``Content``. If a tool or a middleware made it something else, the framework turns it into one string, and so
does this module. A ``Content`` that names a location instead of bytes passes through as the same object.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agent_framework import Content

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import decode_data_url, encode_base64, plain_blocks, references_of_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("blocks_of", "contents_of", "offloaded_references", "plain_blocks_of")

_OUTPUT = "shell_command_output"
"""The type of an item that holds the output of one command, and how it ended."""

_NAME = "filename"
"""The property in which the framework's clients look for a file's name, in all versions."""


def blocks_of(result: object) -> tuple[Block, ...]:
    """Convert the result of a tool into blocks, in order."""
    return tuple(map(_block_of, _items_of(result)))


def plain_blocks_of(result: object) -> tuple[Block, ...]:
    """Convert only text; every other item stays opaque."""
    return plain_blocks(_items_of(result), lambda item: item.text if item.type == "text" else None)


def contents_of(blocks: Sequence[Block], *, like: object = None) -> list[Content]:
    """Convert blocks into a result. Its text items get the properties that all items of ``like`` have in common.

    Such properties are what a server says about a result, for example how far it may be trusted. Or they are how a
    command ended and its output, which clients send to the model in place of the text, so the text replaces the output.
    """
    properties = {} if like is None else _common_properties(_items_of(like))
    return [_content_of(block, properties) for block in blocks]


def offloaded_references(message: object) -> tuple[str, ...]:
    """Return the references in a message or one tool result, for user interfaces. Empty if nothing was stored.

    Pass one to ``ToolOffloader.offloader.load`` for the whole content. With more than eight contents, the placeholder
    names only some of them, and text that lists all of them, one per line.

    Args:
        message: a message of a run, a ``Content`` of type ``function_result`` from it, or the dictionary that a saved
            session keeps of either.

    """
    is_whole = "contents" in message if isinstance(message, dict) else hasattr(message, "contents")
    whole = message if is_whole else {"contents": [message]}
    return references_of_results([whole])


def _items_of(result: object) -> Sequence[Content]:
    """Return the items that the framework makes of a result.

    The framework would turn a lone ``Content`` into the JSON of its ``str``. Here it is the only item, or its ``str``
    is, if it is neither text nor data nor the output of a command.
    """
    if isinstance(result, Content):
        return [result if result.type in ("text", "data", _OUTPUT) else Content.from_text(str(result))]
    if isinstance(result, list) and all(isinstance(item, Content) for item in result):
        return result
    return Content.from_function_result("", result=result).items or []


def _block_of(item: Content) -> Block:
    if item.type == "text":
        return TextBlock(item.text or "")
    if item.type == _OUTPUT:
        return JsonBlock({name: getattr(item, name) for name in ("stdout", "stderr", "exit_code", "timed_out")})
    data, media_type = decode_data_url(item.uri or "") if item.type == "data" else (b"", "")
    if not data:
        return OpaqueBlock(item)
    name = getattr(item, "name", None) or item.additional_properties.get(_NAME)
    return MediaBlock(data, item.media_type or media_type, name=name)


def _content_of(block: Block, properties: Mapping[str, Any]) -> Content:
    match block:
        case TextBlock(text):
            written = {"stdout": text} if _is_of_a_command(properties) else {}
            return Content.from_text(text, additional_properties={**properties, **written})
        case JsonBlock(value):
            return Content.from_text(json.dumps(value, ensure_ascii=False), additional_properties=dict(properties))
        case MediaBlock(data, media_type):
            uri = f"data:{media_type};base64,{encode_base64(data)}"
            named = {} if block.name is None else {_NAME: block.name}
            return Content("data", uri=uri, media_type=media_type, additional_properties=named)
        case OpaqueBlock(native):
            return cast("Content", native)


def _common_properties(items: Sequence[Content]) -> dict[str, Any]:
    first, *others = map(_properties_of, items)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _properties_of(item: Content) -> Mapping[str, Any]:
    """Return the properties of an item. The framework's shell tools put into them what an output has as fields.

    The command's output is left empty: it may be large, and ``_content_of`` writes the text there.
    """
    said = item.additional_properties
    if item.type == _OUTPUT:
        ended = {"exit_code": item.exit_code or 0, "truncated": False, "timed_out": bool(item.timed_out)}
        return {**said, "stdout": "", "stderr": "", **ended}
    return {**said, "stdout": "", "stderr": ""} if _is_of_a_command(said) else said


def _is_of_a_command(properties: Mapping[str, Any]) -> bool:
    return isinstance(properties.get("stdout"), str) and isinstance(properties.get("stderr"), str)
