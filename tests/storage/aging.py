"""A clock for storages that accept one: entries age when a test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck import Storage

__all__ = ("Aging", "Clock")


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time, in seconds."""
        return self.now


class Aging:
    """Lets the storage contract make an entry older. Must come before it among the bases."""

    clock: Clock

    def make_older(self, storage: Storage, key: str) -> bool:
        """Move the clock by a second."""
        self.clock.now += 1
        return True
