"""What every system under test must do, through its own public API. Nothing here measures.

To add a system, write a module here that subclasses ``System``, and a line in ``benchmarks/systems/__init__.py``. If a
system cannot do something, its method raises ``Missing`` with the reason, which the tables show.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("THRESHOLD_TOKENS", "Missing", "System")

THRESHOLD_TOKENS = 2_500
"""A larger result is offloaded. It is Strands' default and ours. If a system counts characters, four make a token."""

PREVIEW_TOKENS = 1_000
"""Size of the preview, if it can be chosen."""

CHARACTERS_PER_TOKEN = 4


class Missing(Exception):
    """A system cannot do something, or fails at it. The message says why."""


class System:
    """One system with a new folder to store in. Methods may be called repeatedly."""

    distributions: ClassVar[tuple[str, ...]]
    """The packages whose versions are printed."""

    cannot_read: ClassVar[str] = ""
    """Why offloaded content cannot be searched and read in parts, if it cannot."""

    stores: ClassVar[bool] = True
    """Whether it must leave the content in its folder. One that does only a part of the work need not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def versions(cls) -> str:
        """Return the packages and their versions."""
        return ", ".join(f"{name} {version(name)}" for name in cls.distributions)

    def passing(self, text: str) -> Callable[[], object]:
        """Return a call for one agent step with one small result, which stays."""
        raise Missing(_OTHERWISE)

    def offloading(self, text: str) -> Callable[[], str]:
        """Return a call for one agent step with one large result. It returns what the conversation then holds."""
        raise Missing(_OTHERWISE)

    def find(self, pattern: str) -> str:
        """Search what was offloaded last, as the model would, and return what the model would read."""
        raise Missing(self.cannot_read or _NO_SUCH_TOOL)

    def read(self, first: int, last: int) -> str:
        """Read lines of what was offloaded last, as the model would."""
        raise Missing(self.cannot_read or _NO_SUCH_TOOL)

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Return a call that stores one more entry, using only the storage."""
        raise Missing(_NO_STORAGE)

    async def aoffload(self, text: str) -> str:
        """Do what a call from ``offloading`` does, in an event loop with many agents."""
        raise Missing(_SYNC_ONLY)


_OTHERWISE = "not measured"
_NO_SUCH_TOOL = "ships no such tool"
_NO_STORAGE = "its storage cannot be used by itself"
_SYNC_ONLY = "sync only: blocks the loop until it is done"
