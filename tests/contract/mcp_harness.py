"""The harnesses of MCP: a client that does what the scripted model says, and a server with the run's tools.

One harness puts the proxy between the library's own client and server; the other uses FastMCP's server with the
middleware. JSON-RPC messages pass through streams in this process, as they would through pipes. An MCP client knows
nothing of conversations, steps or final answers: those belong to the agent, whose part this module plays.
"""

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
from fastmcp import FastMCP
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from mcp import Client
from mcp.client._memory import InMemoryTransport  # Client itself uses it for a server in this process
from mcp.server import Server
from pydantic import TypeAdapter

from coatcheck import JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.testing import Received, Transcript
from coatcheck_mcp import OffloadMiddleware, Proxy, Upstream, offloaded_references
from coatcheck_mcp.scope import folder_scope, working_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from coatcheck import Block, Scope
    from coatcheck.testing import ModelCall, Run

__all__ = ("McpHarness", "MiddlewareHarness")


CONTENT = TypeAdapter(list[types.ContentBlock])


class McpHarness:
    """Runs a client behind the proxy."""

    def connect(self, case: Run) -> AbstractAsyncContextManager[Client]:
        return client_of(case)

    def run(self, case: Run) -> Transcript:
        return anyio.run(self.arun, case)

    async def arun(self, case: Run) -> Transcript:
        async with self.connect(case) as client:
            results: list[dict[str, Any]] = []
            while calls := case.model([received(result) for result in results]):
                for call in calls:
                    if call.tool in case.final_tools:
                        answer = received(content_of(case, call)).text
                        return await transcript(client, results, answer=answer)
                    results.append(await result_of(client, case, call))
            return await transcript(client, results)


class MiddlewareHarness(McpHarness):
    """Runs a client of a FastMCP server with the middleware. The server's name is its identity."""

    def scope_of(self, identity: str) -> Scope:
        return folder_scope(identity, working_folder())

    def connect(self, case: Run) -> AbstractAsyncContextManager[Client]:
        server: FastMCP[Any] = FastMCP(case.identity or "contract")
        if case.offloader is not None:
            make = partial(OffloadMiddleware, case.offloader, scope=case.scope, native_media=False)
            server.add_middleware(case.share(make))
        for name in case.tools:
            server.add_tool(case.watch(tool_of(case, name)))
        # FastMCP's own client connects to the same server object.
        return Client(InMemoryTransport(server._mcp_server), mode="legacy")


def tool_of(case: Run, name: str) -> Tool:
    async def call(number: int) -> ToolResult:
        result = case.tools[name][number]
        parts = CONTENT.validate_python([part_of(block) for block in result.blocks])
        return case.watch_result(ToolResult(content=parts, is_error=result.is_error))

    return Tool.from_function(call, name=name)


@asynccontextmanager
async def client_of(case: Run) -> AsyncIterator[Client]:
    server = server_of(case)
    if case.offloader is None:
        async with Client(InMemoryTransport(server), mode="legacy") as client:
            yield client
        return
    upstream = Upstream(name="contract", connect=lambda: InMemoryTransport(server))
    proxy = Proxy(upstream, case.offloader, scope=case.scope, identity_of=lambda _: case.identity, native_media=False)
    async with proxy.running() as front, Client(InMemoryTransport(front), mode="legacy") as client:
        yield client


def server_of(case: Run) -> Server[Any]:
    async def list_tools(*_: object) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
        return types.ListToolsResult(
            tools=[case.watch(types.Tool(name=name, input_schema=schema)) for name in case.tools]
        )

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = case.tools[params.name][(params.arguments or {})["number"]]
        content = [part_of(block) for block in result.blocks]
        returned = types.CallToolResult.model_validate({"content": content, "isError": result.is_error})
        return case.watch_result(returned)

    return Server("contract", on_list_tools=list_tools, on_call_tool=call_tool)


async def result_of(client: Client, case: Run, call: ModelCall) -> dict[str, Any]:
    if call.tool in case.cancelled_tools:  # the host answers itself instead of making the call
        return content_of(case, call)
    meta = {"coatcheck": "keep"} if call.tool in case.kept_tools else {}
    result = await client.call_tool(call.tool, dict(call.arguments), meta=cast("types.RequestParamsMeta", meta))
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def content_of(case: Run, call: ModelCall) -> dict[str, Any]:
    """Return a result as a tool would."""
    number = call.arguments["number"]
    assert isinstance(number, int)
    return {"content": [part_of(block) for block in case.tools[call.tool][number].blocks]}


async def transcript(client: Client, results: list[dict[str, Any]], *, answer: str | None = None) -> Transcript:
    offered = frozenset(tool.name for tool in (await client.list_tools()).tools)
    return Transcript(received=tuple(map(received, results)), offered=offered, answer=answer)


def received(result: dict[str, Any]) -> Received:
    """Return the part of a result that a client gives to its model: the content, but not ``_meta``."""
    texts = [part["text"] for part in result["content"] if part["type"] == "text"]
    return Received(
        text="\n".join(texts),
        raw=json.dumps(result["content"]),
        is_error=result.get("isError"),
        references=offloaded_references(result),
    )


def part_of(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case MediaBlock():
            kind, data = block.media_type.partition("/")[0], base64.b64encode(block.data).decode()
            if kind in {"image", "audio"}:
                return {"type": kind, "data": data, "mimeType": block.media_type}
            uri = f"file:///{block.name or ''}"
            return {"type": "resource", "resource": {"uri": uri, "mimeType": block.media_type, "blob": data}}
        case OpaqueBlock():
            return {"type": "resource_link", "uri": "file:///x", "name": str(block.native)}
        case JsonBlock():
            message = "MCP has no JSON in its content"
            raise AssertionError(message)
