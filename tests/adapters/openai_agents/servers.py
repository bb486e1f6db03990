"""An MCP server in the test's own process, for results that no server would send over a wire."""

# ruff: noqa: ANN401 - what the SDK and servers pass is of any type

from __future__ import annotations

from typing import Any

from agents.mcp import MCPServer
from mcp.types import CallToolResult
from mcp.types import Tool as MCPTool

__all__ = ("Serving",)


class Serving(MCPServer):
    """A server that returns the same items each time. Pass items of the protocol as mappings, and others as objects."""

    def __init__(self, *items: Any) -> None:
        super().__init__(use_structured_content=False)
        made = (
            CallToolResult.model_validate({"content": [each]}).content[0] if isinstance(each, dict) else each
            for each in items
        )
        self._result = CallToolResult(content=[]).model_copy(update={"content": list(made)})

    name = "serving"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> list[MCPTool]:
        return [MCPTool.model_validate({"name": "fetch", "inputSchema": {"type": "object", "properties": {}}})]

    async def call_tool(self, *_: Any, **__: Any) -> CallToolResult:
        return self._result

    async def list_prompts(self, *_: Any) -> Any:
        raise NotImplementedError

    async def get_prompt(self, *_: Any) -> Any:
        raise NotImplementedError
