"""coatcheck itself, without a framework, and with files on disk."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.systems.system import PREVIEW_TOKENS, THRESHOLD_TOKENS, System
from coatcheck import FileStorage, Kept, Offloaded, Offloader, TextBlock, TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from coatcheck import Outcome, Storage

__all__ = ("Coatcheck", "CoatcheckByDefault", "CoatcheckSynced")

_SCOPE = "0123456789abcdef"


class Coatcheck(System):
    """``Offloader`` with ``FileStorage``."""

    distributions = ("coatcheck",)
    fsync = False
    preview_tokens: int | None = PREVIEW_TOKENS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        TiktokenCounter().warm_up()
        self.storage = self.make_storage()
        self.offloader = Offloader(self.storage, max_result_tokens=THRESHOLD_TOKENS, preview_tokens=self.preview_tokens)
        self._reference = ""

    def make_storage(self) -> Storage:
        """Return the storage."""
        return FileStorage(self.folder, fsync=self.fsync)

    def passing(self, text: str) -> Callable[[], object]:
        """Offer one block of text."""
        block = TextBlock(text)
        assert isinstance(self.offloader.offload([block], tool_name="search", scope="s"), Kept)
        return lambda: self.offloader.offload([block], tool_name="search", scope="s")

    def offloading(self, text: str) -> Callable[[], str]:
        """Offload one block of text."""
        block = TextBlock(text)
        return lambda: self._shown(self.offloader.offload([block], tool_name="search", scope="s"))

    def find(self, pattern: str) -> str:
        """Search through the retrieval tool."""
        return self.offloader.retrieve(self._reference, scope="s", pattern=pattern).text

    def read(self, first: int, last: int) -> str:
        """Read through the retrieval tool."""
        return self.offloader.retrieve(self._reference, scope="s", line_range=(first, last)).text

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Save one entry."""
        content = f"{number} {text}".encode()
        digest = hashlib.sha256(content).hexdigest()
        key = f"{_SCOPE}/{digest[:16]}"
        return partial(self.storage.save, key, content, content_type="text/plain", metadata={"sha256": digest})

    async def aoffload(self, text: str) -> str:
        """Offload one block of text."""
        return self._shown(await self.offloader.aoffload([TextBlock(text)], tool_name="search", scope="s"))

    def _shown(self, outcome: Outcome) -> str:
        assert isinstance(outcome, Offloaded)
        self._reference = str(outcome.references[0])
        (block,) = outcome.blocks
        assert isinstance(block, TextBlock)
        return block.text


class CoatcheckSynced(Coatcheck):
    """The same, with everything synced to disk before a reference is handed out."""

    fsync = True


class CoatcheckByDefault(Coatcheck):
    """The same, with the default preview, which is half as long."""

    preview_tokens = None
