"""ctxtual: its ``Offload`` middleware for FastMCP servers, which has a threshold, with its SQLite store."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from ctxtual import SQLiteStore
from ctxtual.mcp import Offload
from fastmcp import FastMCP
from fastmcp.server.middleware import MiddlewareContext
from fastmcp.tools.base import ToolResult
from mcp_types import CallToolRequestParams, TextContent

from benchmarks.systems.system import CHARACTERS_PER_TOKEN, THRESHOLD_TOKENS, System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("Ctxtual",)


class Ctxtual(System):
    """Stores JSON text record by record, and other text as it is."""

    distributions = ("ctxtual", "fastmcp")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = SQLiteStore(folder / "ctxtual.db")
        self._middleware = Offload(threshold=THRESHOLD_TOKENS * CHARACTERS_PER_TOKEN, store=self.store)
        self._server = FastMCP("tools", middleware=[self._middleware])  # its own tools are called through this
        self._loop = asyncio.new_event_loop()
        self._result_id = ""

    def passing(self, text: str) -> Callable[[], object]:
        """Call the middleware around a tool whose result is ready. It awaits nothing, so no loop is needed."""
        result = _result(text)

        async def handler(_: object) -> ToolResult:
            return result

        context = _context("search", {})

        def step() -> None:
            with suppress(StopIteration):
                self._middleware.on_call_tool(context, handler).send(None)

        return step

    def offloading(self, text: str) -> Callable[[], str]:
        """Call the middleware around a tool whose result is ready."""
        result = _result(text)
        return lambda: self._loop.run_until_complete(self._offloaded(result))

    async def aoffload(self, text: str) -> str:
        """Call the middleware around a tool whose result is ready."""
        return await self._offloaded(_result(text))

    def find(self, pattern: str) -> str:
        """Search with its tool, which matches words."""
        return self._asked("result_search", query=pattern)

    async def _offloaded(self, result: ToolResult) -> str:
        async def handler(_: object) -> ToolResult:
            return result

        notice = await self._middleware.on_call_tool(_context("search", {}), handler)
        text = str(notice.content[0].text)
        self._result_id = json.loads(text)["result_id"]
        return text

    def _asked(self, name: str, **arguments: object) -> str:
        asked = self._server.call_tool(name, {"result_id": self._result_id, **arguments})
        return str(self._loop.run_until_complete(asked).content[0].text)


def _result(text: str) -> ToolResult:
    return ToolResult(content=[TextContent(type="text", text=text)])


def _context(name: str, arguments: dict[str, object]) -> MiddlewareContext[CallToolRequestParams]:
    return MiddlewareContext(message=CallToolRequestParams(name=name, arguments=arguments))
