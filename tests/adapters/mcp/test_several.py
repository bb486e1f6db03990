"""Several servers behind one proxy: whose tool it is, who answers, who is asked; all in this process."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from anyio import wait_all_tasks_blocked
from mcp import Client, MCPError

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage, InvalidRequest, Never
from coatcheck_mcp import Proxy, Upstream, offloaded_references
from coatcheck_mcp import several as module
from coatcheck_mcp.names import shown_name
from tests.adapters.mcp.processes import PATIENCE
from tests.adapters.mcp.servers import (
    LOG,
    RESULTS,
    WILLING,
    Everything,
    FailsToStart,
    Limited,
    client_of,
    speaking,
    text,
    waiting,
    wire,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

KINDS = ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"]


NOT_THERE = "there is no such command"
UNLISTED = "made:///up"


class Notes(Everything):
    """A server with a resource, a template and completions that the other one does not have."""

    async def _resources(self, ctx: Any, params: Any) -> Any:
        return {"resources": [{"uri": "note:///1", "name": "first"}]}

    async def _templates(self, ctx: Any, params: Any) -> Any:
        return {"resourceTemplates": [{"uriTemplate": "note:///{number}", "name": "t"}]}

    async def _read(self, ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        if not str(params.uri).startswith("note:"):
            raise MCPError(code=types.INVALID_PARAMS, message="not a note")
        return {"contents": [{"uri": str(params.uri), "text": "a note"}]}

    async def _complete(self, ctx: Any, params: types.CompleteRequestParams) -> Any:
        return {"completion": {"values": [f"note {params.ref.model_dump()}"], "total": 1, "hasMore": False}}


def two(**others: Upstream) -> tuple[Everything, Notes, dict[str, Upstream]]:
    first, second = Everything(), Notes()
    return first, second, {"first": first.upstream(), "notes": second.upstream(), **others}


def failing() -> Upstream:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        raise FileNotFoundError(NOT_THERE)
        yield

    return Upstream(name="gone", connect=connect)


class AsksAtOnce(Everything):
    """A server that asks for the client's roots as soon as its handshake is over."""

    def __init__(self) -> None:
        super().__init__()
        self.asks, self.answered = anyio.Event(), anyio.Event()
        self.answer = ""
        self.server.add_notification_handler("notifications/initialized", types.NotificationParams, self._ask)

    async def _ask(self, ctx: Any, params: Any) -> None:
        self.asks.set()
        try:
            self.answer = str(await self._do_roots(ctx, params))
        except MCPError as error:
            self.answer = str(error)
        self.answered.set()


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


class TestNames:
    async def test_tools_and_prompts_begin_with_their_servers_name_and_one_tool_reads_back(self) -> None:
        async with client_of(two()[2]) as client:
            listed = await wire(client, "tools/list")
            prompts = await wire(client, "prompts/list")
        names = [tool["name"] for tool in listed["tools"]]
        assert names == [*(f"{server}_{name}" for server in ("first", "notes") for name in RESULTS), RETRIEVAL_TOOL]
        assert [prompt["name"] for prompt in prompts["prompts"]] == ["first_p", "notes_p"]

    async def test_a_call_goes_to_its_server_under_the_servers_own_name(self) -> None:
        first, notes, upstreams = two()
        async with client_of(upstreams) as client:
            through = await wire(client, "tools/call", {"name": "notes_small", "arguments": {"a": None}})
            prompt = await wire(client, "prompts/get", {"name": "first_p", "arguments": {"x": "1"}})
        assert through == RESULTS["small"]
        assert (first.calls, notes.calls) == ([], [("small", {"a": None})])
        assert prompt["messages"][0]["content"]["text"] == "hello {'x': '1'}"

    async def test_a_name_without_a_known_server_is_refused_with_the_known_names(self) -> None:
        async with client_of(two()[2]) as client:
            with pytest.raises(MCPError, match=r"no server has 'small': .* are first, notes"):
                await client.call_tool("small")

    @pytest.mark.parametrize("names", [("git", "git_hub"), ("retrieve", "b"), ()])
    def test_names_that_could_not_be_told_apart_are_refused(self, names: tuple[str, ...]) -> None:
        with pytest.raises(InvalidRequest, match="the servers of a Proxy must"):
            Proxy(dict.fromkeys(names, failing()), InMemoryStorage())

    @pytest.mark.parametrize("is_listed", [True, False])
    async def test_a_name_that_is_too_long_for_models_is_cut_the_same_each_time(self, is_listed: bool) -> None:
        names = ("x" * 60 + "_one", "x" * 60 + "_two", "y" * 58)
        server = Everything(more_tools=names)
        shown = [shown_name("first", name) for name in names]
        async with client_of({"first": server.upstream()}) as client:
            if is_listed:
                assert set(shown) < await names_of(client)
            for name in shown:
                await wire(client, "tools/call", {"name": name, "arguments": {}})
        assert [name for name, _ in server.calls] == list(names)
        assert [len(name) for name in shown] == [64, 64, 64]
        assert len(set(shown)) == 3
        assert shown[2] == f"first_{names[2]}"

    async def test_rules_match_the_whole_name_of_a_tool_whose_name_was_cut(self) -> None:
        long = "x" * 60
        server = Everything(more_tools=(long,))
        server.server.add_request_handler("tools/call", types.CallToolRequestParams, _returning(RESULTS["log"]))
        rules = {f"first_{long}": Never()}
        proxy = Proxy({"first": server.upstream()}, InMemoryStorage(), policy_of=rules.get)
        async with client_of(server, proxy=proxy) as client:
            stays = await wire(client, "tools/call", {"name": shown_name("first", long), "arguments": {}})
            leaves = await wire(client, "tools/call", {"name": "first_log", "arguments": {}})
        assert not offloaded_references(stays)
        assert offloaded_references(leaves)

    def test_a_server_name_leaves_room_for_a_tool_name(self) -> None:
        with pytest.raises(InvalidRequest, match="at most 48 characters, not 49"):
            Proxy({"s" * 49: failing()}, InMemoryStorage())

    async def test_results_of_all_servers_are_read_back_with_one_tool(self) -> None:
        async with client_of(two()[2]) as client:
            for tool in ("first_log", "notes_log"):
                (reference,) = offloaded_references(await client.call_tool(tool))
                assert reference.startswith(tool)
                back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
                assert "line 0 of a log" in back.content[0].text

    async def test_policies_match_the_names_that_clients_see(self) -> None:
        async with client_of(two()[2], policies={"first_rows": Never()}) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            stays, leaves = await client.call_tool("first_rows"), await client.call_tool("notes_rows")
        assert not offloaded_references(stays)
        assert offloaded_references(leaves)
        assert (listed["first_rows"].output_schema, listed["notes_rows"].output_schema) == ({"type": "object"}, None)

    async def test_a_size_that_an_author_declares_applies_to_the_tool(self) -> None:
        async with client_of(two()[2]) as client:
            assert not offloaded_references(await client.call_tool("notes_declared"))


class TestWhoAnswers:
    async def test_resources_are_joined_and_read_from_whoever_lists_them(self) -> None:
        async with client_of(two()[2]) as client:
            listed = await wire(client, "resources/list")
            templates = await wire(client, "resources/templates/list")
            note = await wire(client, "resources/read", {"uri": "note:///1"})
        assert [resource["uri"] for resource in listed["resources"]] == ["file:///a", "note:///1"]
        assert [each["uriTemplate"] for each in templates["resourceTemplates"]] == ["file:///{x}", "note:///{number}"]
        assert note["contents"][0]["text"] == "a note"

    async def test_a_resource_that_nobody_lists_is_read_from_whoever_has_a_template_for_it(self) -> None:
        async with client_of(two()[2]) as client:  # the first server would answer anything
            found = await wire(client, "resources/read", {"uri": "note:///7"})
        assert found["contents"][0]["text"] == "a note"

    async def test_servers_are_asked_one_after_the_other_for_a_resource_that_nobody_lists(self) -> None:
        first, _, upstreams = two()
        first.server.add_request_handler("resources/read", types.ReadResourceRequestParams, _refuse)
        async with client_of(upstreams) as client:
            found = await wire(client, "resources/read", {"uri": "note:///deep/er"})
        assert found["contents"][0]["text"] == "a note"

    async def test_a_resource_that_moved_is_read_from_its_new_server_after_the_change(self) -> None:
        first, notes, upstreams = two()
        moved = {"uri": "note:///1", "name": "first"}
        async with client_of(upstreams) as client:
            assert (await wire(client, "resources/read", {"uri": "note:///1"}))["contents"][0]["text"] == "a note"
            for server, resources in ((first, [moved]), (notes, [])):
                handler = _returning({"resources": resources})
                server.server.add_request_handler("resources/list", types.PaginatedRequestParams, handler)
            await client.call_tool("notes_change")
            found = await wire(client, "resources/read", {"uri": "note:///1"})
        assert found["contents"][0]["text"] == LOG

    async def test_a_resource_that_appeared_is_read_from_the_server_that_lists_it(self) -> None:
        first, notes, upstreams = two()
        async with client_of(upstreams) as client:
            assert (await wire(client, "resources/read", {"uri": "file:///b"}))["contents"][0]["text"] == LOG
            handler = _returning({"resources": [{"uri": "file:///b", "name": "b"}]})
            notes.server.add_request_handler("resources/list", types.PaginatedRequestParams, handler)
            await client.call_tool("notes_change")
            with pytest.raises(MCPError, match="not a note"):
                await wire(client, "resources/read", {"uri": "file:///b"})
        assert first.calls == []

    async def test_a_link_in_a_result_is_read_from_the_server_that_gave_it(self) -> None:
        _, notes, upstreams = two()
        link = {"type": "resource_link", "uri": "note:///deep/er", "name": "x"}
        notes.server.add_request_handler(
            "tools/call", types.CallToolRequestParams, _returning({"content": [link, text("x")]})
        )
        async with client_of(upstreams) as client:
            await client.call_tool("notes_link")
            found = await wire(client, "resources/read", {"uri": "note:///deep/er"})
        assert found["contents"][0]["text"] == "a note"

    async def test_a_malformed_template_breaks_nothing(self) -> None:
        _, notes, upstreams = two()
        template = {"uriTemplate": "note:///{", "name": "t"}
        handler = _returning({"resourceTemplates": [template]})
        notes.server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, handler)
        async with client_of({"notes": upstreams["notes"]}) as client:
            assert (await wire(client, "resources/read", {"uri": "note:///7"}))["contents"]

    async def test_a_resource_that_no_server_has_is_an_error(self) -> None:
        async with client_of({"notes": Notes().upstream()}) as client:
            with pytest.raises(MCPError, match="not a note"):
                await wire(client, "resources/read", {"uri": "x:///1"})
        async with client_of({"gone": failing()}) as client:
            with pytest.raises(MCPError, match="no server behind coatcheck has 'x:///1'"):
                await wire(client, "resources/read", {"uri": "x:///1"})

    async def test_subscriptions_go_to_the_owner_and_log_levels_to_all(self) -> None:
        first, notes, upstreams = two()
        async with client_of(upstreams) as client:
            await wire(client, "resources/subscribe", {"uri": "note:///1"})
            await wire(client, "logging/setLevel", {"level": "error"})
        assert (first.subscribed, notes.subscribed) == ([], ["note:///1"])
        assert (first.level, notes.level) == ("error", "error")

    @pytest.mark.parametrize(
        ("ref", "words"),
        [
            ({"type": "ref/prompt", "name": "notes_p"}, "'name': 'p'"),
            ({"type": "ref/resource", "uri": "note:///{number}"}, "note:///{number}"),
        ],
        ids=["prompt", "template"],
    )
    async def test_a_completion_comes_from_the_owner(self, ref: dict[str, str], words: str) -> None:
        async with client_of(two()[2]) as client:
            argument = {"name": "x", "value": "v"}
            found = await wire(client, "completion/complete", {"ref": ref, "argument": argument})
        assert words in found["completion"]["values"][0]

    async def test_a_completion_for_a_template_comes_from_its_server_even_if_another_one_matches(self) -> None:
        _, notes, upstreams = two()
        template = {"uriTemplate": "file:///q{?a,b}", "name": "q"}
        handler = _returning({"resourceTemplates": [template]})
        notes.server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, handler)
        async with client_of(upstreams) as client:
            ref, argument = {"type": "ref/resource", "uri": template["uriTemplate"]}, {"name": "a", "value": "v"}
            found = await wire(client, "completion/complete", {"ref": ref, "argument": argument})
        assert found["completion"]["values"][0].startswith("note ")

    async def test_the_client_sees_all_capabilities_and_all_instructions(self) -> None:
        first = Everything()
        first.server.instructions = None
        async with client_of({"first": first.upstream(), "notes": Notes().upstream()}) as client:
            assert client.server_capabilities.completions is not None
            assert client.server_capabilities.resources.subscribe
            assert client.server_capabilities.tools.list_changed
            assert client.instructions == "# notes\n\nBe kind."
            assert client.server_info.name == "coatcheck"
            await wire(client, "ping")

    @pytest.mark.parametrize("other", [1, [1]], ids=repr)
    async def test_if_capabilities_cannot_be_joined_those_of_the_first_server_count(
        self, other: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, notes, upstreams = two()
        for server, said in ((first.server, other), (notes.server, {"c": 2})):
            monkeypatch.setattr(server, "extensions", {"a": {"b": said}})
        async with client_of(upstreams, mode="auto") as client:
            assert client.server_capabilities.extensions == {"a": {"b": other}}


class TestWhoIsAskedAndTold:
    @pytest.mark.parametrize("name", ["sample", "elicit", "roots"])
    async def test_each_server_asks_the_client(self, name: str) -> None:
        async with client_of(two()[2], **WILLING) as client:
            answers = [(await client.call_tool(f"{server}_{name}")).content[0].text for server in ("first", "notes")]
        assert answers[0] == answers[1]

    async def test_progress_logs_and_changes_of_each_arrive(self) -> None:
        progress, logs, seen = [], [], []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append((done, total, message))

        async def on_log(params: Any) -> None:
            logs.append(params.data)

        async def on_message(message: Any) -> None:
            seen.append(message.method.removeprefix("notifications/"))

        async with client_of(two()[2], logging_callback=on_log, message_handler=on_message) as client:
            for server in ("first", "notes"):
                await client.call_tool(f"{server}_progress", progress_callback=on_progress)
                await client.call_tool(f"{server}_say")
                await client.call_tool(f"{server}_change")
                assert f"{server}_new" in await names_of(client)
        assert progress == [(1.0, 2.0, "half")] * 2
        assert logs == [{"deep": [1]}] * 2
        assert [kind for kind in seen if kind in KINDS] == KINDS * 2

    async def test_a_server_is_answered_that_asks_while_another_one_starts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limit = "coatcheck_mcp.questions.ROOTS_SECONDS"
        server, start = AsksAtOnce(), anyio.Event()

        async def start_late() -> None:
            await server.asks.wait()
            await wait_all_tasks_blocked()  # the client's handshake is not over yet, so it cannot answer
            monkeypatch.setattr(limit, PATIENCE)
            start.set()

        monkeypatch.setattr(limit, 0.0)
        upstreams = {"asks": server.upstream(), "slow": waiting(Notes(), start)}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start_late)
            async with client_of(upstreams, **WILLING):
                await server.answered.wait()
        assert server.answer == "['file:///home/x']"

    async def test_a_change_of_roots_reaches_all_servers(self) -> None:
        first, notes, upstreams = two()
        async with client_of(upstreams, **WILLING) as client:
            await client.session.send_notification(types.RootsListChangedNotification())
            await client.call_tool("first_small")
            await client.call_tool("notes_small")
        assert (first.roots_changed, notes.roots_changed) == (1, 1)

    async def test_each_client_has_sessions_of_its_own(self) -> None:
        first, notes, upstreams = two()
        proxy = Proxy(upstreams, InMemoryStorage())
        async with proxy.running() as front, Client(front, mode="legacy") as one, Client(front, mode="legacy") as two_:
            for client in (one, two_, one):
                await client.call_tool("first_small")
                await client.call_tool("notes_small")
        for server in (first, notes):
            assert server.sessions[0] is server.sessions[2]
            assert server.sessions[0] is not server.sessions[1]


class TestEras:
    @pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
    async def test_servers_of_both_eras_serve_a_client_of_each(self, mode: str) -> None:
        heard: list[str] = []

        async def on_message(message: Any) -> None:
            heard.append(message.method)

        upstreams = {"old": speaking(Everything(), "initialize"), "new": speaking(Notes(), "server/discover")}
        async with client_of(upstreams, mode=mode, message_handler=on_message) as client:
            assert {"old_small", "new_small", RETRIEVAL_TOOL} < await names_of(client)
            for server in ("old", "new"):
                (reference,) = offloaded_references(await client.call_tool(f"{server}_log"))
                assert (await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})).content
                assert (await client.get_prompt(f"{server}_p", {"x": "1"})).messages
            assert (await client.read_resource("note:///1")).contents[0].text == "a note"

    async def test_a_modern_client_hears_the_changes_of_each_server_on_its_one_stream(self) -> None:
        first, notes = Everything(), Notes()
        upstreams = {"first": speaking(first, "initialize"), "notes": speaking(notes, "initialize")}
        wanted: dict[str, Any] = {"tools_list_changed": True, "resource_subscriptions": ["note:///1"]}
        async with client_of(upstreams, mode="auto") as client, client.listen(**wanted) as events:
            for server in ("first", "notes"):
                await client.call_tool(f"{server}_change")
                with anyio.fail_after(60):
                    assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"
        assert (first.subscribed, notes.subscribed) == ([], ["note:///1"])


class TestAServerThatIsNotThere:
    async def test_a_server_that_does_not_start_takes_only_its_tools_away(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with client_of(two(gone=failing())[2]) as client:
            names = await names_of(client)
            assert (await client.call_tool("first_small")).content[0].text == "few"
            with pytest.raises(MCPError, match="could not start the MCP server gone: there is no such command"):
                await client.call_tool("gone_x")
            assert (await wire(client, "resources/read", {"uri": "note:///1"}))["contents"]
        assert not any(name.startswith("gone") for name in names)
        assert "could not start the MCP server gone" in caplog.text

    async def test_if_no_server_starts_a_later_call_starts_one(self) -> None:
        there = False

        def connect() -> Any:
            return Everything().upstream().connect() if there else failing().connect()

        async with client_of({"late": Upstream(name="late", connect=connect)}) as client:
            with pytest.raises(MCPError, match="could not start the MCP server"):
                await client.call_tool("late_small")
            there = True
            assert (await client.call_tool("late_small")).content[0].text == "few"

    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    async def test_a_server_that_starts_late_is_not_waited_for_and_is_announced_as_a_change(
        self, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
        start, told, server = anyio.Event(), anyio.Event(), Everything()

        async def on_message(message: Any) -> None:
            if start.is_set() and "tools/list_changed" in message.method:
                told.set()

        upstreams = {"slow": waiting(server, start), "notes": Notes().upstream()}
        async with client_of(upstreams, mode=mode, message_handler=on_message) as client:
            assert client.server_capabilities.tools.list_changed
            assert (await client.call_tool("notes_small")).content
            assert "slow_small" not in await names_of(client)
            if mode == "legacy":
                await wire(client, "logging/setLevel", {"level": "error"})
                start.set()
                with anyio.fail_after(60):
                    await told.wait()
                assert server.level == "error"
            else:
                async with client.listen(tools_list_changed=True) as events:
                    start.set()
                    with anyio.fail_after(60):
                        assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"
            assert "slow_small" in await names_of(client)
            assert (await client.call_tool("slow_small")).content[0].text == "few"

    async def test_a_call_waits_for_its_server_to_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
        start = anyio.Event()
        upstreams = {"slow": waiting(Everything(), start), "notes": Notes().upstream()}
        async with client_of(upstreams) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow_small")
            assert (await client.call_tool("notes_small")).content
            start.set()

    async def test_calls_that_wait_for_the_same_start_fail_with_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
        never = FailsToStart(FileNotFoundError(NOT_THERE))
        failures: list[str] = []

        async def call(client: Any) -> None:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("never_x")
            failures.append(str(refused.value))

        upstreams = {"never": never.upstream("never"), "notes": Notes().upstream()}
        async with client_of(upstreams) as client:
            for number in range(2):  # the first start is the proxy's own, the second a call's
                with anyio.fail_after(60):
                    async with anyio.create_task_group() as tasks:
                        for _ in range(5):
                            tasks.start_soon(call, client)
                        await anyio.wait_all_tasks_blocked()
                        never.starts[number].set()
                assert len(never.starts) == number + 1
        assert failures == [f"coatcheck could not start the MCP server never: {NOT_THERE}"] * 10

    async def test_a_stream_of_changes_is_served_without_a_resource_that_its_server_refuses(self) -> None:
        first, notes = Everything(), Notes()
        first.server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, _refuse)
        upstreams = {"first": speaking(first, "initialize"), "notes": speaking(notes, "initialize")}
        wanted: dict[str, Any] = {"tools_list_changed": True, "resource_subscriptions": ["file:///a", "note:///1"]}
        async with client_of(upstreams, mode="auto") as client, client.listen(**wanted) as events:
            await client.call_tool("first_change")
            with anyio.fail_after(60):
                assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"
        assert notes.subscribed == ["note:///1"]

    async def test_at_the_end_all_sessions_are_closed_and_no_new_one_is_opened(self) -> None:
        open_, opened = set[str](), list[str]()

        def counted(name: str) -> Upstream:
            @asynccontextmanager
            async def connect() -> AsyncIterator[Any]:
                async with Notes().upstream().connect() as streams:
                    open_.add(name)
                    opened.append(name)
                    yield streams
                open_.remove(name)

            return Upstream(name=name, connect=connect)

        proxy = Proxy({"a": counted("a"), "b": counted("b")}, InMemoryStorage())
        async with proxy.running() as front, Client(front, mode="legacy") as client:
            assert open_ == {"a", "b"}
            await proxy.aclose()
            assert not open_
            with pytest.raises(MCPError):
                await client.call_tool("a_small")
        assert sorted(opened) == ["a", "b"]

    async def test_a_client_may_leave_while_a_server_starts(self) -> None:
        upstreams = {"slow": waiting(Everything(), anyio.Event()), "notes": Notes().upstream()}
        proxy = Proxy(upstreams, InMemoryStorage())
        with anyio.fail_after(60):
            async with proxy.running() as front:
                client = Client(front, mode="auto")
                with anyio.move_on_after(0.2):
                    await client.__aenter__()


class TestAServerThatSaysNothing:
    """A server that does not answer holds up no other."""

    @pytest.fixture
    def _is_up(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        """Return a function that makes each time limit end as soon as another server has answered."""
        limits: list[anyio.CancelScope] = []

        @contextmanager
        def until_another_has_answered(_: float) -> Iterator[anyio.CancelScope]:
            with anyio.CancelScope() as limit:
                limits.append(limit)
                yield limit
            for each in limits:
                each.cancel()

        return lambda: monkeypatch.setattr(module, "anyio", Limited(until_another_has_answered))

    @pytest.fixture
    def connect(self, _is_up: Callable[[], None]) -> Callable[..., Any]:
        @asynccontextmanager
        async def connect(*methods: str, mode: str = "legacy") -> AsyncIterator[tuple[Any, Everything]]:
            """Connect a client to a server that leaves some requests unanswered, and to one that answers."""
            silent, other = Everything(), Everything()
            for method in methods:
                silent.server.add_request_handler(method, types.RequestParams, _wait)
            upstreams = {"silent": speaking(silent, "initialize"), "other": speaking(other, "initialize")}
            async with client_of(upstreams, mode=mode) as client:
                with suppress(MCPError):  # from here on the proxy knows all resources
                    await wire(client, "resources/unsubscribe", {"uri": "file:///a"})
                _is_up()
                with anyio.fail_after(60):
                    yield client, other

        return connect

    async def test_a_list_lacks_what_the_silent_server_has(self, connect: Callable[..., Any]) -> None:
        async with connect("tools/list") as (client, _):
            names = await names_of(client)
        assert "other_small" in names
        assert not any(name.startswith("silent") for name in names)

    async def test_another_server_is_told_of_the_log_level(self, connect: Callable[..., Any]) -> None:
        async with connect("logging/setLevel") as (client, other):
            await wire(client, "logging/setLevel", {"level": "error"})
        assert other.level == "error"

    async def test_a_resource_that_nobody_lists_is_read_from_another(self, connect: Callable[..., Any]) -> None:
        async with connect("resources/read") as (client, _):
            assert (await client.read_resource(UNLISTED)).contents[0].text == LOG

    async def test_an_unlisted_resource_is_subscribed_to_at_another_server(self, connect: Callable[..., Any]) -> None:
        async with connect("resources/subscribe") as (client, other):
            await wire(client, "resources/subscribe", {"uri": UNLISTED})
        assert other.subscribed == [UNLISTED]

    async def test_a_modern_client_subscribes_to_an_unlisted_resource_at_another_server(
        self, connect: Callable[..., Any]
    ) -> None:
        async with (
            connect("resources/subscribe", mode="auto") as (client, other),
            client.listen(resource_subscriptions=[UNLISTED]),
        ):
            pass
        assert other.subscribed == [UNLISTED]

    async def test_its_resources_and_templates_are_requested_at_the_same_time(self) -> None:
        silent, asked = Everything(), {"resources/list": anyio.Event(), "resources/templates/list": anyio.Event()}

        def waiting(method: str) -> Any:
            async def wait(*_: Any) -> None:
                asked[method].set()
                await anyio.sleep_forever()

            return wait

        for method in asked:
            silent.server.add_request_handler(method, types.RequestParams, waiting(method))
        async with client_of({"silent": silent.upstream(), "notes": Notes().upstream()}) as client:
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.read_resource, UNLISTED)
                    for each in asked.values():
                        await each.wait()
                    tasks.cancel_scope.cancel()

    async def test_the_answer_of_the_first_server_in_the_file_counts_without_waiting_for_the_others(self) -> None:
        first, silent = Everything(), Everything()
        silent.server.add_request_handler("resources/read", types.RequestParams, _wait)
        async with client_of({"first": first.upstream(), "silent": silent.upstream()}) as client:
            with anyio.fail_after(60):
                assert (await client.read_resource(UNLISTED)).contents[0].text == LOG


async def _refuse(*_: Any) -> Any:
    raise MCPError(code=types.INVALID_PARAMS, message="not mine")


async def _wait(*_: Any) -> Any:
    await anyio.sleep_forever()


def _returning(result: dict[str, Any]) -> Any:
    async def answer(*_: Any) -> Any:
        return result

    return answer
