"""An offloader and a storage that fail, so that only the last resort is left: for the tests of all adapters."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import InMemoryStorage, Offloader

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("CUT", "ERRORS", "HUGE", "LARGE", "FailingOffloader", "FullStorage", "is_cut")

LIMIT = 4 * 5_000
LARGE = "large, and not too large " * 700
CUT = "Tool result cut."
HUGE = f"BEGIN {'huge ' * 10_000} END"
assert len(LARGE) <= LIMIT < len(HUGE)

ERRORS = pytest.mark.parametrize("error", [RuntimeError("broken"), MemoryError(), RecursionError()], ids=repr)


class FailingOffloader(Offloader):
    """Raises ``error`` whenever it is asked to offload. Its hard limit is 20,000 bytes."""

    def __init__(self, error: Exception, *, storage: Any = None) -> None:
        super().__init__(InMemoryStorage() if storage is None else storage, max_inline_tokens=LIMIT // 4)
        self._error = error

    def offload(self, *_: object, **__: object) -> Any:
        raise self._error

    async def aoffload(self, *_: object, **__: object) -> Any:
        raise self._error

    def offload_step(self, *_: object, **__: object) -> Any:
        raise self._error

    async def aoffload_step(self, *_: object, **__: object) -> Any:
        raise self._error


class FullStorage:
    """A storage that fails to save, as if memory had run out."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        raise MemoryError

    def load(self, key: str) -> None:
        return None


def is_cut(text: str) -> bool:
    """Return whether ``text`` is the two ends of ``HUGE``, and no longer than the limit."""
    return text.startswith(CUT) and "BEGIN " in text and text.endswith(" END") and len(text) <= LIMIT
