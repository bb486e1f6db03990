"""``ToolOffloader``, the class for users: it wraps an agent's tools and MCP servers, and adds the retrieval tool.

Only this class belongs here; what happens around a call is in ``hook`` and ``mcp``.
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

_NO_STEPS = "the SDK passes on one call at a time, so omit it"


class ToolOffloader:
    """Takes oversized tool results out of a conversation; the model reads them back with one tool.

    One instance serves any number of agents: ``Agent(tools=offload.tools([search]))``. For the tools of MCP servers,
    wrap the servers: ``mcp_servers=offload.mcp_servers([server])``. Your own tools and servers are never changed. Some
    results stay: final answers that ``tool_use_behavior`` names, results that code in the provider's container asked
    for, and results of tools with an ``output_json_schema``. If rewriting fails, a warning is logged, and the result
    stays as it is; above ``max_inline_tokens``, it is stored or cut.
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
            scope: who may read back: a scope, or a callable that takes the ``ToolContext``. None means the ambient
                scope, else the ``group_id`` of the ``RunConfig``, else ``"default"``.
            native_media: whether the retrieval tool returns images and files themselves instead of a description.
            **options: the options of ``Offloader``, except ``max_step_tokens``, since the SDK shows one call at a
                time. Allowed only if ``storage`` is not an ``Offloader``.

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

        Only function tools get the hook. Results of other tools stay, such as those of tools that run at the provider.

        Raises:
            InvalidRequest: ``tools`` is not a list of the SDK's tools, or one has the name of the retrieval tool.

        """
        own = [tool for tool in _require_tools(tools) if not reads_back(tool, self.offloader)]
        refuse_name_clash([tool.name for tool in own])
        return [*map(self._wrap, own), self.retrieval_tool]

    def mcp_servers(self, servers: Iterable[MCPServer]) -> list[MCPServer]:
        """Return wrappers of these MCP servers for an agent, which needs ``tools()`` too.

        Connect and clean up either a wrapper or its server.

        Raises:
            InvalidRequest: ``servers`` is not a list of the SDK's servers.

        """
        from coatcheck_openai.mcp import OffloadedServer  # noqa: PLC0415 - only users of MCP need its package

        return [OffloadedServer(server, self._hook) for server in _require_servers(servers)]  # type: ignore[misc] # isinstance takes it for one

    def _wrap(self, tool: Tool) -> Tool:
        # An output with a schema must match it, or the SDK ends the run, so a placeholder cannot replace it.
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
