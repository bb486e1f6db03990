"""``OffloadMiddleware`` in a FastMCP server: one line for its author."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.server.auth import AccessToken, TokenVerifier, require_scopes, restrict_tag
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.middleware import AuthMiddleware, CallNext, Middleware, MiddlewareContext
from fastmcp.server.middleware.error_handling import ErrorHandlingMiddleware
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.types import Image
from mcp import MCPError
from mcp.client.extension import advertise
from mcp_types import CreateTaskResult, Request, Task, TextContent
from pydantic import TypeAdapter
from starlette.applications import Starlette

from coatcheck import RETRIEVAL_TOOL, FileStorage, InMemoryStorage, InvalidRequest, Never, Offloader
from coatcheck_mcp import OffloadMiddleware, offloaded_references
from coatcheck_mcp.hook import APPS
from coatcheck_mcp.retrieval import definition
from tests.adapters.mcp.ports import any_port, at_url, serving, url_of
from tests.adapters.mcp.servers import LOG, PIXELS, ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import TaskStatus


class Derived(ToolResult):
    """A result type that the server defines itself."""


def server_with(middleware: OffloadMiddleware, name: str = "logs") -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP(name, middleware=[middleware])

    @server.tool
    def log() -> str:
        return LOG

    @server.tool
    def rows() -> dict[str, Any]:
        return ROWS

    @server.tool
    def small() -> dict[str, int]:
        return {"a": 1}

    @server.tool
    def picture() -> list[Any]:
        return [Image(data=PIXELS, format="png"), LOG]

    @server.tool
    def derived() -> Derived:
        return Derived(content=[TextContent(type="text", text=LOG)])

    @server.tool
    def fail() -> str:
        raise ToolError(LOG)

    @server.tool
    def fail_at_length() -> str:
        raise ToolError(LOG * 40)

    @server.tool(meta={"anthropic/maxResultSizeChars": 400_000})
    def declared() -> str:
        return LOG

    @server.tool
    async def counting(ctx: Context) -> int:
        result = await ctx.fastmcp.call_tool("log")
        return len(result.content[0].text)  # type: ignore[union-attr]

    return server


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_large_result_is_offloaded_and_read_back(mode: str) -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage())), mode=mode) as client:
        result = await client.call_tool("log")
        (reference,) = offloaded_references(result)
        back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 3999 "})
    assert result.structured_content is None
    assert result.content[0].text.startswith("Tool result offloaded.")
    assert "line 3999 of a log" in back.content[0].text


async def test_a_result_of_a_derived_type_is_offloaded_too() -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage()))) as client:
        assert offloaded_references(await client.call_tool("derived"))


async def test_equal_content_and_structured_content_are_stored_once() -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage()))) as client:
        result = await client.call_tool("rows")
    assert len(offloaded_references(result)) == 1


async def test_a_small_result_keeps_its_structured_content() -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage()))) as client:
        assert (await client.call_tool("small")).structured_content == {"a": 1}


async def test_only_tools_whose_results_stay_keep_their_schemas() -> None:
    middleware = OffloadMiddleware(InMemoryStorage(), policies={"rows": Never()})
    async with Client(server_with(middleware)) as client:
        schemas = {tool.name: tool.output_schema for tool in await client.list_tools()}
        rows = await client.call_tool("rows")
    assert schemas.pop("rows") is not None
    assert set(schemas.values()) == {None}
    assert RETRIEVAL_TOOL in schemas
    assert rows.data == ROWS


async def test_the_retrieval_tool_is_listed_as_the_proxy_lists_it() -> None:
    async with Client(FastMCP("empty", middleware=[OffloadMiddleware(InMemoryStorage())])) as client:
        (listed,) = await client.list_tools()
    shown = listed.model_dump(mode="json", by_alias=True, exclude_none=True)
    expected = definition(RETRIEVAL_TOOL)
    assert shown.pop("_meta").items() >= expected.pop("_meta").items()  # FastMCP adds keys of its own
    assert shown.items() >= expected.items()


async def test_an_image_next_to_a_log_is_offloaded_with_it() -> None:
    storage = InMemoryStorage()
    async with Client(server_with(OffloadMiddleware(storage, scope="s"))) as client:
        picture, _ = offloaded_references(await client.call_tool("picture"))
    assert Offloader(storage).load(picture, scope="s").data == PIXELS


async def test_an_error_stays_and_a_declared_size_is_respected() -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage()))) as client:
        failed = await client.call_tool("fail", raise_on_error=False)
        assert LOG in failed.content[0].text
        assert (await client.call_tool("declared")).content[0].text == LOG


async def test_an_error_that_a_tool_raises_is_offloaded_above_the_hard_limit() -> None:
    storage = InMemoryStorage()
    async with Client(server_with(OffloadMiddleware(storage, scope="s"))) as client:
        failed = await client.call_tool("fail_at_length", raise_on_error=False)
    (reference,) = offloaded_references(failed)
    assert failed.is_error
    assert Offloader(storage).load(reference, scope="s").text == LOG * 40


async def test_a_tool_that_calls_another_gets_the_original_result() -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage()))) as client:
        assert (await client.call_tool("counting")).content[0].text == str(len(LOG))


async def test_a_client_may_ask_to_keep_a_result() -> None:
    async with Client(server_with(OffloadMiddleware(InMemoryStorage()))) as client:
        assert (await client.call_tool("log", meta={"coatcheck": "keep"})).content[0].text == LOG


@pytest.mark.parametrize("shows_apps", [False, True])
async def test_a_result_for_an_app_stays_if_the_client_shows_apps(shows_apps: bool) -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.tool(lambda: LOG, name="for_the_app", meta={"ui": {"visibility": ["app"]}})
    async with Client(server, extensions=[advertise(APPS)] if shows_apps else []) as client:
        assert bool(offloaded_references(await client.call_tool("for_the_app"))) is not shows_apps


@pytest.mark.parametrize("has_the_name", [False, True])
async def test_a_server_mounted_in_another_offloads_and_its_tool_is_in_its_namespace(has_the_name: bool) -> None:
    inner, outer = server_with(OffloadMiddleware(InMemoryStorage())), FastMCP[Any]("outer")
    if has_the_name:
        inner.tool(lambda: "its own", name=RETRIEVAL_TOOL)
    outer.mount(inner, namespace="inner")
    retrieval_tool = f"inner_{'coatcheck_' if has_the_name else ''}{RETRIEVAL_TOOL}"

    async with Client(outer) as client:
        offered = {tool.name for tool in await client.list_tools()}
        result = await client.call_tool("inner_log")
        (reference,) = offloaded_references(result)
        back = await client.call_tool(retrieval_tool, {"reference": reference, "pattern": "line 3999 "})
        own = await client.call_tool(f"inner_{RETRIEVAL_TOOL}", raise_on_error=False)

    assert retrieval_tool in offered
    assert "line 3999 of a log" in back.content[0].text
    assert (own.content[0].text == "its own") is has_the_name


async def test_an_offloading_server_mounted_in_another_one_adds_no_second_retrieval_tool() -> None:
    outer: FastMCP[Any] = FastMCP("outer", middleware=[OffloadMiddleware(InMemoryStorage())])
    outer.mount(server_with(OffloadMiddleware(InMemoryStorage())), namespace="inner")

    async with Client(outer) as client:
        offered = [tool.name for tool in await client.list_tools() if tool.name.endswith(RETRIEVAL_TOOL)]
        (reference,) = offloaded_references(await client.call_tool("inner_log"))
        back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 3999 "})

    assert offered == [RETRIEVAL_TOOL]
    assert "line 3999 of a log" in back.content[0].text


async def test_the_retrieval_tool_gets_a_prefix_if_the_server_uses_its_name() -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.tool(name=RETRIEVAL_TOOL)(lambda: "the server's own")
    async with Client(server) as client:
        result = await client.call_tool("log")
        (reference,) = offloaded_references(result)
        own = await client.call_tool(f"coatcheck_{RETRIEVAL_TOOL}", {"reference": reference})
        servers = await client.call_tool(RETRIEVAL_TOOL)
    assert f"coatcheck_{RETRIEVAL_TOOL}(" in result.content[0].text
    assert "line 0 of a log" in own.content[0].text
    assert servers.content[0].text == "the server's own"


class Begun(ServerExtension):
    """Answers each call by starting a task, as FastMCP's extension for background tasks does."""

    identifier = "com.example/begun"

    async def intercept_tool_call(self, *_: object) -> CreateTaskResult:
        return BEGUN


BEGUN = CreateTaskResult(task=Task(task_id="1", status="working", created_at="now", last_updated_at="now", ttl=None))


async def test_an_answer_that_a_task_has_begun_passes_unchanged() -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.add_extension(Begun())
    assert await server.call_tool("log") is BEGUN  # type: ignore[comparison-overlap]


async def test_a_protocol_error_is_offloaded_above_the_hard_limit_too() -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.add_middleware(ErrorHandlingMiddleware(transform_errors=True))
    async with Client(server) as client:
        result = await client.call_tool("fail_at_length", raise_on_error=False)
        with pytest.raises(MCPError, match="line 0 of a log"):
            await client.call_tool("fail")
    assert result.is_error
    assert offloaded_references(result)


@pytest.mark.parametrize("namespace", [None, "kid"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_result_of_a_mounted_server_is_read_back_by_the_name_in_the_placeholder(
    namespace: str | None, mode: str
) -> None:
    parent: FastMCP[Any] = FastMCP("parent")
    parent.mount(server_with(OffloadMiddleware(InMemoryStorage())), namespace=namespace)
    before = f"{namespace}_" if namespace else ""
    async with Client(parent, mode=mode) as client:
        result = await client.call_tool(f"{before}log")
        (reference,) = offloaded_references(result)
        assert f" {before}{RETRIEVAL_TOOL}(" in result.content[0].text
        assert f"{before}{RETRIEVAL_TOOL}" in {tool.name for tool in await client.list_tools()}
        read = {"reference": reference, "pattern": "line 3999 "}
        back = await client.call_tool(f"{before}{RETRIEVAL_TOOL}", read)
    assert "line 3999 of a log" in back.content[0].text


@pytest.mark.parametrize("is_last", [False, True])
async def test_a_middleware_that_looks_up_tools_finds_the_retrieval_tool(is_last: bool) -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.auth = StaticTokenVerifier({"ann": {"client_id": "app", "sub": "ann", "scopes": ["read"]}})
    server.middleware.insert(0 if is_last else len(server.middleware), AuthMiddleware(auth=require_scopes("read")))
    async with at_url(server.http_app()) as url, Client(url, auth="ann") as client:
        (reference,) = offloaded_references(await client.call_tool("log"))
        back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 3999 "})
    assert "line 3999 of a log" in back.content[0].text


async def test_a_restricted_tool_of_the_same_name_stays_restricted() -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.tool(lambda: "for admins", name=RETRIEVAL_TOOL, tags={"admin"})
    server.auth = StaticTokenVerifier(
        {name: {"client_id": "app", "sub": name, "scopes": [name]} for name in ("admin", "read")}
    )
    server.middleware.insert(0, AuthMiddleware(auth=restrict_tag("admin", scopes=["admin"])))
    async with at_url(server.http_app()) as url, Client(url, auth="read") as ann, Client(url, auth="admin") as root:
        for _ in range(2):
            assert (await ann.call_tool(RETRIEVAL_TOOL, raise_on_error=False)).is_error
            assert (await root.call_tool(RETRIEVAL_TOOL)).content[0].text == "for admins"


async def test_servers_of_the_same_name_share_references_and_others_do_not() -> None:
    storage = InMemoryStorage()
    async with Client(server_with(OffloadMiddleware(storage))) as client:
        (reference,) = offloaded_references(await client.call_tool("log"))
    for name, is_error in (("logs", False), ("others", True)):
        async with Client(server_with(OffloadMiddleware(storage), name)) as client:
            answer = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference}, raise_on_error=False)
            assert answer.is_error is is_error


async def test_a_scope_may_come_from_the_request() -> None:
    middleware = OffloadMiddleware(InMemoryStorage(), scope=lambda context: context.message.name[:1])
    async with Client(server_with(middleware)) as client:
        (reference,) = offloaded_references(await client.call_tool("log"))
        answer = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference}, raise_on_error=False)
    assert answer.is_error


async def test_if_the_scope_fails_nothing_is_stored_and_the_result_stays() -> None:
    def fail(_: object) -> str:
        raise KeyError

    async with Client(server_with(OffloadMiddleware(InMemoryStorage(), scope=fail))) as client:
        assert (await client.call_tool("log")).content[0].text == LOG


async def test_over_http_nothing_is_stored_for_unauthenticated_clients(caplog: pytest.LogCaptureFixture) -> None:
    storage = InMemoryStorage()
    server = server_with(OffloadMiddleware(storage))
    async with at_url(server.http_app()) as url, Client(url) as client:
        assert (await client.call_tool("log")).content[0].text == LOG
        read = await client.call_tool(RETRIEVAL_TOOL, {"reference": "x"}, raise_on_error=False)
    assert read.is_error
    assert not list(storage.entries(""))
    assert "add authentication to the server" in caplog.text


@pytest.mark.parametrize("stateless", [False, True])
async def test_nothing_is_stored_for_unauthenticated_clients_of_a_host_that_took_over_the_routes(
    stateless: bool,
) -> None:
    storage = InMemoryStorage()
    inner = server_with(OffloadMiddleware(storage)).http_app(stateless_http=stateless)
    host = Starlette(routes=inner.routes, lifespan=inner.lifespan)  # FastMCP does not say which transport this is
    async with at_url(host) as url, Client(url) as ann, Client(url) as bob:
        assert (await ann.call_tool("log")).content[0].text == LOG
        listed = await bob.call_tool(RETRIEVAL_TOOL, {}, raise_on_error=False)
    assert listed.is_error
    assert not list(storage.entries(""))


async def test_over_http_each_subject_reads_what_its_own_token_stored() -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.auth = StaticTokenVerifier({name: {"client_id": "app", "sub": name} for name in ("ann", "bob")})
    async with at_url(server.http_app()) as url, Client(url, auth="ann") as ann, Client(url, auth="bob") as bob:
        (reference,) = offloaded_references(await ann.call_tool("log"))
        for client, is_error in ((ann, False), (bob, True)):
            answer = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference}, raise_on_error=False)
            assert answer.is_error is is_error


class _ClaimsOnly(TokenVerifier):
    """Names the subject in the claims only, as verifiers may."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="app", scopes=[], claims={"sub": token})


async def test_over_http_a_subject_named_only_in_the_claims_counts_too() -> None:
    server = server_with(OffloadMiddleware(InMemoryStorage()))
    server.auth = _ClaimsOnly()
    async with at_url(server.http_app()) as url, Client(url, auth="ann") as ann, Client(url, auth="bob") as bob:
        (reference,) = offloaded_references(await ann.call_tool("log"))
        for client, is_error in ((ann, False), (bob, True)):
            answer = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference}, raise_on_error=False)
            assert answer.is_error is is_error
        listed = await bob.call_tool(RETRIEVAL_TOOL, {})
        assert reference not in str(listed.content)


@pytest.mark.parametrize("claims", [{}, {"sub": ""}, {"sub": None}])
async def test_over_http_nothing_is_stored_for_tokens_that_name_no_subject(claims: dict[str, str | None]) -> None:
    storage = InMemoryStorage()
    server = server_with(OffloadMiddleware(storage))
    server.auth = StaticTokenVerifier({name: {"client_id": "app", **claims} for name in ("ann", "bob")})
    async with at_url(server.http_app()) as url, Client(url, auth="ann") as ann:
        assert (await ann.call_tool("log")).content[0].text == LOG
    assert not list(storage.entries(""))


async def test_a_tool_that_changes_or_loses_the_working_directory_changes_no_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = server_with(OffloadMiddleware(InMemoryStorage()))

    @server.tool
    def leave() -> str:
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        return "left"

    async with Client(server) as client:
        (reference,) = offloaded_references(await client.call_tool("log"))
        assert (await client.call_tool("leave")).content[0].text == "left"
        assert offloaded_references(await client.call_tool("log")) == (reference,)
        assert not (await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})).is_error


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_result_of_one_worker_is_read_back_at_another_on_the_same_storage(
    tmp_path: Path, stateless: bool
) -> None:
    references: list[str] = []
    for _ in range(2):  # they share nothing but the folder
        server = server_with(OffloadMiddleware(FileStorage(tmp_path)))
        server.auth = StaticTokenVerifier({"ann": {"client_id": "app", "sub": "ann"}})
        async with at_url(server.http_app(stateless_http=stateless)) as url, Client(url, auth="ann") as client:
            for reference in references:
                back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 3999 "})
                assert "line 3999 of a log" in back.content[0].text
            references += offloaded_references(await client.call_tool("log"))
    assert len(references) == 2


def test_an_option_without_effect_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="a server sees one call at a time"):
        OffloadMiddleware(InMemoryStorage(), max_step_tokens=10)


async def test_a_server_that_a_tool_starts_offloads_what_its_own_clients_get() -> None:
    first, leave = server_with(OffloadMiddleware(InMemoryStorage())), anyio.Event()
    app = server_with(OffloadMiddleware(InMemoryStorage(), scope="s")).http_app()
    listener = any_port()

    async def serve(*, task_status: TaskStatus[None]) -> None:
        async with serving(app, listener):
            task_status.started()
            await leave.wait()

    @first.tool
    async def start() -> None:
        await tasks.start(serve)

    async with anyio.create_task_group() as tasks:
        async with Client(first) as client:
            await client.call_tool("start")
        async with Client(url_of(listener)) as client:
            assert RETRIEVAL_TOOL in [tool.name for tool in await client.list_tools()]
            assert offloaded_references(await client.call_tool("log"))
        leave.set()


class Counting(Middleware):
    """Counts how often a server is asked for its tools."""

    def __init__(self) -> None:
        self.asked = 0

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401
        self.asked += 1
        return await call_next(context)


@pytest.mark.parametrize(
    ("method", "params"), [("tools/list", {}), *(("tools/call", {"name": name}) for name in ("log", "far_small"))]
)
async def test_a_mounted_proxy_asks_its_server_for_its_tools_no_more_often(method: str, params: dict[str, Any]) -> None:
    asked: list[int] = []
    for middleware in ([], [OffloadMiddleware(InMemoryStorage())]):
        counting, server = Counting(), FastMCP[Any]("outer", middleware=middleware)
        server.tool(lambda: LOG, name="log")
        server.mount(create_proxy(server_of(counting)), namespace="far")
        async with Client(server) as client:
            await client.list_tools()
            counting.asked = 0
            await client.session.send_request(Request[Any, str](method=method, params=params), TypeAdapter(Any))
            asked.append(counting.asked)
    assert asked[0] == asked[1]


def server_of(middleware: Middleware) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("far", middleware=[middleware])
    server.tool(lambda: "few", name="small")
    return server
