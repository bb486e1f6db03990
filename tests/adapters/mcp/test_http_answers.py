"""Answers over HTTP that no server should give: the call ends, nothing fills the memory, and the session goes on."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import gzip
import json
import logging
from codecs import BOM_UTF8
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import MCPError

from coatcheck_mcp import url_upstream
from coatcheck_mcp.surrogates import Mender
from tests.adapters.mcp.ports import at_url
from tests.adapters.mcp.processes import PATIENCE
from tests.adapters.mcp.servers import WILLING, client_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

LIMIT = 100_000
JSON, EVENTS = "application/json", "text/event-stream"
ID = "@ID@"
FINE = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"fine"}]}}'
LONG = FINE.replace("fine", "x" * (LIMIT + 1))
TOO_LONG = f"coatcheck refused this result: it has more than {LIMIT:,} bytes"


class Raw:
    """A server at a URL that answers a call of ``odd`` with ``body``, and any other call correctly."""

    def __init__(self, body: Iterable[bytes], *, kind: str, status: int = 200, coding: str = "identity") -> None:
        self._body = body
        self._status = status
        self._headers = [(b"content-type", kind.encode()), (b"content-encoding", coding.encode())]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        asked = json.loads((await receive()).get("body") or "{}") if scope["method"] == "POST" else {}
        match asked:
            case {"method": "initialize", "id": identifier, "params": {"protocolVersion": version}}:
                offered: dict[str, Any] = {"tools": {}}
                info = {"name": "raw", "version": "1"}
                said = {"protocolVersion": version, "capabilities": offered, "serverInfo": info}
                answer = json.dumps({"jsonrpc": "2.0", "id": identifier, "result": said}).encode()
                await self._say(send, 200, [(b"content-type", JSON.encode()), (b"mcp-session-id", b"1")], [answer])
            case {"method": "tools/list", "id": identifier}:
                answer = json.dumps({"jsonrpc": "2.0", "id": identifier, "result": {"tools": []}}).encode()
                await self._say(send, 200, [(b"content-type", JSON.encode())], [answer])
            case {"method": "tools/call", "id": identifier, "params": {"name": "odd"}}:
                number = json.dumps(identifier).encode()
                pieces = (piece.replace(ID.encode(), number) for piece in self._body)
                await self._say(send, self._status, self._headers, pieces)
            case {"id": identifier}:
                answer = FINE.replace(ID, json.dumps(identifier)).encode()
                await self._say(send, 200, [(b"content-type", JSON.encode())], [answer])
            case _:
                await self._say(send, 202, [], [])

    async def _say(self, send: Any, status: int, headers: Any, pieces: Iterable[bytes]) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def answer(self, **headers: str) -> str:
        """Return what a client is told about the call, and check that its session goes on."""
        with anyio.fail_after(PATIENCE):
            async with (
                at_url(self) as url,
                client_of(url_upstream(url, headers=headers, max_bytes=LIMIT)) as client,
            ):
                try:
                    said: str = (await client.call_tool("odd")).content[0].text
                except MCPError as error:
                    said = error.message
                assert (await client.call_tool("any")).content[0].text == "fine"
        return said


def event(line: str) -> bytes:
    return f"event: message\ndata: {line}\n\n".encode()


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("kind", ["text/html", JSON, EVENTS])
async def test_an_endless_error_body_is_not_read(status: int, kind: str) -> None:
    assert TOO_LONG in await Raw((b"x" * 10_000 for _ in range(1_000)), kind=kind, status=status).answer()


@pytest.mark.parametrize("kind", [JSON, "Application/JSON; charset=utf-8", EVENTS])
async def test_an_answer_that_is_too_long_is_an_error_for_its_call_alone(kind: str) -> None:
    body = event(LONG) if kind == EVENTS else LONG.encode()
    assert (await Raw([body], kind=kind).answer()).startswith(TOO_LONG)


@pytest.mark.parametrize("status", [200, 404])
async def test_an_answer_that_is_short_only_while_compressed_is_too_long(status: int) -> None:
    packed = gzip.compress(b" " * 30_000_000)
    assert len(packed) < LIMIT
    assert TOO_LONG in await Raw([packed], kind=JSON, status=status, coding="gzip").answer()


async def test_a_compressed_answer_is_read() -> None:
    line = FINE.replace(ID, "null").encode()  # the id is not known yet
    assert await Raw([gzip.compress(line)], kind=JSON, coding="gzip").answer() == "fine"


@pytest.mark.parametrize("kind", [JSON, EVENTS])
async def test_a_cut_emoji_loses_no_result(kind: str) -> None:
    line = FINE.replace("fine", "a\\ud83d \\ud83d\\ude00 \\\\ud83d")
    assert (
        await Raw([event(line) if kind == EVENTS else line.encode()], kind=kind).answer()
        == "a\ufffd \U0001f600 \\ud83d"
    )


async def test_an_invalid_byte_loses_no_result() -> None:
    assert (
        await Raw([FINE.replace("fine", "a@b").encode().replace(b"a@b", b"a\xffb")], kind=JSON).answer() == "a\ufffdb"
    )


@pytest.mark.parametrize("kind", [JSON, EVENTS])
async def test_a_byte_order_mark_before_an_answer_is_skipped(kind: str) -> None:
    line = FINE.replace("fine", "\ufeffa")
    assert await Raw([BOM_UTF8, event(line) if kind == EVENTS else line.encode()], kind=kind).answer() == "\ufeffa"


REFUSED = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not understood"}}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (REFUSED, "not understood"),
        (FINE.replace(ID, "999"), "fine"),
        (FINE.replace(ID, '"@ID@"'), "fine"),
        ('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}', "is not an answer"),
        ('{"jsonrpc":"2.0"}', "it is not an answer to the request"),
        ("[1]", "validation error"),
        ("[" * 5_000, "Invalid JSON"),
    ],
)
async def test_a_response_counts_as_the_answer_whatever_its_id(line: str, said: str) -> None:
    assert said in await Raw([line.encode()], kind=JSON).answer()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (410, "HTTP 410 Gone"),
        (429, "HTTP 429 Too Many Requests"),
        (500, "HTTP 500 Internal Server Error"),
        (599, "HTTP 599"),
    ],
)
@pytest.mark.parametrize("body", ["<html>", "{}", '{"jsonrpc":"2.0","id":@ID@,"result":{}}'])
async def test_the_error_names_the_status_if_the_body_says_nothing(status: int, said: str, body: str) -> None:
    kind = "text/html" if body == "<html>" else JSON
    assert await Raw([body.encode()], kind=kind, status=status).answer() == f"127.0.0.1 answered {said}"


async def test_the_servers_own_error_is_passed_on_whatever_the_status() -> None:
    line = '{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32000,"message":"come back at noon"}}'
    assert await Raw([line.encode()], kind=JSON, status=429).answer() == "come back at noon"


PASS_ONE = "pass a token by --header or --oauth, or by headers in [servers.NAME] of the file of --config"  # noqa: S105 - none


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("headers", "advice"),
    [
        ({}, PASS_ONE),
        ({"X-Team": "blue"}, PASS_ONE),
        (
            {"authorization": "s", "X-Team": "blue"},
            "the token in the header Authorization was refused; pass another one",
        ),
    ],
)
async def test_a_401_or_403_says_that_the_token_was_refused_or_how_to_pass_one(
    status: int, headers: dict[str, str], advice: str
) -> None:
    server = Raw([], kind="text/html", status=status)
    assert await server.answer(**headers) == f"127.0.0.1 answered HTTP {status}: {advice}"


@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (403, JSON, '{"error": "your plan lacks this"}', '. It said: {"error": "your plan lacks this"}'),
        (401, "text/plain", "no\ntoken", ". It said: no token"),
        (401, "text/plain", "x" * 1_000, f". It said: {'x' * 199}…"),
        (403, JSON, '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"not you"}}', ". It said: not you"),
        (401, JSON, '{"jsonrpc":"2.0","id":@ID@,"error":{"code":1,"message":"who?"}}', ". It said: who?"),
        (403, "text/html", "<html>", ""),
    ],
)
async def test_the_error_quotes_a_server_that_denies_access(status: int, kind: str, body: str, said: str) -> None:
    server = Raw([body.encode()], kind=kind, status=status)
    assert await server.answer() == f"127.0.0.1 answered HTTP {status}: {PASS_ONE}{said}"


async def test_an_error_that_the_server_itself_gives_with_a_403_is_passed_on() -> None:
    line = '{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32001,"message":"this repository is read-only for you"}}'
    assert await Raw([line.encode()], kind=JSON, status=403).answer() == "this repository is read-only for you"


class Brittle:
    """A server at a URL. Its connection breaks within the answer to ``odd``. It holds back answers to ``slow``."""

    def __init__(self, odd: bytes, *, crowd: int | None = None) -> None:
        self._odd, self._missing = odd, crowd
        self.called, self.goes_on = anyio.Event(), anyio.Event()
        self.heard: list[str] = []

    async def __call__(self, stream: Any) -> None:
        async with stream:
            reads = BufferedByteReceiveStream(stream)
            with suppress(anyio.EndOfStream, anyio.IncompleteRead):
                while True:
                    head = (await reads.receive_until(b"\r\n\r\n", 10_000)).lower()
                    _, _, length = head.partition(b"content-length: ")
                    asked = json.loads(await reads.receive_exactly(int(length.split(b"\r\n")[0] or b"0")) or b"{}")
                    self.heard.append(asked.get("method", ""))
                    answer, goes_on = await self._answer(asked)
                    await stream.send(answer)
                    if not goes_on:
                        return

    async def _answer(self, asked: Any) -> tuple[bytes, bool]:
        """Return the bytes that answer a message, and whether the connection goes on."""
        match asked:
            case {"method": "initialize", "params": {"protocolVersion": version}}:
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO}
            case {"method": "tools/list"}:
                result = {"tools": []}
            case {"method": "tools/call", "params": {"name": "odd"}}:
                return self._odd, False
            case {"method": "tools/call", "params": {"name": "slow"}}:
                self.called.set()
                if self._missing is not None:
                    self._missing -= 1
                    if not self._missing:
                        self.goes_on.set()
                await self.goes_on.wait()
                result = {"content": [{"type": "text", "text": "fine"}]}
            case {"method": "notifications/roots/list_changed"}:
                return b"HTTP/1.1 ", False
            case _:
                return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", True
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        return HEAD + b"mcp-session-id: 1\r\ncontent-length: %d\r\n\r\n" % len(body) + body, True

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Any]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - anyio's, not Django's
        with anyio.fail_after(PATIENCE):
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, self)
                async with client_of(url_upstream(f"http://127.0.0.1:{port}/mcp"), **WILLING, **options) as client:
                    yield client
                tasks.cancel_scope.cancel()


INFO = {"name": "brittle", "version": "1"}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
BROKEN = {
    "a body that was cut": HEAD + b'content-length: 500\r\n\r\n{"jsonrpc',
    "a chunk that is none": HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\nxx",
    "a header that does not end": HEAD + b"x: " + b"x" * 200_000 + b"\r\n\r\n{}",
    "a stream that was cut": HEAD.replace(b"application/json", b"text/event-stream") + b"\r\ndata: {",
    "a stream that was cut within what was compressed": HEAD.replace(b"application/json", b"text/event-stream")
    + b"content-encoding: gzip\r\n\r\n"
    + gzip.compress(b"data: {}")[:-9],
    "no answer": b"",
    "no HTTP": b"hello\r\n\r\n",
    "what is not compressed": HEAD + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("odd", BROKEN.values(), ids=BROKEN.keys())
async def test_an_answer_that_breaks_off_is_an_error_for_its_call_alone(odd: bytes) -> None:
    server, answers = Brittle(odd), list[str]()

    async def wait(client: Any) -> None:
        answers.append((await client.call_tool("slow")).content[0].text)

    async with server.client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(wait, client)
        await server.called.wait()
        with pytest.raises(MCPError, match="the answer broke off, so nobody knows whether the server did"):
            await client.call_tool("odd")
        server.goes_on.set()
    assert answers == ["fine"]
    assert server.heard.count("initialize") == 1


async def test_concurrent_calls_do_not_wait_for_each_other() -> None:
    server, answers = Brittle(b"", crowd=150), list[str]()

    async def wait(client: Any) -> None:
        answers.append((await client.call_tool("slow")).content[0].text)

    async with server.client() as client, anyio.create_task_group() as tasks:
        for _ in range(150):
            tasks.start_soon(wait, client)
    assert answers == ["fine"] * 150


async def test_a_notification_whose_answer_breaks_off_ends_no_session(caplog: pytest.LogCaptureFixture) -> None:
    server = Brittle(b"")
    server.goes_on.set()
    async with server.client() as client:
        with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
            await client.session.send_notification(types.RootsListChangedNotification())
            assert (await client.call_tool("slow")).content[0].text == "fine"
            while "roots/list_changed got no answer" not in caplog.text:
                await anyio.lowlevel.checkpoint()
        assert (await client.call_tool("slow")).content[0].text == "fine"
    assert server.heard.count("initialize") == 1


class Slow(Brittle):
    """A server that never acknowledges ``roots/list_changed``."""

    async def _answer(self, asked: Any) -> tuple[bytes, bool]:
        if asked.get("method") == "notifications/roots/list_changed":
            await anyio.sleep_forever()
        return await super()._answer(asked)


async def test_a_notification_that_a_server_is_slow_to_acknowledge_does_not_hold_up_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._TAKEN_SECONDS", 0.05)
    server = Slow(b"")
    server.goes_on.set()
    async with server.client() as client:
        await client.session.send_notification(types.RootsListChangedNotification())
        while "notifications/roots/list_changed" not in server.heard:
            await anyio.lowlevel.checkpoint()
        assert (await client.call_tool("slow")).content[0].text == "fine"
    assert server.heard.count("initialize") == 1


class Interrupted(Brittle):
    """A server whose stream of notifications keeps being cut or refused. Only the last one carries a message."""

    def __init__(self, outage: Mapping[int, bytes]) -> None:
        super().__init__(b"")
        self._outage = outage

    async def _answer(self, asked: Any) -> tuple[bytes, bool]:
        if asked:
            return await super()._answer(asked)
        opened = len([each for each in self.heard if not each])
        head = HEAD.replace(b"application/json", b"text/event-stream") + b"\r\nid: 1\nretry: 1\ndata:\n\n"
        if opened in self._outage:
            return self._outage[opened], False
        return (head + event(json.dumps(CHANGED)) if opened == 9 else head + b"data: {"), False


BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
CHANGED = {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}


@pytest.mark.parametrize(
    "outage",
    [{5: BUSY, 6: BUSY.replace(b"503", b"409"), 7: b""}, {1: BUSY, 2: BUSY}, {1: BUSY.replace(b"503", b"429"), 2: b""}],
    ids=["later", "at first", "cut at first"],
)
async def test_a_stream_of_notifications_that_keeps_failing_is_reopened(
    outage: Mapping[int, bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    told = anyio.Event()

    async def on_message(message: Any) -> None:
        told.set()

    async with Interrupted(outage).client(message_handler=on_message):
        await told.wait()
    assert caplog.text.count("sends on its own are not received until its stream opens: HTTP ") == 1


async def test_a_server_that_has_no_stream_of_notifications_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    server = Interrupted(dict.fromkeys(range(1, 9), BUSY.replace(b"503", b"405")))
    async with server.client() as client:
        while server.heard.count("") < 2:
            await client.list_tools()
    assert "is not heard" not in caplog.text


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 11, 100])
@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("a\\ud83d", "a\\ufffd"),
        ("\\ude00\\ud83d", "\\ufffd\\ufffd"),
        ("\\ud83d\\ude00 \\UD83D \\u00e9", "\\ud83d\\ude00 \\UD83D \\u00e9"),
        ("\\\\ud83d \\\\\\ud83d \\\\\\\\ude00", "\\\\ud83d \\\\\\ufffd \\\\\\\\ude00"),
        ("\\\\ud83d\\ude00", "\\\\ud83d\\ufffd"),
        ("\\" * 40 + "ud83d", "\\" * 40 + "ud83d"),
        ("\\" * 41 + "ud83d", "\\" * 40 + "\\ufffd"),
        ("é\U0001f600\\ud83d", "é\U0001f600\\ufffd"),
        ("\ufeffa\ufeff", "a\ufeff"),
        ("a\ufeff", "a\ufeff"),
    ],
)
def test_text_is_mended_wherever_its_pieces_end(text: str, mended: str, step: int) -> None:
    mender, data = Mender(), text.encode()
    pieces = [mender.mend(data[start : start + step]) for start in range(0, len(data), step)]
    assert b"".join([*pieces, mender.mend(b"", final=True)]).decode() == mended
