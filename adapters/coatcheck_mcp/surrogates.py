"""Replace half a surrogate pair in JSON, such as of a cut emoji, with U+FFFD, because no parser here accepts it."""

from __future__ import annotations

import codecs
import re

__all__ = ("Mender", "mended")

_SURROGATE = re.compile(
    rb"\\(?<!\\\\)(\\*)u[dD](?:[89abAB][\da-fA-F]{2}(\\u[dD][c-fC-F][\da-fA-F]{2})?|[c-fC-F][\da-fA-F]{2})"
)
"""An escaped surrogate, with all backslashes before it, and with its other half if that follows. The pattern matches a
backslash before it looks back, so that other characters and escapes are skipped quickly."""

_HIGH = rb"\\u[dD][89abAB][\da-fA-F]{2}"
_OPEN = re.compile(rb"(?:" + _HIGH + rb")?(\\(?:u[\da-fA-F]{0,3})?)\Z|" + _HIGH + rb"\Z")
"""The end of a piece that cuts an escape, or a pair of surrogates."""

_PAIR = 12
"""The length in bytes of a pair of surrogates, each escaped."""

_BACKSLASH = ord("\\")


def mended(data: bytes) -> bytes:
    """Return JSON, or a piece of it that cuts no escape, with U+FFFD for each escaped half of a pair."""
    if b"\\ud" in data or b"\\uD" in data:
        return _SURROGATE.sub(_whole, data)
    return data


def _whole(found: re.Match[bytes]) -> bytes:
    backslashes, low = found.groups()
    if len(backslashes) % 2:  # the last one is itself escaped, so text follows; the other half may be alone
        before = b"\\" + backslashes
        return before + _SURROGATE.sub(_whole, found[0][len(before) :])
    return found[0] if low else b"\\" + backslashes + b"ufffd"


class Mender:
    """Mends JSON that comes in pieces, without looking at each character where nothing is wrong.

    A byte that is not UTF-8 becomes U+FFFD too, and a byte order mark at the start is dropped.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._at_start = True
        self._held = b""

    def mend(self, piece: bytes, *, final: bool = False) -> bytes:
        """Return the complete part of what was held before and ``piece``; hold the rest."""
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
