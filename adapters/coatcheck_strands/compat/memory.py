"""In-memory storage: the core's, with the constructor and methods of Strands' own offloader storage.

Only what differs from ``coatcheck.InMemoryStorage`` belongs here: ``store`` and ``retrieve``, and when entries are
deleted. Several agents may share one storage; their scopes decide what each may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck import InMemoryStorage as CoreStorage
from coatcheck_strands.compat.cycles import FOLDER, Cycles
from coatcheck_strands.compat.storing import KnownScopes, StoresAndRetrieves
from coatcheck_strands.options import check_cycles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck import Listed, Stored

__all__ = ("InMemoryStorage",)


class InMemoryStorage(StoresAndRetrieves, CoreStorage):
    """Keeps at most 256 MB of content in this process. The least recently used entries are deleted first.

    Entries that an agent has not used for ``evict_after_turns`` of its cycles are deleted too, unless another agent
    uses them.
    """

    def __init__(self, evict_after_turns: int | None = 20) -> None:
        """Set after how many cycles an unused entry is deleted; None means never.

        Raises:
            InvalidRequest: ``evict_after_turns`` is neither an int above 0 nor None.

        """
        super().__init__()
        self.evict_after_turns: int | None = check_cycles("evict_after_turns", evict_after_turns)
        self.cycles: Cycles = Cycles(self.evict_after_turns)
        self.known_scopes: KnownScopes = KnownScopes()

    def __repr__(self) -> str:
        return f"InMemoryStorage(evict_after_turns={self.evict_after_turns})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry, and record which agent uses it.

        Raises:
            StorageError: the entry is larger than the storage, or other content has this key.

        """
        super().save(key, content, content_type=content_type, metadata=metadata)
        self.cycles.note(key)

    def load(self, key: str) -> Stored | None:
        """Return the entry or None, and record which agent uses it."""
        found: Stored | None = super().load(key)
        if found is not None:
            self.cycles.note(key)
        return found

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries below ``prefix``, except what the host stored itself, which has no scope.

        No clean-up by coatcheck deletes the host's content. Only eviction does, by cycles or by least recent use.
        """
        return [entry for entry in super().entries(prefix) if not entry.key.startswith(FOLDER)]
