"""Requests and notifications that a server sends: sampling, elicitation, roots and changes, in both eras."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.server.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import ServerMessageMetadata

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage
from coatcheck_mcp import Proxy, Upstream, offloaded_references
from tests.adapters.mcp.servers import (
    IMAGE,
    LOG,
    WILLING,
    Everything,
    client_of,
    elicit,
    roots,
    sample,
    speaking,
    waiting,
    wire,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Generous(Everything):
    """A server that accepts an answer of several blocks, although it offered no tools."""

    async def _do_sample(self, ctx: Any, _: Any) -> Any:
        asked = types.SamplingMessage(role="user", content=types.TextContent(text="two, please"))
        params = types.CreateMessageRequestParams(messages=[asked], max_tokens=9)
        request = types.CreateMessageRequest(params=params)
        answer = await ctx.session.send_request(request, types.CreateMessageResultWithTools)
        return answer.model_dump_json(by_alias=True)


class TestWhatAServerAsksItsClient:
    async def test_a_sampled_message_arrives_as_the_client_made_it(self) -> None:
        async with client_of(Everything(), sampling_callback=sample) as client:
            said = json.loads((await client.call_tool("sample")).content[0].text)
        assert said["content"] == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        assert (said["model"], said["stopReason"]) == ("a-model", "endTurn")

    async def test_the_server_decides_whether_to_accept_a_sampled_message_of_several_blocks(self) -> None:
        async def sample_two(_: Any, __: Any) -> types.CreateMessageResultWithTools:
            return types.CreateMessageResultWithTools(role="assistant", content=[IMAGE, IMAGE], model="a-model")

        async with client_of(Generous(), sampling_callback=sample_two) as client:
            said = json.loads((await client.call_tool("sample")).content[0].text)
        assert [block["type"] for block in said["content"]] == ["image", "image"]

    async def test_the_answer_to_an_elicitation_arrives(self) -> None:
        async with client_of(Everything(), elicitation_callback=elicit) as client:
            said = json.loads((await client.call_tool("elicit")).content[0].text)
        assert said == {"action": "accept", "content": {"name": "who?"}}

    async def test_roots_and_their_changes_arrive(self) -> None:
        server = Everything()
        async with client_of(server, list_roots_callback=roots) as client:
            assert (await client.call_tool("roots")).content[0].text == "['file:///home/x']"
            await client.session.send_notification(types.RootsListChangedNotification())
            await client.call_tool("small")
        assert server.roots_changed == 1

    async def test_an_error_that_a_client_answers_with_is_quoted(self) -> None:
        async def refuse(*_: Any) -> types.ErrorData:
            return types.ErrorData(code=-1, message="the user said no")

        async with client_of(Everything(), sampling_callback=refuse) as client:
            with pytest.raises(MCPError, match="the user said no"):
                await client.call_tool("sample")

    @pytest.mark.usefixtures("cancellations_arrive")
    async def test_a_question_from_a_cancelled_call_stops_counting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("coatcheck_mcp.questions.MAX_ASKED", 1)
        monkeypatch.setattr("coatcheck_mcp.questions.ASK_SECONDS", 0.0)
        server, asked, words = Everything(), anyio.Event(), ""
        ask = server._do_sample

        async def go_on_asking(ctx: Any, arguments: Any) -> Any:
            with anyio.move_on_after(20, shield=True):
                return await ask(ctx, arguments)

        async def say_nothing_at_first(ctx: Any, params: Any) -> Any:
            if not asked.is_set():
                asked.set()
                await anyio.sleep_forever()
            return await sample(ctx, params)

        server._do_sample = go_on_asking  # type: ignore[assignment, method-assign]
        with anyio.fail_after(60):
            async with client_of(server, sampling_callback=say_nothing_at_first) as client:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.call_tool, "sample")
                    await asked.wait()
                    tasks.cancel_scope.cancel()
                while "a-model" not in words:
                    with suppress(MCPError):  # until the proxy knows that the call was cancelled
                        words = (await client.call_tool("sample")).content[0].text

    async def test_the_progress_of_a_sampling_request_arrives(self) -> None:
        server, seen = Everything(), list[Any]()

        async def on_progress(*progress: Any) -> None:
            seen.append(progress)

        async def sample_and_tell(ctx: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
            said = types.ProgressNotificationParams(
                progress_token=ctx.meta["progress_token"], progress=1, total=2, message="half"
            )
            await ctx.session.send_notification(types.ProgressNotification(params=said))
            return await sample(ctx, params)

        async def do(ctx: Any, _: Any) -> Any:
            params = types.CreateMessageRequestParams(messages=[], max_tokens=5, system_prompt="be brief")
            related = ServerMessageMetadata(related_request_id=ctx.request_id)
            return await ctx.session.send_request(
                types.CreateMessageRequest(params=params),
                types.CreateMessageResult,
                metadata=related,
                progress_callback=on_progress,
            )

        server._do_sample = do  # type: ignore[method-assign]
        async with client_of(server, sampling_callback=sample_and_tell) as client:
            await client.call_tool("sample")
        assert seen == [(1.0, 2.0, "half")]

    @pytest.mark.parametrize("name", ["sample", "elicit", "roots"])
    async def test_a_client_without_the_capability_is_not_asked(self, name: str) -> None:
        async with client_of(Everything()) as client:
            with pytest.raises(MCPError, match="cannot be asked for"):
                await client.call_tool(name)

    async def test_the_server_is_told_who_the_client_is_and_what_it_can_do_and_no_more(self) -> None:
        server, info = Everything(), types.Implementation(name="an editor", version="9")
        async with client_of(server, client_info=info, list_roots_callback=roots) as client:
            await client.call_tool("small")
        async with client_of(server) as client:
            await client.call_tool("small")
        first, second = server.clients
        assert first.client_info == info
        assert first.capabilities == types.ClientCapabilities(roots=types.RootsCapability(list_changed=True))
        assert second.capabilities == types.ClientCapabilities()


class TestWhatAServerTells:
    async def test_list_and_resource_changes_arrive_once_each(self) -> None:
        seen: list[str] = []

        async def on_message(message: Any) -> None:
            seen.append(message.method)

        async with client_of(Everything(), message_handler=on_message) as client:
            await client.call_tool("change")
            await wire(client, "ping")
        kinds = ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"]
        assert seen == [f"notifications/{kind}" for kind in kinds]

    async def test_a_new_tool_is_listed_and_called_after_the_change(self) -> None:
        async with client_of(Everything()) as client:
            await client.call_tool("change")
            names = {tool.name for tool in (await client.list_tools(cursor="2")).tools}
            assert "new" in names
            assert (await client.call_tool("new")).content[0].text == "called new"


class TestWhatIsExperimental:
    """The proxy passes on no experimental messages, so it tells neither side of such capabilities."""

    async def test_a_client_is_not_told_of_its_servers_experimental_capabilities(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = Everything()
        options = partial(server.server.create_initialization_options, experimental_capabilities={"a/channel": {}})
        monkeypatch.setattr(server.server, "create_initialization_options", options)
        for upstream in (server.upstream(), {"one": server.upstream()}):
            async with client_of(upstream) as client:
                assert client.server_capabilities.tools is not None
                assert client.server_capabilities.experimental is None

    async def test_a_server_is_not_told_of_its_clients_experimental_capabilities(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def offer(*_: Any) -> types.ClientCapabilities:
            return types.ClientCapabilities(experimental={"a/channel": {}}, sampling=types.SamplingCapability())

        server = Everything()
        monkeypatch.setattr("mcp.client.session.ClientSession._build_capabilities", offer)
        async with client_of(server) as client:
            await client.call_tool("small")
        assert server.clients[0].capabilities == types.ClientCapabilities(sampling=types.SamplingCapability())


class TestTwoClients:
    async def test_each_has_a_session_of_its_own_with_the_server(self) -> None:
        server = Everything()
        proxy = Proxy(server.upstream(), InMemoryStorage())
        async with proxy.running() as front, Client(front, mode="legacy") as one, Client(front, mode="legacy") as two:
            for client in (one, two, one):
                await client.call_tool("small")
        first, second, third = server.sessions
        assert first is third
        assert first is not second


class TestEras:
    """The protocol with a handshake (2025-11-25 and before), and the one without (2026-07-28)."""

    @pytest.mark.parametrize("client_mode", ["legacy", "2026-07-28"])
    @pytest.mark.parametrize("only", ["initialize", "server/discover", None])
    async def test_every_client_reaches_every_server(self, client_mode: str, only: str | None) -> None:
        server = Everything()
        async with client_of(speaking(server, only), mode=client_mode) as client:
            assert (await client.call_tool("small")).content[0].text == "few"
            result = await client.call_tool("log")
            (reference,) = offloaded_references(result)
            back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
            assert "line 0 of a log" in back.content[0].text
            assert (await client.read_resource("file:///a")).contents[0].text == LOG
            assert (await client.get_prompt("p", {"x": "1"})).messages
            assert RETRIEVAL_TOOL in [tool.name for tool in (await client.list_tools()).tools]

    @pytest.mark.usefixtures("cancellations_arrive")
    @pytest.mark.parametrize("client_mode", ["legacy", "2026-07-28"])
    @pytest.mark.parametrize("only", ["initialize", "server/discover"])
    async def test_a_cancelled_call_ends_at_the_server(self, client_mode: str, only: str) -> None:
        server = Everything()
        async with client_of(speaking(server, only), mode=client_mode) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait")
                while not server.calls:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(60):
                while not server.cancelled:
                    await client.call_tool("small")

    async def test_a_modern_client_also_gets_the_description_of_the_server(self) -> None:
        async with client_of(Everything(), mode="auto") as client:
            assert client.protocol_version == "2026-07-28"
            assert client.instructions == "Be kind."
            assert client.server_info is not None
            assert client.server_info.name == "everything"

    async def test_a_modern_client_of_a_server_that_starts_slowly_is_answered_before_it_gives_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("coatcheck_mcp.proxy.DISCOVER_SECONDS", 0.01)
        started = anyio.Event()
        async with client_of(waiting(Everything(), started), mode="auto") as client:
            assert client.protocol_version == "2026-07-28"
            assert client.server_capabilities.tools is not None
            started.set()
            assert (await client.call_tool("small")).content[0].text == "few"

    async def test_a_modern_server_that_loads_past_the_timeout_of_its_first_request_is_asked_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It finds that request in its pipe, and so refuses the handshake that the proxy has tried meanwhile."""
        monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.05)
        server = Everything()

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            async with create_client_server_memory_streams() as (client, streams), anyio.create_task_group() as tasks:

                async def load_and_serve() -> None:
                    await anyio.sleep(0.3)
                    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 60)  # for the next request
                    await server.server.run(*streams, server.server.create_initialization_options())

                tasks.start_soon(load_and_serve)
                yield client
                tasks.cancel_scope.cancel()

        async with client_of(Upstream(name="slow", connect=connect), mode="2026-07-28") as client:
            assert (await client.call_tool("small")).content[0].text == "few"

    async def test_a_modern_client_gets_progress_and_the_logs_that_it_asked_for(self) -> None:
        told, logs = [], []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        async def on_log(params: Any) -> None:
            logs.append(params.level)

        server = speaking(Everything(), "initialize")
        async with client_of(server, mode="auto", logging_callback=on_log, log_level="info") as client:
            await client.call_tool("progress", progress_callback=on_progress)
            await client.call_tool("say")
        async with client_of(server, mode="auto", logging_callback=on_log, log_level="error") as client:
            await client.call_tool("say")
        assert told == [(1.0, 2.0, "half")]
        assert logs == ["warning"]

    async def test_a_modern_client_is_told_of_changes_on_the_stream_that_it_opened(self) -> None:
        server = Everything()
        async with client_of(speaking(server, "initialize"), mode="auto") as client:
            listening = client.listen(tools_list_changed=True, resource_subscriptions=["file:///a"])
            async with listening as events:
                await client.call_tool("change")
                with anyio.fail_after(60):
                    kinds = [type(await anext(aiter(events))).__name__ for _ in range(2)]
        assert kinds == ["ToolsListChanged", "ResourceUpdated"]
        assert server.subscribed == ["file:///a"]

    @pytest.mark.parametrize("name", ["sample", "elicit", "roots"])
    async def test_a_server_with_a_handshake_cannot_ask_a_modern_client_and_is_not_told_that_it_could(
        self, name: str
    ) -> None:
        server = Everything()
        async with client_of(speaking(server, "initialize"), mode="auto", **WILLING) as client:
            with pytest.raises(MCPError, match="cannot be asked for"):
                await client.call_tool(name)
        assert server.clients[0].capabilities == types.ClientCapabilities()

    async def test_a_modern_server_asks_a_modern_client_with_an_input_required_result(self) -> None:
        server = Everything()

        async def ask(ctx: Any, params: types.CallToolRequestParams) -> Any:
            if params.input_responses:
                said = types.TextContent(text=str(params.input_responses["q"].model_dump()["content"]))
                return types.CallToolResult(content=[said])
            form = types.ElicitRequestFormParams(message="who?", requested_schema={"type": "object", "properties": {}})
            request = types.ElicitRequest(params=form)
            return types.InputRequiredResult(input_requests={"q": request}, request_state="s")

        server.server.add_request_handler("tools/call", types.CallToolRequestParams, ask)
        async with client_of(speaking(server, "server/discover"), mode="auto", elicitation_callback=elicit) as client:
            assert "who?" in (await client.call_tool("ask")).content[0].text
        async with client_of(speaking(server, "server/discover"), elicitation_callback=elicit) as client:
            with pytest.raises(MCPError, match="asks for input in a way"):
                await client.call_tool("ask")

    async def test_a_client_with_a_handshake_gets_what_a_modern_server_sends_on_streams(self) -> None:
        heard, changed, logs = anyio.Event(), [], []

        async def on_message(message: Any) -> None:
            changed.append(message.method)
            heard.set()

        async def on_log(params: Any) -> None:
            logs.append(params.level)

        server = speaking(Everything(), "server/discover")
        async with client_of(server, message_handler=on_message, logging_callback=on_log) as client:
            await wire(client, "logging/setLevel", {"level": "info"})
            await client.call_tool("change")
            with anyio.fail_after(30):
                await heard.wait()
            await client.call_tool("say")
            await wire(client, "ping")
        assert changed[0] == "notifications/tools/list_changed"
        assert logs == ["warning"]

    async def test_a_client_with_a_handshake_is_told_of_each_change_once(self) -> None:
        server, heard = Everything(), list[str]()
        done = anyio.Event()

        async def on_message(message: Any) -> None:
            heard.append(message.method)
            if message.method == "notifications/prompts/list_changed":
                done.set()

        async with client_of(speaking(server, "server/discover"), message_handler=on_message) as client:
            await wire(client, "resources/subscribe", {"uri": "file:///a"})
            with anyio.fail_after(30):
                while not heard:  # nothing says when the proxy has opened its stream
                    await server.bus.publish(ResourceUpdated(uri="file:///a"))
                    await wire(client, "ping")
                heard.clear()
                await server.bus.publish(ToolsListChanged())
                await server.bus.publish(PromptsListChanged())
                await done.wait()
                await wire(client, "ping")
        lists = [each for each in heard if each != "notifications/resources/updated"]
        assert lists == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]
