"""What passes through the proxy unchanged, what is offloaded, and the one tool that is added; all in this process."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import base64
import gc
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import ref

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import advertise

from coatcheck import RETRIEVAL_TOOL, Always, InMemoryStorage, Never, Offloader, OverTokens
from coatcheck_mcp import Proxy, Upstream, command_upstream, offloaded_references
from coatcheck_mcp.client import passed_on
from coatcheck_mcp.hook import APPS
from tests.adapters.mcp.servers import LINK, LOG, OTHER, PIXELS, RESULTS, ROWS, Everything, client_of, waiting, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BIG = {"large_image_twice", "log", "rows", "both", "summary", "embedded", "blob", "exempt", "declared", "endless"}
SMALL = sorted(RESULTS.keys() - BIG)


async def call(client: Client, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> Any:
    params = {"name": name, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
    return await wire(client, "tools/call", params)


async def read_all(client: Client, reference: str) -> str:
    lines: list[str] = []
    start = 1
    while True:
        arguments = {"reference": reference, "line_range": {"start": start, "end": start + 99}}
        answer = await call(client, RETRIEVAL_TOOL, arguments)
        if answer.get("isError"):
            return "\n".join(lines)
        found = [line for line in answer["content"][0]["text"].splitlines() if "| " in line[:12]]
        if not found:
            return "\n".join(lines)
        lines += [line.partition("| ")[2] for line in found]
        start += len(found)


REQUESTS = [
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "file:///a"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "p", "arguments": {"x": "1"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": "v"}}),
    ("ping", {}),
    ("logging/setLevel", {"level": "error"}),
    ("resources/subscribe", {"uri": "file:///a"}),
]


class TestWhatPasses:
    @pytest.mark.parametrize(("method", "params"), REQUESTS, ids=[method for method, _ in REQUESTS])
    async def test_every_other_request_has_the_same_answer_with_and_without_the_proxy(
        self, method: str, params: dict[str, Any]
    ) -> None:
        server = Everything()
        async with Client(server.server, mode="legacy") as direct, client_of(server) as client:
            assert await wire(client, method, params) == await wire(direct, method, params)

    @pytest.mark.parametrize("name", SMALL)
    async def test_a_result_that_stays_is_the_same_byte_for_byte(self, name: str) -> None:
        server = Everything()
        async with Client(server.server, mode="legacy") as direct, client_of(server) as client:
            through, straight = await call(client, name), await call(direct, name)
        assert json.dumps(through) == json.dumps(straight)

    async def test_the_client_sees_the_server_and_not_the_proxy(self) -> None:
        server = Everything()
        async with Client(server.server, mode="legacy") as direct, client_of(server) as client:
            assert client.server_info == direct.server_info
            assert client.instructions == direct.instructions == "Be kind."
            assert client.server_capabilities == direct.server_capabilities

    async def test_the_server_gets_arguments_and_meta_as_the_client_sent_them(self) -> None:
        server = Everything()
        async with client_of(server) as client:
            await call(client, "small", {"a": None, "b": [1, {"c": None}]}, **{"x/y": {"z": None}})
        assert server.calls == [("small", {"a": None, "b": [1, {"c": None}]})]
        assert server.meta == [{"x/y": {"z": None}}]

    async def test_the_servers_errors_reach_the_client_with_code_message_and_data(self) -> None:
        server = Everything()
        async with Client(server.server, mode="legacy") as direct, client_of(server) as client:
            for method, params in [("resources/unsubscribe", {"uri": "file:///a"}), ("prompts/get", {})]:
                errors = []
                for each in (direct, client):
                    with pytest.raises(MCPError) as raised:
                        await wire(each, method, params)
                    errors.append(raised.value.error)
                assert errors[0] == errors[1]

    async def test_progress_reaches_the_call_that_asked_for_it(self) -> None:
        server, seen = Everything(), []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        async with client_of(server) as client:
            await client.call_tool("progress", progress_callback=on_progress)
            await client.call_tool("progress")
        assert seen == [(1.0, 2.0, "half")]

    async def test_log_messages_arrive_as_the_server_wrote_them(self) -> None:
        seen = []

        async def on_log(params: Any) -> None:
            seen.append((params.level, params.data, params.logger))

        async with client_of(Everything(), logging_callback=on_log) as client:
            await client.call_tool("say")
        assert seen == [("warning", {"deep": [1]}, "a.logger")]


class TestWhatLeaves:
    async def test_a_large_result_is_replaced_and_can_be_read_back_whole(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "log")
            (reference,) = offloaded_references(result)
            assert result["content"][0]["text"].startswith("Tool result offloaded.")
            assert len(json.dumps(result)) < 8_000
            assert await read_all(client, reference) == LOG.removesuffix("\n")

    async def test_resource_links_and_meta_stay(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "log")
        assert LINK in result["content"]
        assert result["_meta"]["a/b"] == 1

    async def test_structured_content_that_repeats_the_text_is_stored_once_and_does_not_stay(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "rows")
            (reference,) = offloaded_references(result)
            found = await call(client, RETRIEVAL_TOOL, {"reference": reference, "query": "rows[7].name"})
        assert "structuredContent" not in result
        assert "row 7" in found["content"][0]["text"]

    async def test_structured_content_that_differs_from_the_text_is_stored_too(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "both")
            _, second = offloaded_references(result)
            found = await call(client, RETRIEVAL_TOOL, {"reference": second, "query": "facts[7].fact"})
        assert "structuredContent" not in result
        assert OTHER["facts"][7]["fact"] in found["content"][0]["text"]

    async def test_short_text_does_not_hide_large_structured_content(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "summary")
        assert "structuredContent" not in result
        assert len(offloaded_references(result)) == 2
        assert len(json.dumps(result)) < 8_000

    async def test_an_embedded_resource_is_offloaded_like_text(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "embedded")
            reference, _ = offloaded_references(result)
            assert await read_all(client, reference) == LOG.removesuffix("\n")

    async def test_an_embedded_file_is_offloaded_and_loaded_byte_for_byte(self) -> None:
        storage = InMemoryStorage()
        proxy = Proxy(Everything().upstream(), storage, scope="s")
        async with client_of(Everything(), proxy=proxy) as client:
            result = await call(client, "blob")
        first, _, _ = offloaded_references(result)
        assert Offloader(storage).load(first, scope="s").data == PIXELS

    async def test_an_image_stays_unless_a_policy_says_otherwise(self) -> None:
        async with client_of(Everything(), policies={"image": Always()}) as client:
            result = await call(client, "image")
            (reference,) = offloaded_references(result)
            back = await call(client, RETRIEVAL_TOOL, {"reference": reference})
        assert [part["type"] for part in result["content"]] == ["text", "text"]
        image = next(part for part in back["content"] if part["type"] == "image")
        assert base64.b64decode(image["data"]) == PIXELS

    async def test_an_image_that_structured_content_repeats_stays_like_any_other(self) -> None:
        async with client_of(Everything()) as client:
            assert await call(client, "image_twice") == RESULTS["image_twice"]

    async def test_a_large_image_that_structured_content_repeats_is_offloaded_since_clients_may_show_text(self) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, "large_image_twice")
            (reference,) = offloaded_references(result)
            back = await call(client, RETRIEVAL_TOOL, {"reference": reference})
        assert "structuredContent" not in result
        image = next(part for part in back["content"] if part["type"] == "image")
        assert base64.b64decode(image["data"]) == PIXELS * 20

    async def test_an_error_stays_up_to_the_hard_limit(self) -> None:
        async with client_of(Everything()) as client:
            stays, leaves = await call(client, "error"), await call(client, "endless")
        assert stays["content"] == RESULTS["error"]["content"]
        assert leaves["isError"]
        assert offloaded_references(leaves)

    async def test_a_protocol_error_is_offloaded_above_the_hard_limit_like_any_other(self) -> None:
        async with client_of(Everything()) as client:
            with pytest.raises(MCPError) as raised:
                await call(client, "refuse", {"data": [LOG]})
            leaves = await call(client, "refuse", {"data": [LOG] * 40})
            (reference,) = offloaded_references(leaves)
            code = await call(client, RETRIEVAL_TOOL, {"reference": reference, "query": "[code, message]"})
        assert raised.value.error.data == [LOG]
        assert leaves["isError"]
        assert "-32000" in code["content"][0]["text"]

    async def test_an_offloaded_protocol_error_is_found_by_its_own_letters(self) -> None:
        async with client_of(Everything()) as client:
            leaves = await call(client, "refuse", {"data": ["für " * 60_000]})
            (reference,) = offloaded_references(leaves)
            start = await call(client, RETRIEVAL_TOOL, {"reference": reference})
        assert "für für" in start["content"][0]["text"]

    async def test_a_tool_with_the_never_policy_keeps_its_schema_and_its_result(self) -> None:
        async with client_of(Everything(), policies={"exempt": Never()}) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            listed |= {tool.name: tool for tool in (await client.list_tools(cursor="2")).tools}
            result = await call(client, "exempt")
        assert listed["exempt"].output_schema == {"type": "object"}
        assert result["structuredContent"] == ROWS

    async def test_above_the_hard_limit_a_kept_tool_returns_an_error_because_clients_check_its_schema(
        self,
    ) -> None:
        settings: Any = {"max_result_tokens": 100, "max_inline_tokens": 200, "policies": {"exempt": Never()}}
        proxy = Proxy(Everything().upstream(), InMemoryStorage(), **settings)
        async with client_of({}, proxy=proxy) as client:
            await client.list_tools()
            result = await client.call_tool("exempt")
        assert result.is_error
        assert offloaded_references(result)

    async def test_a_size_that_a_tools_author_declares_is_respected_unless_the_user_says_otherwise(self) -> None:
        async with client_of(Everything()) as client:
            assert not offloaded_references(await call(client, "declared"))
        async with client_of(Everything(), policies={"declared": OverTokens(100)}) as client:
            assert offloaded_references(await call(client, "declared"))

    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    @pytest.mark.parametrize(
        ("visibility", "shows_apps", "stays"),
        [(["app"], True, True), (["app"], False, False), (["model", "app"], True, False), ("app", True, False)],
    )
    async def test_a_result_for_an_app_stays_at_any_size_if_the_client_shows_apps_and_its_model_lacks_the_tool(
        self, mode: str, visibility: Any, shows_apps: bool, stays: bool
    ) -> None:
        server = Everything()
        meta = {"ui": {"visibility": visibility}}
        server.tools = [types.Tool(name="both", input_schema={"type": "object"}, _meta=meta)]
        proxy = Proxy(server.upstream(), InMemoryStorage(), max_result_tokens=100, max_inline_tokens=200)
        extensions = [advertise(APPS)] if shows_apps else []
        async with client_of({}, proxy=proxy, mode=mode, extensions=extensions) as client:
            result = await call(client, "both")
        assert (result.get("structuredContent") == OTHER) is stays
        assert bool(offloaded_references(result)) is not stays

    async def test_a_client_may_ask_to_keep_a_result(self) -> None:
        async with client_of(Everything()) as client:
            assert (await call(client, "log", coatcheck="keep"))["content"] == RESULTS["log"]["content"]

    @pytest.mark.parametrize("name", sorted(BIG - {"declared", "error"}))
    async def test_an_offloaded_result_becomes_no_resource_link_and_the_tool_is_listed(self, name: str) -> None:
        async with client_of(Everything()) as client:
            result = await call(client, name)
            listed = [tool.name for tool in (await client.list_tools()).tools]
        assert [part for part in result["content"] if part["type"] == "resource_link" and part != LINK] == []
        assert f"{RETRIEVAL_TOOL}(" in result["content"][0]["text"]
        assert RETRIEVAL_TOOL in listed


class TestTasks:
    """Results of tasks would bypass the proxy, so neither side is told that the other supports tasks."""

    @pytest.mark.parametrize("method", ["tasks/cancel", "tasks/get", "tasks/list", "tasks/result"])
    @pytest.mark.parametrize("several", [False, True])
    async def test_a_request_about_a_task_is_refused_with_an_error_that_says_what_to_do(
        self, method: str, several: bool
    ) -> None:
        server = Everything()
        async with client_of({"first": server.upstream()} if several else server) as client:
            with pytest.raises(MCPError, match=r"coatcheck does not pass on tasks: .* Call the tool without a task"):
                await wire(client, method, {"taskId": "t"})

    async def test_a_call_made_as_a_task_becomes_an_ordinary_call(self) -> None:
        server, seen = Everything(), []

        async def note(ctx: Any, params: Any) -> Any:
            seen.append(dict(ctx.params))
            return RESULTS["small"]

        server.server.add_request_handler("tools/call", types.CallToolRequestParams, note)
        async with client_of(server) as client:
            result = await wire(client, "tools/call", {"name": "small", "arguments": {}, "task": {"ttl": 1_000}})
        assert result == RESULTS["small"]
        assert [set(params) - {"_meta"} for params in seen] == [{"name", "arguments"}]

    async def test_neither_side_is_told_that_the_other_one_supports_tasks(self) -> None:
        extensions: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}, "a/b": {}}
        said: dict[str, Any] = {"tasks": {"list": {}}, "extensions": extensions, "roots": {}}
        assert passed_on(said) == {"extensions": {"a/b": {}}, "roots": {}}
        assert passed_on({"extensions": {"a/b": {}}}) == {"extensions": {"a/b": {}}}


class TestTheToolThatIsAdded:
    async def test_it_is_listed_once_and_no_tool_whose_results_may_be_offloaded_has_an_output_schema(self) -> None:
        async with client_of(Everything()) as client:
            first = await wire(client, "tools/list")
            second = await wire(client, "tools/list", {"cursor": first["nextCursor"]})
        names = [tool["name"] for tool in [*first["tools"], *second["tools"]]]
        assert sorted(names) == sorted([*RESULTS, RETRIEVAL_TOOL])
        assert not any("outputSchema" in tool for tool in [*first["tools"], *second["tools"]])

    async def test_its_name_gets_a_prefix_if_the_server_uses_it(self) -> None:
        server = Everything(more_tools=(RETRIEVAL_TOOL,))
        async with client_of(server) as client:
            result = await call(client, "log")
            assert f"coatcheck_{RETRIEVAL_TOOL}(" in result["content"][0]["text"]
            own = await call(client, f"coatcheck_{RETRIEVAL_TOOL}", {"reference": offloaded_references(result)[0]})
            servers = await call(client, RETRIEVAL_TOOL)
        assert "line 0 of a log" in own["content"][0]["text"]
        assert servers["content"][0]["text"] == f"called {RETRIEVAL_TOOL}"

    async def test_the_model_is_told_what_is_wrong_with_a_call(self) -> None:
        async with client_of(Everything()) as client:
            answer = await call(client, RETRIEVAL_TOOL, {"reference": "log-0000000000000000-0000"})
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith("reference not found")

    async def test_content_that_is_gone_is_reported_as_expired(self) -> None:
        storage = InMemoryStorage()
        async with client_of(Everything(), proxy=Proxy(Everything().upstream(), storage)) as client:
            (reference,) = offloaded_references(await call(client, "log"))
            for entry in list(storage.entries("")):
                storage.delete(entry.key)
            answer = await call(client, RETRIEVAL_TOOL, {"reference": reference})
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith("reference expired")

    async def test_what_it_returns_is_bounded(self) -> None:
        async with client_of(Everything(), max_result_tokens=500) as client:
            (reference,) = offloaded_references(await call(client, "log"))
            answer = await call(client, RETRIEVAL_TOOL, {"reference": reference})
        assert len(answer["content"][0]["text"]) < 500 * 6

    async def test_references_survive_restarts_and_other_scopes_do_not_see_them(self) -> None:
        storage, server = InMemoryStorage(), Everything()
        async with client_of(server, proxy=Proxy(server.upstream(), storage)) as client:
            (reference,) = offloaded_references(await call(client, "log"))
        for scope, is_error in ((None, False), ("other", True)):
            proxy = Proxy(server.upstream(), storage, scope=scope)
            async with client_of(server, proxy=proxy) as client:
                answer = await call(client, RETRIEVAL_TOOL, {"reference": reference})
                assert answer.get("isError", False) is is_error

    @pytest.mark.parametrize(("scope", "was_up"), [(None, True), ("mine", True), ("mine", False)])
    async def test_stored_content_is_read_back_while_the_server_is_down(self, scope: str | None, was_up: bool) -> None:
        storage, server = InMemoryStorage(), Everything()
        async with client_of(server, proxy=Proxy(server.upstream(), storage, scope=scope)) as client:
            (reference,) = offloaded_references(await call(client, "log"))
        upstream, is_down = server.upstream(), not was_up

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            if is_down:
                raise FileNotFoundError
            async with upstream.connect() as streams:
                yield streams

        proxy = Proxy(Upstream(name="test-server", connect=connect), storage, scope=scope)
        async with client_of(server, proxy=proxy, mode="auto") as client:
            if was_up:
                await call(client, "small")
                is_down = True
                for seat in proxy._seats.values():
                    assert seat.link is not None
                    await seat.link.aclose()
            answer = await call(client, RETRIEVAL_TOOL, {"reference": reference})
            assert not answer["isError"]
            with pytest.raises(MCPError, match="could not start the MCP server"):
                await call(client, "small")

    async def test_stored_content_is_read_back_at_once_while_a_starting_server_does_not_answer(self) -> None:
        upstream, is_silent = Everything().upstream(), False

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            if is_silent:
                await anyio.sleep_forever()
            async with upstream.connect() as streams:
                yield streams

        proxy = Proxy(Upstream(name="test-server", connect=connect), InMemoryStorage())
        async with client_of({}, proxy=proxy) as client, anyio.create_task_group() as tasks:
            (reference,) = offloaded_references(await call(client, "log"))
            (seat,) = proxy._seats.values()
            assert seat.link is not None
            await seat.link.aclose()
            is_silent = True
            tasks.start_soon(call, client, "small")  # starts the server
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(30):
                assert not (await call(client, RETRIEVAL_TOOL, {"reference": reference}))["isError"]
            tasks.cancel_scope.cancel()

    async def test_a_server_that_is_still_starting_may_have_a_tool_of_that_name(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("coatcheck_mcp.proxy.DISCOVER_SECONDS", 0.01)
        server, started, answers = Everything(more_tools=(RETRIEVAL_TOOL,)), anyio.Event(), list[Any]()

        async def ask(client: Any) -> None:
            answers.append(await call(client, RETRIEVAL_TOOL, {"of": "the server"}))

        slow = waiting(server, started)
        async with client_of(slow, scope="mine", mode="auto") as client, anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client)
            await anyio.wait_all_tasks_blocked()
            started.set()
        assert answers[0]["content"][0]["text"] == f"called {RETRIEVAL_TOOL}"
        assert server.calls == [(RETRIEVAL_TOOL, {"of": "the server"})]


class TestTheEnd:
    async def test_no_server_is_started_for_a_call_that_comes_after_it(self) -> None:
        server, connections = Everything(), 0

        def connect() -> Any:
            nonlocal connections
            connections += 1
            return server.upstream().connect()

        proxy = Proxy(Upstream(name="test-server", connect=connect), InMemoryStorage())
        async with client_of(server, proxy=proxy) as client:
            await proxy.aclose()
            with pytest.raises(MCPError):
                await call(client, "small")
        assert connections == 1

    async def test_nothing_is_kept_of_a_session_that_was_replaced(self) -> None:
        server = Everything()
        proxy = Proxy(server.upstream(), InMemoryStorage())
        async with client_of(server, proxy=proxy) as client:
            await call(client, "small")
            (seat,) = proxy._seats.values()
            assert seat.link is not None
            await seat.link.aclose()
            ended = ref(seat.link)
            await call(client, "small")
            gc.collect()
            assert ended() is None

    async def test_nothing_is_kept_of_a_client_whose_server_did_not_start(self) -> None:
        proxy = Proxy(command_upstream([sys.executable, "-c", ""]), InMemoryStorage())
        with pytest.RaisesGroup(MCPError, flatten_subgroups=True):
            async with client_of({}, proxy=proxy):
                pass
        assert not proxy._seats
