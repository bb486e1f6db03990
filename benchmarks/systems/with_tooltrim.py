"""tooltrim: ``ToolCompressor`` with its file store. It has one limit, which is both threshold and preview size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tooltrim

from benchmarks.systems.system import PREVIEW_TOKENS, System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("Tooltrim",)


class Tooltrim(System):
    """Counts with tiktoken, because its extra ``tokens`` is installed."""

    distributions = ("tooltrim",)
    cannot_read = "reads pages of characters only"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = tooltrim.FileStore(str(folder))
        self._compressor = tooltrim.ToolCompressor(max_tokens=PREVIEW_TOKENS, store=self.store)

    def passing(self, text: str) -> Callable[[], object]:
        """Compress text that is small enough to stay."""
        return lambda: self._compressor.compress(text)

    def offloading(self, text: str) -> Callable[[], str]:
        """Compress text that is too large."""
        return lambda: self._compressor.compress(text).text

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Put one more entry."""
        content = f"{number} {text}"
        return lambda: self.store.put(content)
