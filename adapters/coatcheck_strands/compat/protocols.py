"""The protocols of a storage and of a callback that users write for Strands' own offloader and for this one.

Only these protocols belong here. Both are recognized by their methods; nobody needs to inherit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ("ShouldOffload", "Storage")


@runtime_checkable
class Storage(Protocol):
    """Keeps content and makes its own references. ``store`` and ``retrieve`` may be plain or ``async``."""

    def store(self, key: str, content: bytes, content_type: str = "text/plain") -> Awaitable[str] | str:
        """Store content of a MIME type, and return the reference that the model will see."""
        ...

    def retrieve(self, reference: str) -> Awaitable[tuple[bytes, str]] | tuple[bytes, str]:
        """Return the content and its MIME type, or raise ``KeyError``."""
        ...


class ShouldOffload(Protocol):
    """Has the last word on a result that is about to be offloaded."""

    def __call__(self, tool_name: str, token_count: int, **kwargs: Any) -> bool | Awaitable[bool]:  # noqa: ANN401
        """Return whether to offload the result. May be ``async``. Later versions may pass more keywords."""
        ...
