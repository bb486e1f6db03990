"""What makes this package a drop-in replacement: Strands' own storages, sandboxes, old sessions and eviction.

``coatcheck_strands`` exports what users need from it.
"""

from __future__ import annotations

__all__ = ()
