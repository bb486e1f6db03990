"""A server behind a URL that has forgotten the session: only the request that it refused is sent again, once."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import MCPError

from coatcheck_mcp import link as link_module
from coatcheck_mcp import url_upstream
from tests.adapters.mcp.ports import at_url
from tests.adapters.mcp.processes import PATIENCE
from tests.adapters.mcp.servers import Everything, client_of, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SESSION = b"mcp-session-id"
OWN_ID = b'"the id of the request"'
UNLISTED = "made:///up"
FORGOTTEN = "the MCP server everything no longer knows this session, so its requests have ended"


class Without(Everything):
    """A server without the ``UNLISTED`` resource."""

    async def _read(self, ctx: Any, params: Any) -> Any:
        raise MCPError(code=-32_002, message="no such resource")


class Forgetful(Everything):
    """A server over HTTP that refuses requests of sessions that it was told to forget, by default with 404."""

    def __init__(self, *, as_json: bool = False) -> None:
        super().__init__()
        self.known: set[bytes] = set()
        self.forgotten: set[bytes] = set()
        self.forgets_each = False
        self.refused = 0
        self.refuses: tuple[int, bytes] = (404, b"")
        self._app = self.server.streamable_http_app(json_response=as_json)
        self.moved = ""
        """A path that redirects to the server, or empty."""

        self.url = ""

    def forget(self) -> None:
        self.forgotten |= self.known

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.moved and scope.get("path") == self.moved:
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"/mcp")]})
            await send({"type": "http.response.body"})
            return
        session = dict(scope.get("headers", ())).get(SESSION)
        if session is not None:
            self.known.add(session)
        if scope.get("method") == "POST" and (session in self.forgotten or (self.forgets_each and session)):
            self.refused += 1
            status, body = self.refuses
            if OWN_ID in body:
                asked = json.loads((await receive())["body"])
                body = body.replace(OWN_ID, json.dumps(asked["id"]).encode())
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        else:
            await self._app(scope, receive, send)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        with anyio.fail_after(PATIENCE):
            async with self.serving(), client_of(url_upstream(self.url)) as client:
                await client.call_tool("small")
                self.calls.clear()
                yield client

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with at_url(self) as url:
            self.url = url.removesuffix("/mcp") + (self.moved or "/mcp")
            yield


def refusal(why: str, identifier: object = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": {"code": -32_000, "message": why}}).encode()


def error(why: str) -> bytes:
    """Return an error with the id of the request, as from a server that has read it."""
    return refusal(why, json.loads(OWN_ID))


@pytest.fixture
def server() -> Forgetful:
    return Forgetful()


async def test_the_call_that_was_refused_is_sent_again_in_a_new_session(
    server: Forgetful, caplog: pytest.LogCaptureFixture
) -> None:
    async with server.client() as client:
        server.forget()
        with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
            assert (await client.call_tool("small")).content[0].text == "few"
    assert server.calls == [("small", None)]
    assert server.refused == 1
    assert f"tools/call is sent again: {FORGOTTEN}" in caplog.text


async def test_it_is_sent_again_if_the_servers_library_has_ended_the_session(server: Forgetful) -> None:
    async with server.client() as client, httpx2.AsyncClient(timeout=PATIENCE) as http:
        (ended,) = server.known
        assert (await http.delete(server.url, headers={"Mcp-Session-Id": ended.decode()})).is_success
        assert (await client.call_tool("small")).content[0].text == "few"


@pytest.mark.parametrize(
    "why", ["Bad Request: No valid session ID provided", "Session not found", "Invalid session", "session ID expired"]
)
async def test_it_is_sent_again_after_a_bad_request_that_names_the_session(server: Forgetful, why: str) -> None:
    async with server.client() as client:
        server.refuses = (400, refusal(why))
        server.forget()
        assert (await client.call_tool("small")).content[0].text == "few"


async def test_any_other_bad_request_is_passed_on_to_the_client(server: Forgetful) -> None:
    async with server.client() as client:
        server.refuses = (400, refusal("no such protocol"))
        server.forget()
        with pytest.raises(MCPError, match="no such protocol"):
            await client.call_tool("small")
    assert server.refused == 1


@pytest.mark.parametrize("why", ["Method not found", "the page was not found"])
async def test_an_error_with_the_id_of_the_call_is_passed_on_whatever_its_status(server: Forgetful, why: str) -> None:
    async with server.client() as client:
        server.refuses = (404, error(why))
        server.forget()
        with pytest.raises(MCPError, match=why):
            await client.call_tool("small")
        assert server.refused == 1
        server.forgotten.clear()
        assert (await client.call_tool("small")).content[0].text == "few"
    assert len(server.known) == 1


@pytest.mark.parametrize("status", [400, 404])
async def test_an_error_with_the_calls_id_that_names_a_session_ends_it_and_resends_nothing(
    server: Forgetful, status: int
) -> None:
    async with server.client() as client:
        server.refuses = (status, error("browser session expired after the click"))
        server.forget()
        with pytest.raises(MCPError, match=FORGOTTEN):
            await client.call_tool("small")
        assert server.refused == 1
        assert (await client.call_tool("small")).content[0].text == "few"


@pytest.mark.parametrize("body", [b"<html>", b"[" * 10_000, b"[404]", refusal("no such session", "server-error")])
async def test_after_any_other_404_the_call_is_sent_again(server: Forgetful, body: bytes) -> None:
    async with server.client() as client:
        server.refuses = (404, body)
        server.forget()
        assert (await client.call_tool("small")).content[0].text == "few"


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_call_behind_a_redirect_is_sent_again(*, as_json: bool) -> None:
    server = Forgetful(as_json=as_json)
    server.moved = "/old"
    async with server.client() as client:
        server.forget()
        assert (await client.call_tool("small")).content[0].text == "few"
    assert server.calls == [("small", None)]
    assert server.refused == 1


async def test_any_other_request_is_sent_again(server: Forgetful) -> None:
    async with server.client() as client:
        server.forget()
        assert (await wire(client, "prompts/list"))["prompts"][0]["name"] == "p"
    assert server.refused == 1


async def test_concurrent_calls_are_all_sent_again(server: Forgetful) -> None:
    answers: list[str] = []

    async def call(client: Any, name: str) -> None:
        answers.append((await client.call_tool(name)).content[0].text)

    names = [f"tool {number}" for number in range(8)]
    async with server.client() as client:
        server.forget()
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(call, client, name)
    assert sorted(answers) == [f"called {name}" for name in names]
    assert sorted(name for name, _ in server.calls) == names


async def test_a_call_that_the_server_had_accepted_is_not_sent_again(
    server: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "FORGOTTEN_SECONDS", 0.0)
    errors: list[MCPError] = []

    async def wait(client: Any) -> None:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("wait")
        errors.append(caught.value)

    async with server.client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(wait, client)
        while not server.calls:
            await anyio.lowlevel.checkpoint()
        server.forget()
        assert (await client.call_tool("small")).content[0].text == "few"
    assert [name for name, _ in server.calls] == ["wait", "small"]
    assert errors[0].message.startswith(FORGOTTEN)


async def test_a_call_that_the_server_had_accepted_may_still_be_answered(server: Forgetful) -> None:
    goes_on = anyio.Event()
    answers: list[str] = []

    async def linger(ctx: Any, _: Any) -> str:
        await goes_on.wait()
        return "at last"

    async def wait(client: Any) -> None:
        answers.append((await client.call_tool("linger")).content[0].text)

    server._do_linger = linger  # type: ignore[attr-defined]
    async with server.client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(wait, client)
        while not server.calls:
            await anyio.lowlevel.checkpoint()
        server.forget()
        await client.call_tool("small")
        goes_on.set()
    assert answers == ["at last"]


async def test_a_server_that_forgets_each_session_gets_the_call_twice_and_no_more(server: Forgetful) -> None:
    async with server.client() as client:
        server.forgets_each = True
        with pytest.raises(MCPError, match=FORGOTTEN):
            await client.call_tool("small")
    assert not server.calls


async def test_one_of_several_servers_may_forget_too(server: Forgetful) -> None:
    with anyio.fail_after(PATIENCE):
        async with server.serving(), client_of({"a": url_upstream(server.url), "b": Without().upstream()}) as client:
            await client.call_tool("a_small")
            server.forget()
            assert (await client.call_tool("a_small")).content[0].text == "few"
            await client.read_resource(UNLISTED)  # from here on the proxy knows all lists
            server.forget()
            assert (await client.read_resource(UNLISTED)).contents[0].text
