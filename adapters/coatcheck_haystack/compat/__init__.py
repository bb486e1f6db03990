"""What makes this package a drop-in replacement: Haystack's own store, strategies, previews and dictionaries.

``coatcheck_haystack`` and ``haystack_integrations.hooks.coatcheck`` export what users need from it.
"""

from __future__ import annotations

__all__ = ()
