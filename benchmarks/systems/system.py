"""What every system under test is asked to do, through its own public API. Nothing here measures.

To add a system: a module here that subclasses ``System``, and a line in ``benchmarks/systems/__init__.py``. Where a
system cannot do a thing, its method raises ``Missing`` with the reason, which the tables then show.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("THRESHOLD_TOKENS", "Missing", "System")

THRESHOLD_TOKENS = 2_500
"""Above this a result leaves: Strands' default and ours. Where a system counts characters, four make a token."""

PREVIEW_TOKENS = 1_000
"""Stays in view, where the size of a preview can be chosen."""

CHARACTERS_PER_TOKEN = 4


class Missing(Exception):
    """A system lacks a thing, or fails at it; the message says why."""


class System:
    """One system with one fresh folder to store in. Methods may be called again and again."""

    distributions: ClassVar[tuple[str, ...]]
    """The packages whose versions are printed."""

    cannot_read: ClassVar[str] = ""
    """Why offloaded content cannot be searched and read in parts, if it cannot."""

    stores: ClassVar[bool] = True
    """Whether it is to leave the content in its folder; a part of what a system does may not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def versions(cls) -> str:
        """Return what runs, with versions."""
        return ", ".join(f"{name} {version(name)}" for name in cls.distributions)

    def passing(self, text: str) -> Callable[[], object]:
        """Return one step of an agent with one small result, which stays."""
        raise Missing(_OTHERWISE)

    def offloading(self, text: str) -> Callable[[], str]:
        """Return one step of an agent with one large result; it gives what the conversation holds instead."""
        raise Missing(_OTHERWISE)

    def find(self, pattern: str) -> str:
        """Search what was offloaded last, as the model would, and return what the model reads."""
        raise Missing(self.cannot_read or _NO_SUCH_TOOL)

    def read(self, first: int, last: int) -> str:
        """Read lines of what was offloaded last, as the model would."""
        raise Missing(self.cannot_read or _NO_SUCH_TOOL)

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Return a call that stores one more entry, in the storage alone."""
        raise Missing(_NO_STORAGE)

    async def aoffload(self, text: str) -> str:
        """Do what a step of ``offloading`` does, in the event loop of many agents."""
        raise Missing(_SYNC_ONLY)


_OTHERWISE = "not measured"
_NO_SUCH_TOOL = "ships no such tool"
_NO_STORAGE = "its storage cannot be used by itself"
_SYNC_ONLY = "sync only: blocks the loop until it is done"
