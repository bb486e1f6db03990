"""Everything with side effects: calls of storages and policies, threads, events, clocks.

``offloading`` and ``retrieving`` define the order of effects; ``execution`` decides on which thread each of them runs.
"""

from __future__ import annotations

__all__ = ()
