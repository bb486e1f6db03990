"""Wrap MCP servers rather than their tools, because the SDK recreates these for each request.

Only the wrapper and the conversions of a server's results belong here. Unlike a function tool, a server says whether a
result is an error.
"""

from __future__ import annotations

import inspect
import json
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult, TextContent

from coatcheck import Block, JsonBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import asettle, blocks_of_items, items_of_blocks, text_tokens
from coatcheck_openai.custom_data import CustomData
from coatcheck_openai.hook import Hook, Output, logger
from coatcheck_openai.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents.mcp import MCPServer
    from agents.mcp.util import MCPToolMetaContext
    from typing_extensions import Self

__all__ = ("OffloadedServer",)

_STRUCTURED, _IS_ERROR = (
    ("structured_content", "is_error")
    if "structured_content" in CallToolResult.model_fields
    else ("structuredContent", "isError")  # before version 2 of the protocol's package
)

_FIELDS_SENT = {"type", "text", "data", "mimeType", "mime_type"}
"""The fields that the SDK sends of a text or image item. It sends any other item whole."""

_calling: ContextVar[Any] = ContextVar("coatcheck_openai_calling", default=None)
"""The SDK's context of the call that an agent is about to make. The SDK passes it to the server's
``tool_meta_resolver`` right before it calls the tool, in the same ``contextvars`` context or in a copy of that."""


class OffloadedServer(Proxy):
    """A server whose results for an agent are offloaded. Host code that calls it gets the real result."""

    def __init__(self, server: MCPServer, hook: Hook) -> None:
        super().__init__(server)
        self._hook = hook
        self._custom_data = CustomData()

    async def __aenter__(self) -> Self:
        """Connect the server."""
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:  # noqa: ANN401 - as the server
        """Disconnect the server."""
        return await self._inner.__aexit__(*error)

    @property
    def tool_meta_resolver(self) -> Any:  # noqa: ANN401 - as the SDK asks for it
        """The function that the SDK calls before each tool call. It calls the server's own, if there is one."""
        return self._note_call

    @property
    def custom_data_extractor(self) -> Any:  # noqa: ANN401 - as the SDK asks for it
        """The function that the SDK calls after each tool call. It calls the server's own; None if there is none."""
        own = getattr(self._inner, "custom_data_extractor", None)
        return None if own is None else partial(self._custom_data.extract, own)

    async def _note_call(self, call: MCPToolMetaContext) -> Any:  # noqa: ANN401 - as the server's own
        _calling.set(call.run_context)
        resolver = self._inner.tool_meta_resolver
        meta = None if resolver is None else resolver(call)
        return await meta if inspect.isawaitable(meta) else meta

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, **more: Any) -> CallToolResult:  # noqa: ANN401 - as the server
        """Call the tool, then offload what is too large in its result."""
        context = _calling.get()
        _calling.set(None)
        result: CallToolResult = await self._inner.call_tool(tool_name, arguments, **more)
        if context is None:
            return result
        output = Output(
            raw=result,
            content=result,
            name=getattr(context, "tool_name", tool_name),  # the SDK may show it under a longer name
            sent=arguments,
            context=context,
            hook=self._hook,
            convert=partial(blocks_of, structured=self._inner.use_structured_content),
            convert_plainly=partial(plain_blocks_of, structured=self._inner.use_structured_content),
            restore=partial(rewrite, result),
            measured_tokens=partial(_tokens_as_text, result) if any(map(_is_encoded_text, result.content)) else None,
            is_error=_is_error(result),
        )
        shown: CallToolResult = await asettle(output, logger=logger)
        if shown is not result and (value := getattr(result, _STRUCTURED)) is not None:
            self._custom_data.note(context, shown, structured_content=MappingProxyType(value))
        return shown


def blocks_of(result: CallToolResult, *, structured: bool, media: bool = True) -> tuple[Block, ...]:
    """Convert what the SDK shows of a result: with ``structured``, any structured content it has; else its content."""
    value = getattr(result, _STRUCTURED) if structured and not _is_error(result) else None
    if value:
        return (JsonBlock(value),)
    blocks = blocks_of_items(list(map(_shown_of, result.content)), media=media)
    known = zip(blocks, result.content, strict=False)  # the last block may be about all items
    return (
        *(OpaqueBlock(part) if isinstance(block, OpaqueBlock) else block for block, part in known),
        *blocks[len(result.content) :],
    )


def plain_blocks_of(result: CallToolResult, *, structured: bool) -> tuple[Block, ...]:
    """Convert only text, and JSON to its text."""
    blocks = blocks_of(result, structured=structured, media=False)
    return tuple(TextBlock(json.dumps(block.value)) if isinstance(block, JsonBlock) else block for block in blocks)


def rewrite(result: CallToolResult, blocks: Sequence[Block]) -> CallToolResult:
    """Return a copy of a result with this content and no structured content, which the SDK would show instead."""
    return result.model_copy(update={"content": list(map(_native, items_of_blocks(blocks))), _STRUCTURED: None})


def _shown_of(part: Any) -> dict[str, Any]:  # noqa: ANN401 - an item of the protocol, or of a server's own
    """Return what the SDK sends of an item: only the content of text or an image, the whole JSON of any other item."""
    fields = _FIELDS_SENT if part.type in {"text", "image"} else None
    dumped: dict[str, Any] = part.model_dump(mode="json", by_alias=True, exclude_none=True, include=fields)
    return dumped


def _native(item: Any) -> Any:  # noqa: ANN401 - an item of the protocol, or of a server's own
    return CallToolResult.model_validate({"content": [item]}).content[0] if isinstance(item, dict) else item


def _is_encoded_text(part: Any) -> bool:  # noqa: ANN401 - an item of the protocol, or of a server's own
    """Return whether the SDK shows the base64 of a part as text: images are the only media that it knows."""
    return part.type == "audio" or isinstance(getattr(getattr(part, "resource", None), "blob", None), str)


def _tokens_as_text(result: CallToolResult) -> int:
    """Estimate the tokens of what the SDK sends of all parts, as text."""
    texts = sum(len(part.text) for part in result.content if isinstance(part, TextContent))
    encoded = sum(len(json.dumps(_shown_of(part))) for part in result.content if not isinstance(part, TextContent))
    return text_tokens(texts, encoded=encoded)


def _is_error(result: CallToolResult) -> bool:
    return bool(getattr(result, _IS_ERROR))
