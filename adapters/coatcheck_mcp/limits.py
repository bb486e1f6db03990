"""The largest message that the proxy takes from a server: anything longer is refused before it is parsed.

The mcp package's transport for stdio reads lines through a text codec and has no limit of its own; a line of 100 MB
takes it a minute, because it joins each piece to all that came before. The codec is the one place where it can be
extended. The codec here hands over only whole lines, and a JSON-RPC error in place of a line that is too long.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import partial
from urllib.request import getproxies, proxy_bypass

import httpx2
from mcp_types import INTERNAL_ERROR

from coatcheck_mcp.hook import logger
from coatcheck_mcp.ids import EDGE, id_in
from coatcheck_mcp.surrogates import mended

__all__ = (
    "FIRST_ERROR",
    "MAX_MESSAGE_BYTES",
    "LimitedTransport",
    "broken_off",
    "lines_codec",
    "refusal",
)

MAX_MESSAGE_BYTES = 64 * 2**20
"""Twice a result of 20 MB as JSON, with room for escapes. The mcp package alone makes five copies of what it parses."""

_PIECE = 4096
"""Bytes that are decompressed at once."""

FIRST_ERROR = 400
"""The lowest status of an error."""

_NAME = "coatcheck_lines_"

_HIGH = rb"\\u[dD][89abAB][\da-fA-F]{2}"
_OPEN = re.compile(rb"(?:" + _HIGH + rb")?(\\(?:u[\da-fA-F]{0,3})?)\Z|" + _HIGH + rb"\Z")
"""The end of a piece that cuts an escape, or a pair of surrogates."""

_PAIR = 12
"""Bytes of a pair of surrogates, each escaped."""

_BACKSLASH = ord("\\")


def refusal(max_bytes: int) -> str:
    """Return what the client is told about a message that is too long."""
    return (
        f"coatcheck refused this result: it has more than {max_bytes:,} bytes, and was not read. Ask the tool for less,"
        " such as a page or a filter"
    )


def broken_off(why: object) -> str:
    """Return what the client is told about an answer over HTTP that came only in part, or not at all."""
    said = str(why) or type(why).__name__
    return f"the answer broke off, so nobody knows whether the server did what it was asked: {said}"


def lines_codec(max_bytes: int) -> str:
    """Return the name of an encoding: UTF-8 whose incremental decoder refuses lines of more than ``max_bytes``."""
    name = f"{_NAME}{max_bytes}"
    try:
        codecs.lookup(name)
    except LookupError:
        codecs.register(partial(_search, name=name, max_bytes=max_bytes))
    return name


def _search(asked: str, *, name: str, max_bytes: int) -> codecs.CodecInfo | None:
    if asked != name:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        utf8.encode, utf8.decode, incrementaldecoder=partial(_Lines, max_bytes=max_bytes), name=name
    )


class _Lines(codecs.IncrementalDecoder):
    def __init__(self, errors: str = "strict", *, max_bytes: int) -> None:
        super().__init__(errors)
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override] # noqa: FBT001, FBT002 - codecs'
        """Return the lines that end in ``data``; the rest waits for its end."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._take(end)
            lines.append(self._line() + "\n")
        self._take(rest)
        return "".join(lines) + (self._line() if final else "")

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > self._max_bytes and len(self._pieces) > 1:  # only its two ends are of any use now
            held = b"".join(self._pieces)
            self._pieces = [held[:EDGE], held[EDGE:][-EDGE:]]

    def _line(self) -> str:
        line, size = b"".join(self._pieces), self._size
        self._pieces, self._size = [], 0
        # The decoder never raises: an error would end the session. The parser says what is wrong with the line.
        return line.decode("utf-8", "replace") if size <= self._max_bytes else self._refuse(line)

    def _refuse(self, line: bytes) -> str:
        identifier = id_in(line)
        if identifier is None:  # a notification, or a request of the server's: nobody here waits for it
            words = "a message of more than %s bytes was dropped: neither of its ends names a request that it answers"
            logger.warning(words, f"{self._max_bytes:,}")
            return ""
        error = {"code": INTERNAL_ERROR, "message": refusal(self._max_bytes)}
        return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error})


_DIRECT = ("127.0.0.1", "localhost", "::1")
"""This machine. It is reached without a proxy of the environment, whatever ``NO_PROXY`` says."""

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
"""Connections have no limit here: each call holds one until it is answered, and if a call had to wait for another's, so
would a cancellation. ``turns`` limits how many calls run."""

_PROXIED = frozenset({"http", "https", "all"})
"""Schemes for which the environment may name a proxy."""


def _wrong_proxy() -> str:
    """Return why httpx2 would make no client for a proxy that the environment names; empty if it would."""
    for scheme, address in getproxies().items():
        if scheme not in _PROXIED:
            continue
        try:
            # Nothing is sent, so the certificates, which take most of the time, need not be read.
            httpx2.AsyncHTTPTransport(proxy=address if "://" in address else f"http://{address}", verify=False)
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            why = error if isinstance(error, ImportError) else "it must be like http://host:3128"
            return f"{scheme.upper()}_PROXY names a proxy that cannot be used, so change it or unset it: {why}"
    return ""


def _is_direct(host: str) -> bool:
    """Return whether a host is reached without a proxy of the environment."""
    return host in _DIRECT or bool(proxy_bypass(host))


class LimitedTransport(httpx2.AsyncBaseTransport):
    """The limit for answers over HTTP; the mcp package limits the events of streams itself.

    It sends through a client of its own, because only clients look for the environment's proxies.

    A compressed answer counts at its full size. Text that was cut is mended as on stdio, because the mcp package could
    not read it: half a surrogate pair, or a byte that is not UTF-8, becomes U+FFFD.
    """

    def __init__(self, max_bytes: int) -> None:
        self._wrong = _wrong_proxy()
        direct = {f"all://[{host}]" if ":" in host else f"all://{host}": None for host in _DIRECT}
        self._client = httpx2.AsyncClient(mounts=direct, trust_env=not self._wrong, limits=_LIMITS)
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; reading an answer that is too long, or that breaks off, raises ``httpx2.StreamError``."""
        if self._wrong and not _is_direct(request.url.host):
            raise httpx2.ConnectError(self._wrong, request=request)
        # The caller has set the login already; this client would prefer a user in the URL to it.
        response = await self._client.send(request, stream=True, auth=httpx2.Auth())
        kind, status = response.headers.get("content-type", "").lower(), response.status_code
        has_events = kind.startswith("text/event-stream") and status < FIRST_ERROR
        plain = httpx2.Response(status, headers=response.headers, stream=_Bits(response.stream))  # type: ignore[arg-type]
        response.stream = _PlainStream(plain, None if has_events else self._max_bytes)
        response.headers.pop("content-encoding", None)
        return response

    def proxy_before(self, url: httpx2.URL) -> str:
        """Return the address of the environment's proxy through which a URL is reached; empty if there is none."""
        # Only the client knows: it reads NO_PROXY differently from Python.
        if self._client._transport_for_url(url) is self._client._transport:  # noqa: SLF001 - shown nowhere else
            return ""
        proxies = getproxies()
        return (proxies.get(url.scheme) or proxies.get("all", "")).rpartition("@")[2].rpartition("//")[2]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class _Bits(httpx2.AsyncByteStream):
    """Hands over a little at a time: 64 kB, compressed, may be as many megabytes."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self):  # type: ignore[no-untyped-def] # noqa: ANN204 - httpx2's
        async for piece in self._stream:
            for start in range(0, len(piece), _PIECE):
                yield piece[start : start + _PIECE]

    async def aclose(self) -> None:
        await self._stream.aclose()


class _PlainStream(httpx2.AsyncByteStream):
    """The body of a response, no longer compressed, and mended; up to a limit if there is one.

    What is wrong with it is raised as ``httpx2.StreamError``, the only error that the mcp package passes to just the
    call that waits. Any other error ends all calls.
    """

    def __init__(self, response: httpx2.Response, max_bytes: int | None) -> None:
        self._response, self._max_bytes = response, max_bytes

    async def __aiter__(self):  # type: ignore[no-untyped-def] # noqa: ANN204 - httpx2's
        size, mender = 0, _Mender()
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


class _Mender:
    """Mends JSON that comes in pieces, without looking at each character where nothing is wrong."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")  # skips a byte order mark at the start
        self._at_start = True
        self._held = b""

    def mend(self, piece: bytes, *, final: bool = False) -> bytes:
        """Return what is complete of ``piece`` and of what was held before."""
        if self._at_start or not piece.isascii() or self._decoder.getstate()[0] or final:
            self._at_start = self._at_start and not piece
            piece = self._decoder.decode(piece, final).encode()
        data = self._held + piece
        cut = len(data) if final else _whole_up_to(data)
        data, self._held = data[:cut], data[cut:]
        return mended(data)


def _whole_up_to(data: bytes) -> int:
    """Return where ``data`` can end without cutting an escape or a pair of them."""
    found = _OPEN.search(data, max(0, len(data) - _PAIR))
    if found is None:
        return len(data)
    start = found.start()
    while start and data[start - 1] == _BACKSLASH:
        start -= 1
    if (found.start() - start) % 2 == 0:
        return found.start()
    return found.start(1) if found.start(1) > found.start() else len(data)  # the first backslash is itself escaped
