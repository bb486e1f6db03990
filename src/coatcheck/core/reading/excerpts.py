"""Bytes around matches, kept from the search so that showing them costs no second read."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from coatcheck.core.reading.walk import fetch

if TYPE_CHECKING:
    from coatcheck.core.reading.source import Steps

__all__ = ("MARGIN", "Excerpts")

MARGIN = 4_096
"""Bytes kept on both sides of a match: five lines of context in nearly every content."""

MAX_KEPT = 8_388_608
"""Bytes kept in all. Anything beyond is read again if it is shown."""


class Excerpts:
    """Pieces of the content, by their place in it."""

    def __init__(self, wanted_from: int) -> None:
        """Keep nothing that ends before byte ``wanted_from``: it will not be shown."""
        self._wanted_from = wanted_from
        self._starts: list[int] = []
        self._pieces: list[bytes] = []
        self._kept = 0

    def add(self, start: int, data: bytes) -> None:
        """Keep a piece that starts at or after the start of the last one."""
        if self._kept > MAX_KEPT or start + len(data) <= self._wanted_from:
            return
        if self._starts and start <= self._starts[-1] + len(self._pieces[-1]):
            known = self._starts[-1] + len(self._pieces[-1]) - start
            if known >= len(data):
                return
            start, data = start + known, data[known:]
        self._starts.append(start)
        self._pieces.append(data)
        self._kept += len(data)

    def get(self, start: int, stop: int) -> Steps[bytes]:
        """Return the bytes from ``start`` to ``stop``: kept ones, or else read again."""
        found = []
        at = start
        for number in range(max(0, bisect_right(self._starts, start) - 1), len(self._starts)):
            first, piece = self._starts[number], self._pieces[number]
            if at >= stop or first > at:
                break
            found.append(piece[at - first : stop - first])
            at += len(found[-1])
        return b"".join(found) if at >= stop else (yield from fetch(start, stop))
