"""The limit: the least that any such system must do, written as a ``System`` so that it runs among the others."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.limits import encode_and_write, ranged_read, ripgrep, ripgrep_program, ripgrep_version
from benchmarks.systems.system import PREVIEW_TOKENS, THRESHOLD_TOKENS, Missing, System
from coatcheck import TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("Counted", "Decided", "Hashed", "Least")

BYTES_OF_LINES = 2_000
"""About twenty lines of log text."""


class Least(System):
    """``os.write``, ripgrep, and a read of bytes at a known position."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._written = 0

    @classmethod
    def versions(cls) -> str:
        """Return what runs, with ripgrep's version if there is one."""
        return f"os.write, os.pread, {ripgrep_version()}"

    def offloading(self, text: str) -> Callable[[], str]:
        """Encode and write."""

        def write() -> str:
            encode_and_write(text, self.folder / "content")
            return ""

        return write

    def find(self, pattern: str) -> str:
        """Search with ripgrep."""
        program = ripgrep_program()
        if program is None:
            msg = "ripgrep is not installed here"
            raise Missing(msg)
        return ripgrep(program, pattern, self.folder / "content")

    def read(self, first: int, last: int) -> str:
        """Read bytes from the middle, because it is unknown where lines begin, and finding out would cost more."""
        del first, last
        path = self.folder / "content"
        return ranged_read(path, path.stat().st_size // 2, BYTES_OF_LINES).decode(errors="replace")

    async def aoffload(self, text: str) -> str:
        """Encode and write on one of asyncio's threads."""
        self._written += 1
        await asyncio.to_thread(encode_and_write, text, self.folder / f"content {self._written}")
        return ""

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Encode and write one more file in the folder."""
        return partial(encode_and_write, f"{number} {text}", self.folder / str(number))


class Hashed(System):
    """Only SHA-256 of the text: the cost of a reference that reveals damaged content."""

    stores = False

    @classmethod
    def versions(cls) -> str:
        """Return the name of the hashing module."""
        return "hashlib"

    def offloading(self, text: str) -> Callable[[], str]:
        """Encode and hash."""

        def step() -> str:
            hashlib.sha256(text.encode()).hexdigest()
            return ""

        return step


class Decided(System):
    """Only counting, until it is clear that the text is above the threshold: the cost of an exact decision."""

    distributions = ("tiktoken",)
    stores = False
    shown_tokens = 0
    """Tokens to cut from the head as well, as for a preview."""

    def offloading(self, text: str) -> Callable[[], str]:
        """Count."""
        counter = TiktokenCounter()
        counter.warm_up()

        def step() -> str:
            counter.exceeds(text, THRESHOLD_TOKENS)
            if self.shown_tokens:
                counter.head(text, self.shown_tokens)
            return ""

        return step


class Counted(Decided):
    """Only counting: up to the threshold to decide, and up to a preview's tokens to cut it."""

    shown_tokens = PREVIEW_TOKENS
