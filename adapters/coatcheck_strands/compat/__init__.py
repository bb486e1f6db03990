"""Everything needed so that changing one import is enough: Strands' own storages, sandboxes, old sessions and eviction.

``coatcheck_strands`` offers what users need of it.
"""

from __future__ import annotations

__all__ = ()
