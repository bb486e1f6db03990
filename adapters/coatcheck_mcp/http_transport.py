"""Requests over HTTP, with answers that say why something failed. The ``mcp`` package's client says only that it did.

Also the stream on which a server speaks on its own is kept open here: that client gives it up after two failures.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

from coatcheck_mcp.faults import LOST_SESSION, NO_SESSION, innermost
from coatcheck_mcp.hook import logger
from coatcheck_mcp.ids import id_in
from coatcheck_mcp.limits import FIRST_ERROR, LimitedTransport, broken_off

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ("CONNECT_SECONDS", "HttpTransport", "pause_after")

CONNECT_SECONDS = 30.0

_NO_ENTRY = frozenset({401, 403})
_NOT_FOUND = 404
"""To a request of a session, the protocol's word that the server no longer knows that session; from some servers, an
error of the request itself, with its id."""

_OK = 200
_ACCEPTED = 202
"""The answer to a message that is no request."""

_SESSION_LOST = frozenset({_NOT_FOUND, 400})
"""The second is the word of others, among them all that follow the examples of the TypeScript SDK; they say why."""

_NOT_NOW = frozenset({409, 429, 500, 502, 503, 504})
"""What a server, or what stands before it, says for a while. The first: it does not know yet that a stream was cut."""

_LONGEST_PAUSE = 60.0
"""Seconds between two tries to open a stream again on which the server tells of changes."""

_EVENTS = "text/event-stream"
_LAST_EVENT = "last-event-id"

_OPENING = frozenset({"initialize", "server/discover", "notifications/initialized"})
"""Messages without which there is no session. Nothing else waits while they are sent."""

_failed: ContextVar[int | None] = ContextVar("coatcheck_mcp_failed", default=None)
"""Set in the task that listens to the server, once it has tried to: how often in a row the server was not heard."""

_SESSION = "mcp-session-id"
_UNKNOWN_SESSION = re.compile(
    rb"(?i)(?:no valid|invalid|unknown|expired) session|session (?:id )?(?:not found|expired)"
)


class HttpTransport(LimitedTransport):
    """Says why a server cannot be reached, and that it wants a login. ``mcp`` says only that there was an error."""

    def __init__(self, max_bytes: int, *, passed: Collection[str]) -> None:
        """Take messages of ``max_bytes`` at most; ``passed``: the names of the headers that the user sends."""
        super().__init__(max_bytes)
        self._passed = passed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises ``httpx2.ConnectError`` that names the reason and the address."""
        await request.aread()  # of one that follows a redirect, the content is a stream
        # Only requests that carry on with the answer to a call name an event before their task has listened.
        asks_to_listen = request.method == "GET" and _EVENTS in request.headers.get("accept", "")
        if asks_to_listen and (_failed.get() is not None or _LAST_EVENT not in request.headers):
            return await self._listen(request)
        return await self._answered(request)

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """Open the stream of what the server says on its own.

        The mcp package opens it again where it ends, but after two errors gives up for good, and says nothing. So
        neither a cut nor what a server says for a while is one: the stream ends, and each failure makes the pause
        longer. Other statuses say that it has no such stream.
        """
        failed = _failed.get() or 0
        if failed:
            await anyio.sleep(pause_after(failed))
        try:
            response = await self._answered(request)
        except httpx2.TransportError as error:
            return _unheard(request, failed, str(error) or type(error).__name__)
        status = response.status_code
        if status in _NOT_NOW:
            await response.aclose()
            return _unheard(request, failed, f"HTTP {status}")
        if status == _OK and response.headers.get("content-type", "").lower().startswith(_EVENTS):
            _failed.set(0)
            response.stream = _UntilCut(response.stream)  # type: ignore[arg-type]
        return response

    async def _answered(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            # A URL may hold secrets before its host and in its query.
            address = request.url.copy_with(userinfo=b"", query=None, fragment=None)
            proxy = self.proxy_before(request.url)
            through = f", through the proxy {proxy} that the environment names" if proxy else ""
            msg = f"{_why_not_connected(error)} at {address}{through}"
            message = _message(request)
            if message is None or message.get("method") in _OPENING:
                raise httpx2.ConnectError(msg, request=request) from error
            return _unanswered(message, f"the server was not reached, so it did nothing; try again later: {msg}")
        except httpx2.TransportError as error:
            message = _message(request)
            if message is None:
                raise
            return _unanswered(message, broken_off(error))
        return await _understandable(request, response, passed=self._passed)


def pause_after(failed: int) -> float:
    """Return the seconds to wait before the next try, after so many in a row have ``failed``."""
    return min(2.0 ** min(failed, 10) - 1, _LONGEST_PAUSE)


class _UntilCut(httpx2.AsyncByteStream):
    """A stream whose cut, or silence, is its end."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self):  # type: ignore[no-untyped-def] # noqa: ANN204 - httpx2's
        with suppress(httpx2.StreamError):
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _unheard(request: httpx2.Request, failed: int, why: str) -> httpx2.Response:
    """Return a stream that ends at once, so that the mcp package opens another."""
    if not failed:
        logger.warning("what %s says on its own is not heard until its stream opens: %s", request.url.host, why)
    _failed.set(failed + 1)
    return httpx2.Response(_OK, headers={"content-type": _EVENTS}, content=b"")


async def _understandable(
    request: httpx2.Request, response: httpx2.Response, *, passed: Collection[str]
) -> httpx2.Response:
    """Return the response, or one in its place that says more to the mcp package; ``passed``: the user's headers."""
    status = response.status_code
    if status in _NO_ENTRY:
        refused = f"the token in the header {', '.join(passed)} was refused; pass another one"
        why = refused if passed else "pass --header with a token, or --oauth"
        return await _refusal(response, INVALID_REQUEST, f"{request.url.host} answered HTTP {status}: {why}")
    # A login is a form, not JSON.
    if status == _OK and request.method == "POST" and _is_json(request) and _is_json(response):
        return await _own_answer(response, request.content)
    message = _message(request) if status >= FIRST_ERROR else None
    return response if message is None else await _failure(request, response, message)


async def _failure(request: httpx2.Request, response: httpx2.Response, message: Mapping[str, Any]) -> httpx2.Response:
    """Return a response with the server's own error, if it has one, else with what its status says."""
    status = response.status_code
    try:
        body = await response.aread()
    except httpx2.StreamError as error:
        return await _refusal(response, INTERNAL_ERROR, f"HTTP {status}: {error}")
    is_answer, may_be_lost = _is_answer(body, message), _SESSION in request.headers and status in _SESSION_LOST
    if may_be_lost and (_UNKNOWN_SESSION.search(body) is not None or (status == _NOT_FOUND and not is_answer)):
        return await _refusal(response, CONNECTION_CLOSED, LOST_SESSION if is_answer else NO_SESSION)
    if _is_json(response) and _is_error(body):
        return httpx2.Response(status, headers={"content-type": "application/json"}, content=body)
    said = f"{request.url.host} answered HTTP {status} {httpx2.codes.get_reason_phrase(status)}".rstrip()
    return await _refusal(response, INTERNAL_ERROR, said)


def _message(request: httpx2.Request) -> dict[str, Any] | None:
    """Return the message of the protocol that a request carries; None if it is another one, such as a login."""
    message = json.loads(request.content) if request.method == "POST" and _is_json(request) else None
    return message if isinstance(message, dict) and "jsonrpc" in message else None


def _unanswered(message: Mapping[str, Any], why: str) -> httpx2.Response:
    """Return a response in place of one that did not come: an exception would end the calls of all others too."""
    if "method" in message and "id" in message:
        content = _error(message["id"], INTERNAL_ERROR, why)
        return httpx2.Response(_OK, headers={"content-type": "application/json"}, content=content)
    logger.warning("%s got no answer: %s", message.get("method", "an answer"), why)
    return httpx2.Response(_ACCEPTED)


def _is_json(message: httpx2.Request | httpx2.Response) -> bool:
    return message.headers.get("content-type", "").lower().startswith("application/json")


async def _own_answer(response: httpx2.Response, asked: bytes) -> httpx2.Response:
    """Return the answer to a request with the id of that request.

    The mcp package gives it to what comes as a stream of events. What comes as JSON with another one, such as the
    ``null`` of servers that could not read the request, it gives to nobody, and the client would wait without end.
    """
    identifier = json.loads(asked).get("id")
    if identifier is None:
        return response
    try:
        body = _with_id(await response.aread(), identifier)
    except httpx2.StreamError as error:
        body = _error(identifier, INTERNAL_ERROR, str(error))
    await response.aclose()
    kept = {name: response.headers[name] for name in ("content-type", _SESSION) if name in response.headers}
    return httpx2.Response(response.status_code, headers=kept, content=body)


def _with_id(body: bytes, identifier: int | str) -> bytes:
    if str(id_in(body)) == str(identifier):  # may be large
        return body
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # the mcp package tells the client
        return body
    if not isinstance(said, dict) or str(said.get("id")) == str(identifier):
        return body
    if "method" in said or not {"result", "error"} & said.keys():
        return _error(
            identifier, INTERNAL_ERROR, "coatcheck cannot read the server's answer: it is none to the request"
        )
    return json.dumps({**said, "id": identifier}).encode()


def _error(identifier: int | str | None, code: int, said: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": said}}).encode()


def _is_answer(body: bytes, message: Mapping[str, Any]) -> bool:
    """Return whether the body of an error has the id of the request, so that the server has looked at that."""
    said, identifier = _parsed(body), message.get("id")
    return isinstance(said, dict) and identifier is not None and said.get("id") == identifier


def _is_error(body: bytes) -> bool:
    """Return whether the mcp package finds an error of the protocol in the body of a response."""
    match _parsed(body):
        case {"jsonrpc": "2.0", "error": {"code": int(), "message": str()}}:
            return True
        case _:
            return False


def _parsed(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


async def _refusal(response: httpx2.Response, code: int, said: str) -> httpx2.Response:
    """Return a response with an error that the mcp package passes on, in place of one that it would not understand."""
    await response.aclose()
    # OAuth reads what is wanted from this header.
    headers = {"www-authenticate": response.headers.get("www-authenticate", ""), "content-type": "application/json"}
    return httpx2.Response(response.status_code, headers=headers, content=_error(None, code, said))


def _why_not_connected(error: Exception) -> str:
    """Return what the system said: httpx2 hides it behind its own errors."""
    if isinstance(error, httpx2.ProxyError):
        return f"the HTTP proxy answered {error}"
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = innermost(deeper)  # a group, if the host has several addresses
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} seconds"
    return str(cause) or type(cause).__name__
