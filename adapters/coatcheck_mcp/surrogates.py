"""Half a surrogate pair in JSON, such as of a cut emoji: no parser here accepts it, so it becomes U+FFFD."""

from __future__ import annotations

import re

__all__ = ("mended",)

_SURROGATE = re.compile(
    rb"\\(?<!\\\\)(\\*)u[dD](?:[89abAB][\da-fA-F]{2}(\\u[dD][c-fC-F][\da-fA-F]{2})?|[c-fC-F][\da-fA-F]{2})"
)
"""An escaped surrogate, with all backslashes before it, and with its other half if that follows. The pattern matches a
backslash before it looks back, so that other characters and escapes are skipped quickly."""


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
