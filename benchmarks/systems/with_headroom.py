"""headroom: ``compress`` on a conversation with one tool result, with its SQLite store, from which it reads back.

It has a minimum size instead of a threshold, and no preview size. Here it runs without the model that it would
download, so it leaves prose as it is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from benchmarks.systems.system import THRESHOLD_TOKENS, System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("Headroom",)


class Headroom(System):
    """Compresses a conversation with one tool result."""

    distributions = ("headroom-ai",)
    cannot_read = "gives back the whole content only"

    def __init__(self, folder: Path) -> None:
        os.environ["HEADROOM_WORKSPACE_DIR"] = os.fspath(folder)
        from headroom import CompressConfig, compress  # noqa: PLC0415 - it reads the variable on import
        from headroom.cache.compression_store import reset_compression_store  # noqa: PLC0415

        super().__init__(folder)
        reset_compression_store()
        self._compress = compress
        self._config = CompressConfig(protect_recent=0, min_tokens_to_compress=THRESHOLD_TOKENS)

    def passing(self, text: str) -> Callable[[], object]:
        """Compress a conversation with one small result."""
        messages = _messages(text)
        return lambda: self._compress(messages, model="gpt-4o", config=self._config)

    def offloading(self, text: str) -> Callable[[], str]:
        """Compress a conversation with one large result."""
        messages = _messages(text)

        def step() -> str:
            return str(self._compress(messages, model="gpt-4o", config=self._config).messages[-1]["content"])

        return step


def _messages(text: str) -> list[dict[str, object]]:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Search."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": text},
    ]
