"""The names under which Haystack finds coatcheck's classes in a pipeline's YAML, without an allowlist.

Only names belong here. Other packages share ``haystack_integrations`` and ``hooks``, so neither may have an
``__init__.py``. Users import from ``coatcheck_haystack``.
"""

from __future__ import annotations

from coatcheck_haystack import FileSystemToolResultStore, OffloadOverTokens, RetrievalTool, ToolResultOffloadHook

__all__ = ("FileSystemToolResultStore", "OffloadOverTokens", "RetrievalTool", "ToolResultOffloadHook")
