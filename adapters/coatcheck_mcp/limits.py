"""Limit the messages that the proxy takes from a server: anything longer is refused before it is parsed.

The mcp package's transport for stdio reads lines through a text codec and has no limit of its own; a line of 100 MB
takes it a minute, because it joins each piece to all that came before. The codec is the only place where the transport
can be extended. This one hands over only whole lines, and a JSON-RPC error in place of a line that is too long.
"""

from __future__ import annotations

import codecs
import json
from functools import partial

from mcp_types import INTERNAL_ERROR

from coatcheck_mcp.hook import logger
from coatcheck_mcp.ids import EDGE, id_in

__all__ = ("MAX_MESSAGE_BYTES", "broken_off", "lines_codec", "refusal")

MAX_MESSAGE_BYTES = 64 * 2**20
"""The default limit: a result of 20 MB twice, with room for JSON escapes. The mcp package alone makes five copies of
what it parses."""

_NAME = "coatcheck_lines_"


def refusal(max_bytes: int) -> str:
    """Return what the client is told about a message that is too long."""
    return (
        f"coatcheck refused this result: it has more than {max_bytes:,} bytes, and was not read. Ask the tool for less,"
        " such as one page or filtered results"
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
        """Return the lines that end in ``data``; keep the rest until its line ends."""
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
        if self._size > self._max_bytes and len(self._pieces) > 1:  # only the line's two ends are of any use now
            held = b"".join(self._pieces)
            self._pieces = [held[:EDGE], held[EDGE:][-EDGE:]]

    def _line(self) -> str:
        line, size = b"".join(self._pieces), self._size
        self._pieces, self._size = [], 0
        # The decoder never raises: an error would end the session. The parser says what is wrong with the line.
        return line.decode("utf-8", "replace") if size <= self._max_bytes else self._refuse(line)

    def _refuse(self, line: bytes) -> str:
        identifier = id_in(line)
        if identifier is None:  # a notification or a request from the server: nobody here waits for it
            words = "a message of more than %s bytes was dropped: neither of its ends names a request that it answers"
            logger.warning(words, f"{self._max_bytes:,}")
            return ""
        error = {"code": INTERNAL_ERROR, "message": refusal(self._max_bytes)}
        return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error})
