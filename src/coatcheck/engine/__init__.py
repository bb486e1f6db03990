"""What has effects: storages and policies are called, threads run, events are sent, and time passes.

``offloading`` and ``retrieving`` hold the order of effects; ``execution`` says on which thread each of them runs.
"""

from __future__ import annotations

__all__ = ()
