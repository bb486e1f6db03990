"""Limit the size of answers over HTTP, and find the environment's proxies that they come through."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

import httpx2

from coatcheck_mcp.limits import broken_off, refusal
from coatcheck_mcp.surrogates import Mender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ("EVENTS", "FIRST_ERROR", "LimitedTransport", "content_type")

EVENTS = "text/event-stream"
FIRST_ERROR = 400
"""The lowest status of an error."""

_PIECE = 4096
"""Bytes that are decompressed at once."""

_DIRECT = ("127.0.0.1", "localhost", "::1")
"""The hosts of this machine. They are reached without the environment's proxies, whatever ``NO_PROXY`` says."""

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
"""Connections have no limit here: each call holds one until it is answered. If calls had to wait for a free connection,
so would their cancellations. ``turns`` limits how many calls run."""

_PROXIED = frozenset({"http", "https", "all"})
"""Schemes for which the environment may name a proxy."""


def content_type(message: httpx2.Request | httpx2.Response) -> str:
    """Return the content type of a message, in lower case; empty if it has none."""
    return message.headers.get("content-type", "").lower()


def _wrong_proxy() -> str:
    """Return why httpx2 would refuse a proxy that the environment names; empty if it would accept them all."""
    for scheme, address in getproxies().items():
        if scheme not in _PROXIED:
            continue
        try:
            # Nothing is sent, so the certificates need not be read, which would take most of the time.
            httpx2.AsyncHTTPTransport(proxy=address if "://" in address else f"http://{address}", verify=False)
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            why = error if isinstance(error, ImportError) else "it must be like http://host:3128"
            return f"{scheme.upper()}_PROXY names a proxy that cannot be used, so change it or unset it: {why}"
    return ""


def _is_direct(host: str) -> bool:
    """Return whether a host is reached without the environment's proxies."""
    return host in _DIRECT or bool(proxy_bypass(host))


class LimitedTransport(httpx2.AsyncBaseTransport):
    """Limits the size of answers over HTTP. The mcp package itself limits the events of streams.

    It sends through its own client, because only clients look for the environment's proxies.

    A compressed answer counts at its decompressed size. Text that was cut is mended as on stdio, because the mcp
    package could not read it: half a surrogate pair, or a byte that is not UTF-8, becomes U+FFFD.
    """

    def __init__(self, max_bytes: int) -> None:
        self._wrong = _wrong_proxy()
        direct = {f"all://[{host}]" if ":" in host else f"all://{host}": None for host in _DIRECT}
        self._client = httpx2.AsyncClient(mounts=direct, trust_env=not self._wrong, limits=_LIMITS)
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Reading an answer that is too long, or that breaks off, raises ``httpx2.StreamError``."""
        if self._wrong and not _is_direct(request.url.host):
            raise httpx2.ConnectError(self._wrong, request=request)
        # The caller has already set the authorization; this client would prefer a user in the URL.
        response = await self._client.send(request, stream=True, auth=httpx2.Auth())
        status = response.status_code
        has_events = content_type(response).startswith(EVENTS) and status < FIRST_ERROR
        plain = httpx2.Response(status, headers=response.headers, stream=_Bits(response.stream))  # type: ignore[arg-type]
        response.stream = _PlainStream(plain, None if has_events else self._max_bytes)
        response.headers.pop("content-encoding", None)
        return response

    def proxy_before(self, url: httpx2.URL) -> str:
        """Return the address of the environment's proxy for a URL; empty if there is none."""
        # Only the client knows: it reads NO_PROXY differently from Python.
        if self._client._transport_for_url(url) is self._client._transport:  # noqa: SLF001 - shown nowhere else
            return ""
        proxies = getproxies()
        return (proxies.get(url.scheme) or proxies.get("all", "")).rpartition("@")[2].rpartition("//")[2]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class _Bits(httpx2.AsyncByteStream):
    """Hands over small pieces: 64 kB of compressed data may become as many megabytes."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            for start in range(0, len(piece), _PIECE):
                yield piece[start : start + _PIECE]

    async def aclose(self) -> None:
        await self._stream.aclose()


class _PlainStream(httpx2.AsyncByteStream):
    """The body of a response, decompressed and mended, up to a limit if there is one.

    Failures are raised as ``httpx2.StreamError``, the only error that the mcp package passes to the waiting call alone.
    Any other error ends all calls.
    """

    def __init__(self, response: httpx2.Response, max_bytes: int | None) -> None:
        self._response, self._max_bytes = response, max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, mender = 0, Mender()
        try:
            async for piece in self._response.aiter_bytes():
                size += len(piece)
                if self._max_bytes is not None and size > self._max_bytes:
                    raise httpx2.StreamError(refusal(self._max_bytes))
                yield mender.mend(piece)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise httpx2.StreamError(broken_off(error)) from error
        yield mender.mend(b"", final=True)

    async def aclose(self) -> None:
        await self._response.aclose()
