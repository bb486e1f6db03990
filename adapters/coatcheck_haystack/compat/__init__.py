"""Everything needed so that changing one import is enough: Haystack's own store, strategies, previews and dictionaries.

``coatcheck_haystack`` and ``haystack_integrations.hooks.coatcheck`` offer what users need of it.
"""

from __future__ import annotations

__all__ = ()
