"""Send requests over HTTP, with answers that say why something failed. The ``mcp`` package says only that it did.

This also keeps the stream open on which a server speaks on its own: the package gives it up after two failures.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from httpx2 import codes
from mcp_types import INTERNAL_ERROR

from coatcheck_mcp.faults import innermost, said_by
from coatcheck_mcp.hook import logger
from coatcheck_mcp.http_answers import error_answer, message_in, understandable
from coatcheck_mcp.http_limits import EVENTS, LimitedTransport, content_type
from coatcheck_mcp.limits import broken_off

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

__all__ = ("CONNECT_SECONDS", "HttpTransport", "pause_after")

CONNECT_SECONDS = 30.0

_NOT_NOW = frozenset({409, 429, 500, 502, 503, 504})
"""Temporary errors of a server, or of what stands in front of it. 409: it has not noticed yet that a stream was cut."""

_LONGEST_PAUSE = 60.0
"""Seconds. The longest pause between two tries to reopen a stream on which the server reports changes."""

_LAST_EVENT = "last-event-id"

_OPENING = frozenset({"initialize", "server/discover", "notifications/initialized"})
"""Messages that open a session. Nothing else waits while they are sent."""

_TAKEN_SECONDS = 2.0
"""How long a server may take to accept a notification; the mcp package sends nothing else meanwhile."""

_failed: ContextVar[int | None] = ContextVar("coatcheck_mcp_failed", default=None)
"""How many tries in a row to listen to the server have failed. Set in the task that listens, from its first try on."""


class HttpTransport(LimitedTransport):
    """Says why a server cannot be reached, or that it wants a login. ``mcp`` says only that there was an error."""

    def __init__(self, max_bytes: int, *, passed: Collection[str]) -> None:
        """Accept messages of ``max_bytes`` at most; ``passed``: the names of the headers that the user sends."""
        super().__init__(max_bytes)
        self._passed = passed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. An ``httpx2.ConnectError`` names the reason and the address."""
        await request.aread()  # after a redirect, the content is a stream
        # A request that names an event before its task has listened only resumes the answer to a call.
        asks_to_listen = request.method == "GET" and EVENTS in request.headers.get("accept", "")
        if asks_to_listen and (_failed.get() is not None or _LAST_EVENT not in request.headers):
            return await self._listen(request)
        if _is_notification(message_in(request)):
            timeout = {**request.extensions.get("timeout", {}), "read": _TAKEN_SECONDS}
            request.extensions = {**request.extensions, "timeout": timeout}
        return await self._answered(request)

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """Open the stream on which the server speaks on its own.

        The mcp package reopens the stream when it ends, but after two errors it gives up for good, and says nothing. So
        a cut or a temporary error is not passed on: the stream just ends, and each failure makes the pause longer. Any
        other status means that the server has no such stream.
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
        if status == codes.OK and content_type(response).startswith(EVENTS):
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
            message = message_in(request)
            if message is None or message.get("method") in _OPENING:
                raise httpx2.ConnectError(msg, request=request) from error
            return _unanswered(message, f"the server was not reached, so it did nothing; try again later: {msg}")
        except httpx2.TransportError as error:
            message = message_in(request)
            if message is None:
                raise
            return _unanswered(message, broken_off(error))
        return await understandable(request, response, passed=self._passed)


def _is_notification(message: Mapping[str, Any] | None) -> bool:
    """Return whether nobody waits for an answer to a message, or for what the server does with it."""
    return message is not None and "method" in message and "id" not in message and message["method"] not in _OPENING


def pause_after(failed: int) -> float:
    """Return the seconds to wait before the next try, after ``failed`` failures in a row."""
    return min(2.0 ** min(failed, 10) - 1, _LONGEST_PAUSE)


class _UntilCut(httpx2.AsyncByteStream):
    """A stream that just ends when it is cut or falls silent."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(httpx2.StreamError):
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _unheard(request: httpx2.Request, failed: int, why: str) -> httpx2.Response:
    """Return a stream that ends at once, so that the mcp package opens another."""
    if not failed:
        logger.warning(
            "messages that %s sends on its own are not received until its stream opens: %s", request.url.host, why
        )
    _failed.set(failed + 1)
    return httpx2.Response(codes.OK, headers={"content-type": EVENTS}, content=b"")


def _unanswered(message: Mapping[str, Any], why: str) -> httpx2.Response:
    """Return a response in place of one that did not come: an exception would end all other calls too."""
    if "method" in message and "id" in message:
        content = error_answer(message["id"], INTERNAL_ERROR, why)
        return httpx2.Response(codes.OK, headers={"content-type": "application/json"}, content=content)
    logger.warning("%s got no answer: %s", message.get("method", "an answer"), why)
    return httpx2.Response(codes.ACCEPTED)  # as the protocol answers a message that is not a request


def _why_not_connected(error: Exception) -> str:
    """Return what the system said, which httpx2 hides behind its own errors."""
    if isinstance(error, httpx2.ProxyError):
        return f"the HTTP proxy answered {error}"
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = innermost(deeper)  # a group, if the host has several addresses
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} seconds"
    return said_by(cause)
