"""Convert what a tool returned into content blocks, and blocks into such a result.

Only these two conversions and finding references in an event belong here. A result is a ``str``, a ``Part``, or any
JSON value, which may hold parts with media. ADK sends whatever is not a dictionary as ``{"result": ...}``, and
``{"error": ...}`` is its convention for errors, so both are only wrappers here. A tool of an MCP server returns the
protocol's ``CallToolResult`` as a dictionary.
"""

from __future__ import annotations

import json
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

from google.genai.types import Blob, Part
from pydantic_core import to_json, to_jsonable_python

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import (
    McpItem,
    blocks_of_items,
    find_copy,
    json_value,
    plain_blocks,
    references_of_results,
    text_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.adk.events.event import Event

__all__ = (
    "blocks_of",
    "is_error",
    "may_be_of_mcp",
    "media_tokens",
    "named",
    "offloaded_references",
    "plain_blocks_of",
    "result_of",
    "small_text_of",
)

_RESULT, _ERROR = "result", "error"

_LINK = "resource_link"

_UNKNOWN = "application/octet-stream"

_DEPTH = 2
"""The most containers around a part. ADK looks for media no deeper."""

_PLAIN = {dict, list, str, int, float, bool, NoneType}

_MAX_VALUES, _MAX_CHARACTERS = 100, 10_000
"""Limits for ``small_text_of``. A result that certainly stays has at most one byte per allowed token, so larger ones
need no look. A resource link within these limits stays too."""


def blocks_of(result: object) -> tuple[Block, ...]:
    """Convert what a tool returned into blocks, in order. A list without any part is one JSON value, like a dict."""
    content = _content_of(result)
    if _is_of_mcp(content):
        return tuple(_blocks_of_mcp(content))
    return tuple(block for entry in _entries_of(content) for block in _blocks_in(entry))


def plain_blocks_of(result: object) -> tuple[Block, ...]:
    """Convert only parts and strings. Anything else becomes the JSON text that the model would get."""
    content = _content_of(result)
    entries = content["content"] if _is_of_mcp(content) else _entries_of(content)
    return tuple(
        _block_of_part(each) if isinstance(each, Part) else plain_blocks([each], _text_of)[0] for each in entries
    )


def result_of(blocks: Sequence[Block], result: object = None) -> dict[str, Any]:
    """Convert blocks into a result. It is an error if ``result`` was one by any convention."""
    entries = [_entry_of(block) for block in blocks]
    is_text = list(map(type, blocks)) == [TextBlock]
    return {_ERROR if is_error(result) else _RESULT: entries[0] if is_text else entries}


def is_error(result: object) -> bool:
    """Return whether a result is an error, by the conventions of ADK, of its documentation, and of MCP."""
    if not isinstance(result, dict):
        return False
    return bool(result.get(_ERROR)) or result.get("status") == _ERROR or result.get("isError") is True


def small_text_of(result: object) -> str | None:
    """Return a ``str``, or the JSON text of a result with few plain values; None for any other. Fast."""
    content = _content_of(result)
    if type(content) is str:
        return content
    try:
        return to_json(content).decode() if _is_small(content) else None
    except ValueError:  # a lone surrogate, or a number with thousands of digits
        return None


def may_be_of_mcp(result: object) -> bool:
    """Return whether a result has the fields of an MCP result, whatever they contain. Fast."""
    content = _content_of(result)
    return (
        isinstance(content, dict) and isinstance(content.get("content"), list) and type(content.get("isError")) is bool
    )


def media_tokens(result: object) -> int | None:
    """Return the tokens of an MCP server's result with media; None for any other. ADK sends their base64 as text.

    May be slow.
    """
    content = _content_of(result)
    items = [McpItem.parse(item) for item in content["content"]] if _is_of_mcp(content) else []
    encoded = sum(len(item.encoded or "") for item in items)
    if not encoded:
        return None
    said = ({**content, "content": None}, *((item.text, item.said) for item in items))
    texts = sum(len(json.dumps(each, default=str, ensure_ascii=False)) for each in said)
    return text_tokens(texts, encoded=encoded)


def named(content: object) -> dict[str, Any]:
    """Return content as the model gets it: a dictionary as it is, anything else under the key that ADK uses."""
    return content if isinstance(content, dict) else {_RESULT: content}


def offloaded_references(event: Event) -> tuple[str, ...]:
    """Return the references in the tool results of an event, for user interfaces. Empty if nothing was stored.

    Pass one to ``OffloadPlugin.offloader.load`` for the whole content. With more than eight contents, the placeholder
    names only some of them, and text that lists all of them, one per line.
    """
    contents = (_content_of(response.response) for response in event.get_function_responses())
    results = [{"role": "tool", "content": content} for content in contents]
    return references_of_results(results)


# What is in a result.


def _content_of(result: object) -> Any:  # noqa: ANN401 - any value
    """Return what a result holds, without the key under which the model gets it."""
    if isinstance(result, dict) and result.keys() in ({_RESULT}, {_ERROR}):
        return next(iter(result.values()))
    return result


def _entries_of(content: object) -> Sequence[object]:
    """Return the entries of a list with parts, or any other content as the only entry."""
    return content if isinstance(content, list | tuple) and _holds_parts(content) else [content]


def _holds_parts(value: object, depth: int = 0) -> bool:
    if isinstance(value, Part) or depth == _DEPTH:
        return isinstance(value, Part)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(_holds_parts(each, depth + 1) for each in inside)


def _blocks_in(entry: object) -> Iterator[Block]:
    """Yield what is not a ``Part``, then the parts, in the order in which ADK sends them."""
    if isinstance(entry, str):
        yield TextBlock(entry)
        return
    parts: list[Part] = []
    rest = _without_parts(entry, parts)
    if rest or not parts:
        yield JsonBlock(json_value(rest, otherwise=_plain))
    yield from map(_block_of_part, parts)


def _without_parts(value: Any, taken: list[Part]) -> object:  # noqa: ANN401 - any value
    """Return a value without its parts, and append those to ``taken``. Return None for a part itself."""
    if isinstance(value, Part):
        taken.append(value)
        return None
    if not _holds_parts(value):
        return value
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    left = {key: _without_parts(each, taken) for key, each in pairs}
    left = {key: each for key, each in left.items() if not isinstance(value[key], Part)}
    return left if isinstance(value, dict) else list(left.values())


def _block_of_part(part: Part) -> Block:
    blob = part.inline_data
    if blob is not None and blob.data:
        return MediaBlock(blob.data, blob.mime_type or _UNKNOWN, name=blob.display_name)
    return OpaqueBlock(part) if part.text is None else TextBlock(part.text)


_plain = partial(to_jsonable_python, bytes_mode="base64", fallback=str)
"""Converts Python objects into what the model would get."""


def _text_of(entry: object) -> object:
    text, _, said = McpItem.parse(entry)
    if said == {"type": "text"}:
        return text
    return None if text is None and _is_item(entry) else json.dumps(entry, default=str)


def _entry_of(block: Block) -> Any:  # noqa: ANN401 - unknown parts can be anything
    match block:
        case TextBlock(text):
            return text
        case JsonBlock(value):
            return value
        case MediaBlock(data, media_type):
            return Part(inline_data=Blob(data=data, mime_type=media_type, display_name=block.name))
        case OpaqueBlock(native):
            return native


# What a tool of an MCP server returns.


def _is_of_mcp(content: Any) -> bool:  # noqa: ANN401 - any result
    """Return whether this is an MCP result. ADK always writes ``isError``, which tells one from an editor's document.

    Many such documents have a list of typed items under ``content`` too, with fields that no block would keep.
    """
    return may_be_of_mcp(content) and all(map(_is_item, content["content"]))


def _is_item(entry: Any) -> bool:  # noqa: ANN401 - any entry
    """Return whether an entry is an item of the protocol."""
    text, encoded, said = McpItem.parse(entry)
    return text is not None or encoded is not None or (isinstance(said, dict) and said.get("type") == _LINK)


def _blocks_of_mcp(content: dict[str, Any]) -> Iterator[Block]:
    """Yield the items, then everything else. Structured content that repeats the items' text is left out."""
    items = content["content"]
    for block in blocks_of_items(items):
        match block:
            case JsonBlock(value):
                yield JsonBlock(json_value(value, otherwise=_plain))
            case OpaqueBlock(link) if not _is_small(link):
                yield JsonBlock(json_value(link, otherwise=_plain))
            case _:
                yield block
    rest = {key: value for key, value in content.items() if key not in ("content", "isError")}
    if find_copy(rest.get("structuredContent"), [item["text"] for item in items if item["type"] == "text"]):
        del rest["structuredContent"]
    if rest:
        yield JsonBlock(rest)


def _is_small(content: object) -> bool:
    """Return whether a value is plain JSON with few, short values. It stops at the limit."""
    values: list[Any] = [content]
    for value in values:  # the list grows while it is iterated
        if type(value) is dict:
            values += value
            values += value.values()
        elif type(value) is list:
            values += value
        if len(values) > _MAX_VALUES:
            return False
    lengths = [len(value) for value in values if type(value) is str]
    return _PLAIN.issuperset(map(type, values)) and sum(lengths) <= _MAX_CHARACTERS
