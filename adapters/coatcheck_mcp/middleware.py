"""``OffloadMiddleware``, for authors of FastMCP servers: one line takes oversized results out of the conversation.

    server = FastMCP("logs", middleware=[OffloadMiddleware(FileStorage("~/.coatcheck"))])

Only what FastMCP asks of a middleware belongs here. Nothing that it keeps between requests belongs to one of them, so
that stateless servers and several workers may share one storage.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import mcp_types
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import fastmcp_request_ctx, get_access_token, get_http_request, get_server
from fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
from fastmcp.server.providers import Provider
from fastmcp.tools import Tool
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp import MCPError
from pydantic import TypeAdapter

from coatcheck.adapting import ScopeOption, WarnOnce, check_flags, check_scope, make_offloader, resolve_scope
from coatcheck_mcp.hook import APPS, Call, exceeds_hard_limit, logger, may_leave, offload_result
from coatcheck_mcp.retrieval import CLASH, answer_call, definition, free_name, is_retrieval_name
from coatcheck_mcp.scope import folder_scope, no_scope, subject_scope, working_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fastmcp import Context, FastMCP
    from fastmcp.server.auth import AuthContext
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions, Scope
    from coatcheck.adapting import StorageOrOffloader
    from coatcheck_mcp.convert import Result

__all__ = ("OffloadMiddleware",)

_CONTENT = TypeAdapter(list[mcp_types.ContentBlock])

_OUTSIDE = object()

_inside: ContextVar[object] = ContextVar("coatcheck_mcp_inside", default=_OUTSIDE)
"""The request that is already inside an ``OffloadMiddleware``. When a tool or a transform calls another tool, the
result is for code, so it stays. When one server is mounted in another, only the outer one offloads. Tasks that a tool
starts, such as another server, inherit this variable, so it counts for this request alone."""


def _request() -> object:
    """Return what identifies the request; None if code calls the server without one."""
    request = fastmcp_request_ctx.get()
    return None if request is None or request.session is None else (request.session, request.request_id)


def _is_inside() -> bool:
    return _inside.get() == _request()


@contextmanager
def _entered() -> Iterator[None]:
    token = _inside.set(_request())
    try:
        yield
    finally:
        _inside.reset(token)


class OffloadMiddleware(ToolInjectionMiddleware):
    """Takes oversized results of a FastMCP server's tools out of its clients' conversations, and adds one tool.

    Tools with the policy ``Never()`` pass unchanged. All others advertise no output schema, and a result that left has
    no structured content. Put it last in the list of middleware, so that it stores what the tools returned before
    another one changes that. Only one that caches results goes after it, or it would answer with references that have
    expired. A server that is mounted in another may have it too; its retrieval tool is then in the namespace of the
    mount.
    """

    def __init__(
        self,
        storage: StorageOrOffloader,
        *,
        scope: ScopeOption = None,
        native_media: bool = True,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure.

        Args:
            storage: where content goes: a storage, or a ready ``Offloader``.
            scope: who may read back: a scope, or a callable that takes FastMCP's ``MiddlewareContext``. None means the
                authenticated subject or, for a server on stdio or in memory, one scope for its name and the directory
                in which it was started. A server on HTTP without either, such as one with tokens that name no subject,
                stores nothing.
            native_media: whether the retrieval tool returns images and files themselves instead of a description.
            **options: the options of ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong.
            TypeError: there is no such option.

        """
        super().__init__([])  # ``get_injected_tool`` has the tool, since its name depends on the server's other tools
        no_steps = "a server sees one call at a time, so omit it"
        self.offloader: Offloader = make_offloader(storage, options, owner=OffloadMiddleware, no_steps=no_steps)
        self._scope = check_scope(scope)
        check_flags(native_media=native_media)
        self._native_media = native_media
        self._folder = working_folder()
        self._warn = WarnOnce(logger)
        self._taken: Collection[str] = ()
        """The names for the retrieval tool that the server's own tools already have."""

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp_types.ListToolsRequest],
        call_next: CallNext[mcp_types.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Add the retrieval tool, and remove the output schemas."""
        if _is_inside():
            return await call_next(context)
        with _entered():
            tools = await call_next(context)
        listed = [
            tool.model_copy(update={"output_schema": None})
            if tool.output_schema is not None and may_leave(tool.name, self.offloader)
            else tool
            for tool in tools
        ]
        ctx = context.fastmcp_context
        name = free_name([tool.name for tool in tools]) if ctx is None else await self._retrieval_name(ctx.fastmcp)
        return [*listed, _tool(name)]

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Answer the retrieval tool; offload what any other tool returns."""
        ctx = context.fastmcp_context
        if ctx is None or _is_inside():
            return await call_next(context)
        message, own_name = context.message, await self._retrieval_name(ctx.fastmcp)
        retrieval_tool = _namespace(ctx, message.name) + own_name
        if message.name == own_name:
            scope, identity = self._scope_of(context, ctx)
            answered = await answer_call(
                message.arguments,
                offloader=self.offloader,
                scope=scope,
                identity=identity,
                name=retrieval_tool,
                native_media=self._native_media,
            )
            return _result(answered)
        tool = await ctx.fastmcp.get_tool(message.name)
        try:
            with _entered():
                result = await call_next(context)
        except (MCPError, ToolError) as error:
            if not exceeds_hard_limit(len(str(error)), self.offloader):
                raise
            result = ToolResult(content=str(error), is_error=True)  # the same to the client, but this can leave
        if not isinstance(result, ToolResult) or isinstance(result, InputRequiredToolResult):
            return result  # a notice that a task has begun, or a question to the client
        scope, identity = self._scope_of(context, ctx)
        call = Call(
            tool_name=message.name,
            arguments=message.arguments or {},
            meta=(ctx.request_context and ctx.request_context.meta) or {},
            tool_meta=(tool and tool.meta) or {},
            capabilities={"extensions": {APPS: {}}} if ctx.client_supports_extension(APPS) else {},
            scope=scope,
            identity=identity,
            retrieval_tool=retrieval_tool,
        )
        raw = _wire(result)
        sent = await offload_result(raw, call, self.offloader)
        return result if sent is raw else _result(sent)

    def get_injected_tool(self, name: str) -> Tool | None:
        """Return the retrieval tool for a server that mounts this one, which looks a tool up before it calls it."""
        if not is_retrieval_name(name) or name in self._taken or _is_inside():
            return None
        return _tool(name).model_copy(update={"auth": self._is_ours})

    async def _is_ours(self, looked_up: AuthContext) -> bool:
        """Return whether the server itself has no tool of this name.

        FastMCP prefers an injected tool to the server's own. So a middleware that checks who may call the server's tool
        would check ours instead, which everybody may call.
        """
        name = looked_up.component.name
        with _entered():
            if await get_server().get_tool(name) is None:
                return True
        self._taken = {*self._taken, name}  # from now on, ours is not offered under this name
        return False

    async def _retrieval_name(self, server: FastMCP[Any]) -> str:
        taken: list[str] = []
        with _entered():  # so that only the server's own tools are found
            # For an unknown name, the server's own ``get_tool`` would list all tools too, and a mounted proxy would ask
            # its server for them each time.
            while await Provider.get_tool(server, free_name(taken)) is not None:
                taken.append(free_name(taken))
        self._taken = taken
        if taken:
            self._warn(CLASH, taken[0], free_name(taken))
        return free_name(taken)

    def _scope_of(self, context: MiddlewareContext[Any], ctx: Context) -> tuple[Scope | Exception | None, Scope | None]:
        """Return the scope that the user chose, or an error, and the client's scope as the transport knows it."""
        try:
            given = resolve_scope(self._scope, context)
        except Exception as error:  # noqa: BLE001 - the user's callable; the guard reports it
            return error, None
        token = get_access_token()
        if token is None and ctx.transport in {None, "stdio"} and not _is_over_http():
            return given, folder_scope(ctx.fastmcp.name, self._folder)
        subject = None if token is None else subject_scope(token)
        return (no_scope() if given is None and subject is None else given), subject


def _is_over_http() -> bool:
    """Return whether the client speaks HTTP.

    FastMCP knows the transport only from its own ASGI app, not if a host takes over the app's routes.
    """
    try:
        get_http_request()
    except RuntimeError:  # there is none
        return False
    return True


def _namespace(ctx: Context, name: str) -> str:
    """Return the prefix that a mounting server adds to this server's tool names; an empty string if none does."""
    request = getattr(ctx.request_context, "_srctx", None)  # FastMCP shows it nowhere else
    shown = (getattr(request, "params", None) or {}).get("name")
    return shown.removesuffix(name) if isinstance(shown, str) and shown.endswith(name) else ""


def _wire(result: ToolResult) -> Result:
    """Return a result in the protocol's form. Its strings stay the same objects."""
    return {
        "content": [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in result.content],
        **({} if result.structured_content is None else {"structuredContent": result.structured_content}),
        "isError": result.is_error,
        **({} if result.meta is None else {"_meta": result.meta}),
    }


def _result(wire: Result) -> ToolResult:
    content = _CONTENT.validate_python(wire["content"])
    return ToolResult(content=content, meta=wire.get("_meta"), is_error=bool(wire.get("isError")))


def _tool(name: str) -> Tool:
    """Return the retrieval tool for a list. Calls of it never reach the server's tools."""
    shown = definition(name)
    return Tool(
        name=name,
        description=shown["description"],
        parameters=shown["inputSchema"],
        annotations=mcp_types.ToolAnnotations.model_validate(shown["annotations"]),
        meta=shown["_meta"],
    )
