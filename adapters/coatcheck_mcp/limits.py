"""The largest message that the proxy takes from a server: anything longer is refused before it is parsed.

The library's transport for stdio reads lines through a text codec and has no limit of its own; a line of 100 MB takes
it a minute, because it joins what came so far with every piece. A codec is the one place where it lets others in. This
one hands over whole lines only, and a JSON-RPC error in place of a line that is too long.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import partial

import httpx2
from mcp_types import INTERNAL_ERROR

__all__ = ("MAX_MESSAGE_BYTES", "LimitedTransport", "id_in", "lines_codec", "refusal")

MAX_MESSAGE_BYTES = 64 * 2**20
"""Twice a result of 20 MB as JSON, with room for escapes. The library alone takes five copies of what it parses."""

_EDGE = 4096
"""Bytes kept of each end of a line that is too long: the id of the request is in one of them."""

_NAME = "coatcheck_lines_"

_ID = rb'"id"\s*:\s*(\d{1,18}(?!\d)|"[^"\\\x00-\x1f]*")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST = re.compile(rb"\A\s*\{\s*" + _VERSION + rb"\s*,\s*" + _ID + rb'\s*,\s*"(?:result|error)"')
_ID_LAST = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")
_ASKS = re.compile(rb"\A\s*\{\s*(?:" + _VERSION + rb'\s*,\s*)?(?:"id"\s*:[^,]{1,100},\s*)?"method"\s*:')


def refusal(max_bytes: int) -> str:
    """Return what the client is told about a message that is too long."""
    return (
        f"coatcheck refused this result: it has more than {max_bytes:,} bytes, and was not read. Ask the tool for less,"
        " such as a page or a filter"
    )


def id_in(line: bytes) -> int | str | None:
    """Return the id of the request that a line answers, from one of its ends; None if there is none to be seen."""
    found = None if _ASKS.match(line) else _ID_FIRST.match(line) or _ID_LAST.search(line)
    identifier: int | str | None = None if found is None else json.loads(found[1].decode("utf-8", "replace"))
    return identifier


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
            self._pieces = [held[:_EDGE], held[_EDGE:][-_EDGE:]]

    def _line(self) -> str:
        line, size = b"".join(self._pieces), self._size
        self._pieces, self._size = [], 0
        # The decoder never raises: an error would end the session. The parser says what is wrong with the line.
        return line.decode("utf-8", "replace") if size <= self._max_bytes else self._refuse(line)

    def _refuse(self, line: bytes) -> str:
        identifier = id_in(line)
        if identifier is None:  # a notification, or a request of the server's: nobody waits for it
            return ""
        error = {"code": INTERNAL_ERROR, "message": refusal(self._max_bytes)}
        return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error})


class LimitedTransport(httpx2.AsyncHTTPTransport):
    """The limit for answers over HTTP that are one JSON text; the library limits those that are streams of events."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; reading an answer that is too long raises ``httpx2.ReadError``."""
        response = await super().handle_async_request(request)
        if response.headers.get("content-type", "").startswith("application/json"):
            response.stream = _LimitedStream(response.stream, self._max_bytes)  # type: ignore[arg-type]
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    async def __aiter__(self):  # type: ignore[no-untyped-def] # noqa: ANN204 - httpx2's
        left = self._max_bytes
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(refusal(self._max_bytes))
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
