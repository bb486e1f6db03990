"""What exists because one changed import is to be enough: Haystack's own store, strategies, previews and dictionaries.

``coatcheck_haystack`` and ``haystack_integrations.hooks.coatcheck`` offer what users need of it.
"""

from __future__ import annotations

__all__ = ()
