"""All operations of one offloader, as generators of effects that ``execution`` drives, sync or async.

Each direction has its own module: ``offloading`` takes tool results out of the conversation, ``retrieving`` reads
stored content back, ``cleanup`` deletes. This module only brings them together.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from coatcheck.core.references import scope_part
from coatcheck.engine.cleanup import SweepLimits, delete_all, sweep
from coatcheck.engine.listing import list_contents
from coatcheck.engine.offloading import Offloading
from coatcheck.engine.retrieving import Retrieving

if TYPE_CHECKING:
    from coatcheck.core.references import Scope
    from coatcheck.core.retrieved import Listing
    from coatcheck.core.settings import Settings
    from coatcheck.engine.events import Recorder
    from coatcheck.engine.execution import Effects, StorageAccess

__all__ = ("Engine",)


class Engine:
    """The operations of one offloader."""

    def __init__(self, storage: StorageAccess, settings: Settings, recorder: Recorder) -> None:
        self._storage = storage
        offloading = Offloading(storage, settings, recorder)
        retrieving = Retrieving(storage, settings, recorder)
        self.offload = offloading.offload
        self.offload_step = offloading.offload_step
        self.retrieve = retrieving.retrieve
        self.load = retrieving.load
        self.expand = retrieving.expand

    def list_contents(self, scope: Scope, *, tool_name: str | None, limit: int, after: str | None) -> Effects[Listing]:
        """List what a scope holds; see ``listing.list_contents``."""
        return list_contents(self._storage, scope, tool_name=tool_name, limit=limit, after=after)

    def delete_scope(self, scope: Scope) -> Effects[int]:
        """Delete everything that a scope holds; see ``cleanup.delete_all``."""
        return delete_all(self._storage, f"{scope_part(scope)}/", now=time.time())

    def delete_scopes(self, under: tuple[str, ...]) -> Effects[int]:
        """Delete everything in the tuple scopes that begin with the parts ``under``; see ``cleanup.delete_all``."""
        return delete_all(self._storage, scope_part(under), now=time.time())

    def sweep(self, **limits: float | None) -> Effects[int]:
        """Delete what is past a limit now; see ``cleanup.SweepLimits``."""
        return sweep(self._storage, SweepLimits(**limits), now=time.time())
