"""The largest message that the proxy takes from a server: anything longer is refused before it is parsed.

The mcp package's transport for stdio reads lines through a text codec and has no limit of its own; a line of 100 MB
takes it a minute, because it joins what came so far with every piece. A codec is the one place where it lets others in.
This one hands over whole lines only, and a JSON-RPC error in place of a line that is too long.
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
"""Twice a result of 20 MB as JSON, with room for escapes. The mcp package alone takes five copies of what it parses."""

_PIECE = 4096
"""Bytes that are unpacked at once."""

FIRST_ERROR = 400
"""The lowest status of an error."""

_NAME = "coatcheck_lines_"

_HIGH = rb"\\u[dD][89abAB][\da-fA-F]{2}"
_OPEN = re.compile(rb"(?:" + _HIGH + rb")?(\\(?:u[\da-fA-F]{0,3})?)\Z|" + _HIGH + rb"\Z")
"""The end of a piece within an escape, or within a pair."""

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
    """Return what the client is told about an answer over HTTP of which only a part came, or nothing."""
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
        """Return the lines that end in ``data``; what follows the last one waits for its end."""
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
        if self._size > self._max_bytes and len(self._pieces) > 1:  # only both ends are of any use now
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
"""This machine: no proxy of the environment reaches it, whatever ``NO_PROXY`` says."""

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
"""A call holds a connection until it is answered, and must not wait here for another one's: then nothing could be
given up either. ``turns`` limits how many run."""

_PROXIED = frozenset({"http", "https", "all"})
"""Schemes for which the environment may name a proxy."""


def _wrong_proxy() -> str:
    """Return what is wrong with a proxy of the environment, for which httpx2 makes no client; empty if nothing is."""
    for scheme, address in getproxies().items():
        if scheme not in _PROXIED:
            continue
        try:
            # It is asked for nothing, so the certificates, which take most of the time, are not read.
            httpx2.AsyncHTTPTransport(proxy=address if "://" in address else f"http://{address}", verify=False)
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            why = error if isinstance(error, ImportError) else "it must be like http://host:3128"
            return f"{scheme.upper()}_PROXY names a proxy that cannot be used, so change it or unset it: {why}"
    return ""


def _is_direct(host: str) -> bool:
    """Return whether no proxy of the environment stands before a host."""
    return host in _DIRECT or bool(proxy_bypass(host))


class LimitedTransport(httpx2.AsyncBaseTransport):
    """The limit for answers over HTTP; the mcp package limits the events of streams itself.

    It sends through a client of its own: only those look for the proxies of the environment.

    What a server compressed counts as what it becomes. Answers that the mcp package could not read for a text that was
    cut come as on stdio: half a surrogate pair, or a byte that is no UTF-8, is U+FFFD.
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
        # Who asks has said how to log in; for this client, a user in the URL would go before that.
        response = await self._client.send(request, stream=True, auth=httpx2.Auth())
        kind, status = response.headers.get("content-type", "").lower(), response.status_code
        has_events = kind.startswith("text/event-stream") and status < FIRST_ERROR
        plain = httpx2.Response(status, headers=response.headers, stream=_Bits(response.stream))  # type: ignore[arg-type]
        response.stream = _PlainStream(plain, None if has_events else self._max_bytes)
        response.headers.pop("content-encoding", None)
        return response

    def proxy_before(self, url: httpx2.URL) -> str:
        """Return the address of the proxy of the environment through which a URL is reached; empty if there is none."""
        # Only the client knows: it reads NO_PROXY in another way than Python does.
        if self._client._transport_for_url(url) is self._client._transport:  # noqa: SLF001 - shown nowhere else
            return ""
        proxies = getproxies()
        return (proxies.get(url.scheme) or proxies.get("all", "")).rpartition("@")[2].rpartition("//")[2]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class _Bits(httpx2.AsyncByteStream):
    """Hands over little at once: 64 kB, compressed, may be as many megabytes."""

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

    What is wrong with it is a ``httpx2.StreamError``: of all errors, the one that the mcp package tells the call that
    waits, and nobody else. Any other one ends all calls.
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
    """Mends JSON that comes in pieces, without a look at each of its characters where nothing is wrong."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = b""

    def mend(self, piece: bytes, *, final: bool = False) -> bytes:
        """Return what can be told of ``piece`` and what was held before."""
        if not piece.isascii() or self._decoder.getstate()[0] or final:
            piece = self._decoder.decode(piece, final).encode()
        data = self._held + piece
        cut = len(data) if final else _whole_up_to(data)
        data, self._held = data[:cut], data[cut:]
        return mended(data)


def _whole_up_to(data: bytes) -> int:
    """Return where to cut so that neither an escape nor a pair of them is cut."""
    found = _OPEN.search(data, max(0, len(data) - _PAIR))
    if found is None:
        return len(data)
    start = found.start()
    while start and data[start - 1] == _BACKSLASH:
        start -= 1
    if (found.start() - start) % 2 == 0:
        return found.start()
    return found.start(1) if found.start(1) > found.start() else len(data)  # the first backslash is itself escaped
