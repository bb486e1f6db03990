"""What users give their agents' tools to: it wraps them, adds the retrieval tool, and wraps MCP servers.

Only the public class belongs here; what happens around a call is in ``hook`` and ``mcp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from agents import FunctionTool, Tool

from coatcheck import InvalidRequest
from coatcheck.adapting import ScopeOption, check_scope, make_offloader, refuse_name_clash
from coatcheck_openai.hook import Hook, wrap_tool
from coatcheck_openai.retrieval import find_tool, reads_back, retrieval_tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents.mcp import MCPServer
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("ToolOffloader",)

Item = TypeVar("Item")

_NO_STEPS = "the SDK shows one call at a time, so leave it out"


class ToolOffloader:
    """Takes oversized tool results out of a conversation; the model reads them back with one tool.

    One serves any number of agents: ``Agent(tools=offload.tools([search]))``. For tools of MCP servers, wrap these:
    ``mcp_servers=offload.mcp_servers([server])``. Your own tools and servers are never changed: copies are. Final
    answers that ``tool_use_behavior`` names, results that code in the provider's container asked for, and results of
    tools with an ``output_json_schema`` stay. If rewriting fails, a warning is logged; the result stays as it is, or is
    stored or cut if it is above ``max_inline_tokens``.
    """

    def __init__(
        self,
        storage: StorageOrOffloader | None = None,
        *,
        scope: ScopeOption = None,
        native_media: bool = False,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure.

        Args:
            storage: a storage, or a ready ``Offloader``; None means a new ``InMemoryStorage``, which is lost when the
                process ends.
            scope: who may read back: a scope, or a callable on the ``ToolContext``. Else the ambient scope, else the
                ``group_id`` of the ``RunConfig``, else ``"default"``.
            native_media: the retrieval tool returns images and files themselves instead of a description.
            **options: the options of ``Offloader``, except ``max_step_tokens``, since the SDK shows one call at a
                time; only if ``storage`` is not an ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

        """
        self.offloader: Offloader = make_offloader(
            storage, options, owner=ToolOffloader, no_steps=_NO_STEPS, is_whole=True
        )
        self.retrieval_tool: FunctionTool = retrieval_tool(
            self.offloader, scope=check_scope(scope), native_media=native_media
        )
        self._hook = Hook(offloader=self.offloader, scope=scope, retrieval=find_tool(self.offloader))

    def tools(self, tools: Iterable[Tool] = ()) -> list[Tool]:
        """Return tools for an agent: copies of its function tools, the others as they are, and the retrieval tool.

        Only function tools have the hook. The results of others stay, such as those of tools that run at the provider.

        Raises:
            InvalidRequest: ``tools`` is not a list of the SDK's tools, or one has the name of the retrieval tool.

        """
        own = [tool for tool in _require_tools(tools) if not reads_back(tool, self.offloader)]
        refuse_name_clash([tool.name for tool in own])
        return [*map(self._wrap, own), self.retrieval_tool]

    def mcp_servers(self, servers: Iterable[MCPServer]) -> list[MCPServer]:
        """Return MCP servers for an agent that wrap these; connect and clean up either. Give it ``tools()`` too.

        Raises:
            InvalidRequest: ``servers`` is not a list of the SDK's servers.

        """
        from coatcheck_openai.mcp import OffloadedServer  # noqa: PLC0415 - the protocol is for those who use it

        return [OffloadedServer(server, self._hook) for server in _require_servers(servers)]  # type: ignore[misc] # it is one, for isinstance

    def _wrap(self, tool: Tool) -> Tool:
        # An output with a schema must follow it, or the SDK ends the run: no placeholder can take its place.
        if isinstance(tool, FunctionTool) and tool.output_json_schema is None:
            return wrap_tool(tool, self._hook)
        return tool


def _require_tools(tools: Iterable[Tool]) -> list[Tool]:
    """Return ``tools`` as a list.

    Raises:
        InvalidRequest: ``tools`` is a single tool, or holds something that is not a tool of the SDK.

    """
    listed = _listed(tools, method="tools", what="tool")
    for tool in listed:
        if not hasattr(tool, "name"):
            name = getattr(tool, "__name__", type(tool).__name__)
            msg = f"offload.tools takes tools of the SDK, not {name!r}: put @function_tool above your function"
            raise InvalidRequest(msg)
    return listed


def _require_servers(servers: Iterable[MCPServer]) -> list[MCPServer]:
    """Return ``servers`` as a list.

    Raises:
        InvalidRequest: ``servers`` is a single server, or holds something that is not a server of the SDK.

    """
    listed = _listed(servers, method="mcp_servers", what="server")
    for server in listed:
        if isinstance(server, type) or not callable(getattr(server, "call_tool", None)):
            msg = f"offload.mcp_servers takes servers of the SDK, such as MCPServerStdio(...), not {server!r}"
            raise InvalidRequest(msg)
    return listed


def _listed(given: Iterable[Item], *, method: str, what: str) -> list[Item]:
    try:
        return list(given)
    except TypeError:
        msg = f"offload.{method} takes a list of {what}s, not one {type(given).__name__}: pass [{what}]"
        raise InvalidRequest(msg) from None
