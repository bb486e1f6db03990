"""The proxy on a port of this machine, and a server behind a URL: who gets in, and that nothing hangs."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import gc
import re
import socket
import sys
import weakref
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp import Upstream, http_limits, offloaded_references, url_upstream
from coatcheck_mcp import serving as serving_module
from coatcheck_mcp.turns import turn
from tests.adapters.mcp.ports import TOKEN, any_port, at_url, client_at, cutting, front_of, opens_stream, serving
from tests.adapters.mcp.servers import HELLO, WILLING, Everything, client_of, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ACCEPTS = {"Accept": "application/json, text/event-stream"}
OWNER = {**ACCEPTS, "Authorization": f"Bearer {TOKEN}"}
FIRST = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
UNKNOWN = "nobody knows this name"
CHANGES = {
    f"notifications/{kind}"
    for kind in ("tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated")
}


@pytest.fixture
def listener() -> socket.socket:
    return any_port()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_with_the_token_is_served(mode: str) -> None:
    async with front_of(Everything()) as url, client_at(url, mode) as client:
        (reference,) = offloaded_references(await client.call_tool("log"))
        back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
        assert "line 0 of a log" in back.content[0].text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer another"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
    ],
    ids=["no token", "another token", "another host", "a page's origin"],
)
async def test_nobody_else_gets_in(headers: dict[str, str], status: int) -> None:
    async with front_of(Everything()) as url, httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(url, headers={**ACCEPTS, **headers}, json=PING)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "headers",
    [{"Host": "127.0.0.1"}, {"Host": "localhost"}, {"Host": "[::1]"}, {"Origin": "http://localhost"}],
    ids=str,
)
async def test_port_80_may_be_left_out_as_clients_do(headers: dict[str, str]) -> None:
    async with front_of(Everything()) as url, httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(url, headers={**OWNER, **headers}, json=FIRST)
    assert answer.status_code == 200


async def test_a_session_is_useless_without_the_token_and_a_guessed_session_does_not_exist() -> None:
    async with front_of(Everything()) as url, httpx2.AsyncClient(timeout=60) as http:
        session = (await http.post(url, headers=OWNER, json=FIRST)).headers["mcp-session-id"]
        found = [
            (await http.request(method, url, headers={**headers, "Mcp-Session-Id": given}, json=PING)).status_code
            for method, headers, given in (
                ("POST", ACCEPTS, session),
                ("DELETE", ACCEPTS, session),
                ("POST", {**ACCEPTS, "Authorization": "Bearer another"}, session),
                ("POST", OWNER, "0" * 32),
                ("POST", OWNER, session),
            )
        ]
    assert found == [401, 401, 401, 404, 200]


async def test_clients_that_never_finish_their_requests_hold_up_no_other() -> None:
    halves = [b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", b"POST /mcp HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
    async with front_of(Everything()) as url:
        place = httpx2.URL(url)
        slow = [await anyio.connect_tcp(place.host, place.port or 0) for _ in range(100)]
        for number, stream in enumerate(slow):
            await stream.send(halves[number % 2])
        async with client_at(url) as client:
            assert (await client.call_tool("small")).content[0].text == "few"
        for stream in slow:
            await stream.aclose()


async def test_a_request_that_is_too_large_is_refused() -> None:
    long = {**PING, "params": {"x": "y" * 40_000_000}}
    async with front_of(Everything()) as url, httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(url, headers=OWNER, json=long)
    assert answer.status_code == 413


@pytest.mark.parametrize(("name", "words"), [("sample", "a-model"), ("elicit", "who?"), ("roots", "file:///home/x")])
async def test_a_server_asks_a_client_on_a_port_as_on_stdio(name: str, words: str) -> None:
    async with front_of(Everything()) as url, client_at(url, **WILLING) as client:
        with anyio.fail_after(30):
            assert words in (await client.call_tool(name)).content[0].text


async def test_the_proxy_gives_up_on_a_client_that_does_not_answer_for_its_roots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def say_nothing(_: Any) -> Any:
        await anyio.sleep_forever()

    monkeypatch.setattr("coatcheck_mcp.questions.ROOTS_SECONDS", 0.5)
    async with front_of(Everything()) as url, client_at(url, list_roots_callback=say_nothing) as client:
        with anyio.fail_after(60), pytest.raises(MCPError, match="timed out"):
            await client.call_tool("roots")
        assert (await client.call_tool("small")).content[0].text == "few"


async def test_progress_and_logs_arrive_on_the_stream_of_the_call() -> None:
    seen: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def on_log(params: Any) -> None:
        seen.append(params.data)

    async with front_of(Everything()) as url, client_at(url, logging_callback=on_log) as client:
        await client.call_tool("progress", progress_callback=on_progress)
        await client.call_tool("say")
    assert seen == [(1.0, 2.0, "half"), {"deep": [1]}]


async def test_list_changes_arrive_on_the_stream_that_a_client_with_a_handshake_opens() -> None:
    seen: set[str] = set()

    async def on_message(message: Any) -> None:
        seen.add(message.method)

    async with front_of(Everything()) as url, client_at(url, message_handler=on_message) as client:
        with anyio.fail_after(60):
            while len(seen) < len(CHANGES):  # nothing says when the client has opened its stream
                await client.call_tool("change")
    assert seen == CHANGES


async def test_list_changes_arrive_on_the_stream_that_a_modern_client_opens() -> None:
    seen: list[str] = []

    async def read(events: Any) -> None:
        seen.append(type(await anext(aiter(events))).__name__)

    async with (
        front_of(Everything()) as url,
        client_at(url, "auto") as client,
        client.listen(tools_list_changed=True) as events,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read, events)
        with anyio.fail_after(60):
            while not seen:  # nothing says when the proxy has opened its own stream
                await client.call_tool("change")
    assert seen == ["ToolsListChanged"]


class Counting(Everything):
    connects = 0

    def upstream(self) -> Upstream:
        inner = super().upstream()

        def connect() -> Any:
            self.connects += 1
            return inner.connect()

        return replace(inner, connect=connect)


def named(number: int) -> types.Implementation:
    return types.Implementation(name=f"client {number}", version="1")


async def test_a_dozen_modern_clients_keep_their_sessions() -> None:
    server = Counting()
    async with front_of(server) as url:
        for number in [*range(12), *range(12)]:
            async with client_at(url, "auto", client_info=named(number)) as client:
                await client.call_tool("progress")

    assert server.connects == 12


async def test_among_too_many_modern_clients_one_that_waits_for_an_answer_keeps_its_session() -> None:
    server = Counting()
    async with front_of(server) as url, client_at(url, "auto", client_info=named(0)) as first:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.call_tool, "wait")
            while not server.calls:
                await anyio.lowlevel.checkpoint()
            for number in range(1, 19):
                async with client_at(url, "auto", client_info=named(number)) as client:
                    await client.call_tool("progress")
            assert not server.cancelled
            tasks.cancel_scope.cancel()
        await first.call_tool("progress")

    assert server.connects == 19


async def test_a_session_and_its_server_end_once_the_client_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ended = Everything(), list[anyio.Event]()
    upstream = server.upstream()

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        ended.append(anyio.Event())
        try:
            async with upstream.connect() as streams:
                yield streams
        finally:
            ended[-1].set()

    monkeypatch.setattr(server, "upstream", lambda: replace(upstream, connect=connect))
    monkeypatch.setattr(serving_module, "IDLE_SECONDS", 0.05)
    async with front_of(server) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = (await http.post(url, headers=OWNER, json=FIRST)).headers["mcp-session-id"]
        with anyio.fail_after(30):
            await ended[0].wait()
        async with httpx2.AsyncClient(timeout=60) as http:
            late = await http.post(url, headers={**OWNER, "Mcp-Session-Id": session}, json=PING)
    assert late.status_code == 404


async def test_two_clients_have_separate_sessions() -> None:
    server = Everything()
    async with front_of(server) as url, client_at(url) as one, client_at(url) as two:
        for client in (one, two, one):
            await client.call_tool("small")
    first, second, third = server.sessions
    assert first is third
    assert first is not second


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_behind_a_url_gets_the_headers(mode: str) -> None:
    server, seen = Everything(), []
    app = server.server.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"x-key"))
        await app(scope, receive, send)

    async with at_url(noting) as url, client_of(url_upstream(url, headers={"X-Key": "k"}), mode=mode) as client:
        assert (await client.call_tool("small")).content[0].text == "few"
        (reference,) = offloaded_references(await client.call_tool("endless"))
        assert (await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})).content
    assert set(seen) == {b"k"}


@pytest.mark.usefixtures("cancellations_arrive")
async def test_a_server_behind_a_url_sends_requests_and_notifications_as_on_stdio() -> None:
    server, seen, changed = Everything(), list[Any](), set[str]()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def on_log(params: Any) -> None:
        seen.append(params.data)

    async def on_message(message: Any) -> None:
        changed.add(message.method)

    options = {**WILLING, "logging_callback": on_log, "message_handler": on_message}
    with anyio.fail_after(120):
        async with (
            at_url(server.server.streamable_http_app()) as url,
            client_of(url_upstream(url), **options) as client,
        ):
            for name, words in (("sample", "a-model"), ("elicit", "who?"), ("roots", "file:///home/x")):
                assert words in (await client.call_tool(name)).content[0].text
            await client.call_tool("progress", progress_callback=on_progress)
            await client.call_tool("say")
            while not changed >= CHANGES:  # nothing says when the proxy has opened its stream
                await client.call_tool("change")
            server.calls.clear()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait")
                while not server.calls:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            while not server.cancelled:
                await client.call_tool("small")
    assert seen == [(1.0, 2.0, "half"), {"deep": [1]}]


async def test_a_cut_stream_of_changes_is_reopened_reports_missed_changes_and_ends_no_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    server, opened, calling, again = Everything(), 0, anyio.Event(), anyio.Event()

    async def ends() -> bool:
        nonlocal opened
        opened += 1
        if opened == 3:
            again.set()
        elif opened < 3:
            await calling.wait()
        return opened < 3

    async def until_opened_again(*_: Any) -> str:
        calling.set()
        await again.wait()
        return "done"

    server._do_wait = until_opened_again  # type: ignore[assignment, method-assign]
    with anyio.fail_after(60):
        async with (
            at_url(cutting(server.server.streamable_http_app(), ends)) as url,
            client_of(url_upstream(url), mode="auto") as client,
            client.listen(tools_list_changed=True) as events,
        ):
            assert (await client.call_tool("wait")).content[0].text == "done"
            assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"


async def test_a_stream_of_changes_that_keeps_being_cut_is_reopened_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses, enough = list[int](), anyio.Event()

    async def ends() -> bool:
        return True

    def note(failed: int) -> float:
        pauses.append(failed)
        if len(pauses) == 5:
            enough.set()
        return 0.0

    monkeypatch.setattr("coatcheck_mcp.changes.pause_after", note)
    with anyio.fail_after(60):
        async with (
            at_url(cutting(Everything().server.streamable_http_app(), ends)) as url,
            client_of(url_upstream(url), mode="auto") as client,
            client.listen(tools_list_changed=True) as events,
        ):
            assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"
            await enough.wait()
    assert pauses[:5] == [1, 2, 3, 4, 5]


async def test_a_stream_of_changes_that_a_server_refuses_for_now_is_opened_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    app, refused = Everything().server.streamable_http_app(), 0

    async def busy(scope: Any, receive: Any, send: Any) -> None:
        nonlocal refused
        if opens_stream(scope) and refused < 2:
            refused += 1
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body"})
        else:
            await app(scope, receive, send)

    with anyio.fail_after(60):
        async with (
            at_url(busy) as url,
            client_of(url_upstream(url), mode="auto") as client,
            client.listen(tools_list_changed=True) as events,
        ):
            assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"


def forgetful(app: Any) -> Any:
    """Return a server that closes each connection after one request."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        await app(scope, receive, sending)

    return serve


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_request_that_does_not_reach_a_server_fails_alone_and_the_next_may_reach_it(
    listener: socket.socket, mode: str
) -> None:
    server, goes_on, address, answers = Everything(), anyio.Event(), listener.getsockname(), list[str]()

    async def linger(*_: Any) -> str:
        await goes_on.wait()
        return "done"

    async def call(client: Any, name: str) -> None:
        answers.append((await wire(client, "tools/call", {"name": name}))["content"][0]["text"])

    server._do_linger = linger  # type: ignore[attr-defined]
    url = f"http://127.0.0.1:{address[1]}/mcp"
    with anyio.fail_after(60):
        async with (
            serving(forgetful(server.server.streamable_http_app()), listener) as first,
            client_of(url_upstream(url), mode=mode) as client,
        ):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, client, "linger")
                while not server.calls:
                    await anyio.lowlevel.checkpoint()
                for each in first.servers:
                    each.close()
                said = f"the server was not reached, so it did nothing; try again later: connection refused at {url}"
                with pytest.raises(MCPError, match=f"^{said}$"):
                    await client.call_tool("small")
                goes_on.set()
            async with serving(Everything().server.streamable_http_app(), socket.create_server(address)):
                await call(client, "small")
    assert answers == ["done", "few"]


class TestMoreCallsThanConnections:
    @pytest.fixture(autouse=True)
    def _few_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resource.getrlimit", lambda _: (16, 16))

    @pytest.mark.parametrize(("method", "at_once"), [("call_tool", 3), ("read_resource", 1)])
    async def test_they_take_turns_whatever_their_session(self, method: str, at_once: int) -> None:
        server, running, most, answered = Everything(), 0, 0, 0

        async def crowd(*_: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            while most < at_once:
                await anyio.lowlevel.checkpoint()
            for _turn in range(200):  # time for more calls to come in
                await anyio.lowlevel.checkpoint()
            running -= 1
            return {"contents": []}

        async def ask(client: Any, name: str) -> None:
            nonlocal answered
            await getattr(client, method)(name)
            answered += 1

        server._do_crowd = crowd  # type: ignore[attr-defined]
        server.server.add_request_handler("resources/read", types.ReadResourceRequestParams, crowd)
        with anyio.fail_after(60):
            async with (
                at_url(server.server.streamable_http_app()) as url,
                client_of(dict.fromkeys("ab", url_upstream(url))) as client,
                anyio.create_task_group() as tasks,
            ):
                for number in range(30):
                    tasks.start_soon(ask, client, f"{'ab'[number % 2]}_crowd")
        assert (answered, most) == (30, at_once)

    async def test_a_server_that_nobody_has_any_more_leaves_no_turns(self) -> None:
        server = Everything()
        async with at_url(server.server.streamable_http_app()) as url:
            upstream = url_upstream(url)
            known = weakref.ref(upstream.connect)
            async with client_of(upstream) as client:
                await client.call_tool("small")
        del upstream, client
        gc.collect()

        assert known() is None

    async def test_they_take_turns_even_if_whoever_took_the_first_is_gone(self) -> None:
        class Server:
            def connect(self) -> None: ...

        server, answer, running = Server(), anyio.Event(), 0
        first = server.connect  # each time another object, which equals all others

        async def ask(connect: object) -> None:
            nonlocal running
            async with turn(connect, "tools/call"):
                running += 1
                await answer.wait()

        async with turn(first, "tools/call"):
            pass
        async with anyio.create_task_group() as tasks:
            for _ in range(9):
                tasks.start_soon(ask, server.connect)
            await anyio.wait_all_tasks_blocked()
            del first
            gc.collect()
            for _ in range(9):
                tasks.start_soon(ask, server.connect)
            await anyio.wait_all_tasks_blocked()
            assert running == 3
            answer.set()

    async def test_unanswered_calls_to_one_server_hold_up_no_call_to_another(self) -> None:
        hanging, other = Everything(), Everything()
        with anyio.fail_after(60):
            async with (
                at_url(hanging.server.streamable_http_app()) as first,
                at_url(other.server.streamable_http_app()) as second,
                client_of({"a": url_upstream(first), "b": url_upstream(second)}) as client,
                anyio.create_task_group() as tasks,
            ):
                for _ in range(5):
                    tasks.start_soon(client.call_tool, "a_wait")
                while len(hanging.calls) < 3:
                    await anyio.lowlevel.checkpoint()
                assert not (await client.call_tool("b_small")).is_error
                tasks.cancel_scope.cancel()

    @pytest.mark.usefixtures("cancellations_arrive")
    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    async def test_a_cancelled_call_gives_its_turn_to_another(self, mode: str) -> None:
        server = Everything()
        with anyio.fail_after(60):
            async with (
                at_url(server.server.streamable_http_app()) as url,
                client_of(url_upstream(url), mode=mode) as client,
            ):
                async with anyio.create_task_group() as tasks:
                    for _ in range(3):
                        tasks.start_soon(client.call_tool, "wait")
                    while len(server.calls) < 3:
                        await anyio.lowlevel.checkpoint()
                    await client.list_prompts()  # everything but calls goes on
                    tasks.cancel_scope.cancel()
                assert (await client.call_tool("small")).content[0].text == "few"
                while server.cancelled < 3:
                    await client.call_tool("small")


async def test_a_url_where_nobody_answers_is_named_in_the_error_without_its_secrets() -> None:
    with socket.socket() as deaf:  # has a port, but does not listen
        deaf.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{deaf.getsockname()[1]}/mcp"
        said = f"could not start the MCP server 127.0.0.1: connection refused at http://{address}$"
        with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True):
            async with client_of(url_upstream(f"http://user:password@{address}?key=secret")):
                pass


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/mcp",
        "127.0.0.1:8000/mcp",
        "http:///mcp",
        "",
        "http://h:notaport/",
        "http://h:99999/",
        "http://[::1/",
    ],
)
def test_an_invalid_url_is_refused_before_a_client_connects(url: str) -> None:
    with pytest.raises(ValueError, match=r"the URL must be one like https://example\.com/mcp"):
        url_upstream(url)


@pytest.mark.parametrize(("url", "said"), [("http://me:s3cret@h:port/", "http://***@h:port/"), ("h/mcp", "h/mcp")])
def test_an_invalid_url_is_named_without_its_secrets(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"not '{re.escape(said)}'$"):
        url_upstream(f"{url}?key=s3cret")


async def test_a_url_whose_host_is_unknown_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, UNKNOWN)

    monkeypatch.setattr("anyio._core._sockets.getaddrinfo", unknown)
    said = f"{UNKNOWN} at http://host.invalid/mcp$"
    with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True):
        async with client_of(url_upstream("http://host.invalid/mcp")):
            pass


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch, listener: socket.socket) -> Iterator[None]:
    """Make the environment name the listener as the proxy for every URL."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{listener.getsockname()[1]}")
    with listener:
        yield


@pytest.mark.usefixtures("proxied")
async def test_a_url_is_reached_through_the_proxy_of_the_environment(listener: socket.socket) -> None:
    app, asked = Everything().server.streamable_http_app(host="far.invalid"), set[str]()

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            asked.add(scope["path"])
            scope = {**scope, "path": httpx2.URL(scope["path"]).path}
        await app(scope, receive, send)

    async with serving(forward, listener), client_of(url_upstream("http://far.invalid/mcp")) as client:
        assert (await client.call_tool("small")).content[0].text == "few"
    assert asked == {"http://far.invalid/mcp"}


@pytest.mark.usefixtures("proxied")
async def test_a_server_on_this_machine_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with at_url(Everything().server.streamable_http_app()) as url, client_of(url_upstream(url)) as client:
        assert (await client.call_tool("small")).content[0].text == "few"


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks4"])
async def test_an_unusable_proxy_does_not_matter_on_this_machine_and_is_named_in_errors_elsewhere(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://user:s3cret@127.0.0.1:1080")
    async with at_url(Everything().server.streamable_http_app()) as url, client_of(url_upstream(url)) as client:
        assert (await client.call_tool("small")).content[0].text == "few"
    said = "ALL_PROXY names a proxy that cannot be used, so change it or unset it: (?!.*s3cret).* at http://far.invalid/mcp"
    with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True):
        async with client_of(url_upstream("http://far.invalid/mcp")):
            pass


@pytest.mark.usefixtures("proxied")
def test_the_check_of_a_proxy_reads_no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr("ssl.SSLContext.load_verify_locations", lambda *_, **__: read.append(1))
    monkeypatch.setattr("ssl.SSLContext.load_default_certs", lambda *_, **__: read.append(1))
    assert not http_limits._wrong_proxy()
    assert not read


@pytest.mark.usefixtures("proxied")
async def test_a_proxy_that_is_down_is_named_in_the_error_without_its_secrets(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]
    listener.close()
    monkeypatch.setenv("http_proxy", f"http://user:s3cret@127.0.0.1:{port}")
    said = f": connection refused at http://far.invalid/mcp, through the proxy 127.0.0.1:{port} that the environment"
    with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True):
        async with client_of(url_upstream("http://far.invalid/mcp")):
            pass


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize("excepted", ["far.invalid", "http://far.invalid"])
async def test_a_host_that_no_proxy_names_is_reached_without_the_proxy(
    monkeypatch: pytest.MonkeyPatch, excepted: str
) -> None:
    async def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, UNKNOWN)

    monkeypatch.setattr("anyio._core._sockets.getaddrinfo", unknown)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", excepted)
    said = f"{UNKNOWN} at http://far.invalid/mcp$"
    with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True):
        async with client_of(url_upstream("http://far.invalid/mcp")):
            pass


@pytest.mark.usefixtures("proxied")
async def test_a_proxy_of_the_environment_that_refuses_is_named_in_the_error(listener: socket.socket) -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 407, "headers": []})
        await send({"type": "http.response.body"})

    said = "the HTTP proxy answered 407 .* at https://far.invalid/mcp, through the proxy 127.0.0.1:"
    async with serving(refuse, listener):
        with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True):
            async with client_of(url_upstream("https://far.invalid/mcp")):
                pass
