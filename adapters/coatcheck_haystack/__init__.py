"""coatcheck for Haystack: oversized tool results leave an agent's conversation, and one tool reads them back.

Only the front door belongs here: the public names, each loaded when it is first used, and the one place that says which
extra to install. What is Haystack's own (protocols, three policies, one key) is Haystack's own object.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

try:
    import haystack as _haystack  # noqa: F401 - all else is loaded when it is first used
except ImportError as exc:
    _msg = 'coatcheck_haystack needs haystack-ai. Install it with: pip install "coatcheck[haystack]"'
    raise ImportError(_msg) from exc

if TYPE_CHECKING:
    from haystack.hooks.tool_result_offloading import (
        RESULT_STORE_CONTEXT_KEY,
        AlwaysOffload,
        NeverOffload,
        OffloadOverChars,
        OffloadPolicy,
        ToolResultStore,
    )

    from coatcheck_haystack.convert import offloaded_references
    from coatcheck_haystack.hook import ToolResultOffloadHook
    from coatcheck_haystack.meta import arestore_meta, restore_meta
    from coatcheck_haystack.options import SCOPE_CONTEXT_KEY
    from coatcheck_haystack.policy import OffloadOverTokens
    from coatcheck_haystack.retrieval import RetrievalTool
    from coatcheck_haystack.store import FileSystemToolResultStore

__all__ = (
    "RESULT_STORE_CONTEXT_KEY",
    "SCOPE_CONTEXT_KEY",
    "AlwaysOffload",
    "FileSystemToolResultStore",
    "NeverOffload",
    "OffloadOverChars",
    "OffloadOverTokens",
    "OffloadPolicy",
    "RetrievalTool",
    "ToolResultOffloadHook",
    "ToolResultStore",
    "arestore_meta",
    "offloaded_references",
    "restore_meta",
)

_UPSTREAM = "haystack.hooks.tool_result_offloading"
_MODULE_OF = {
    "RESULT_STORE_CONTEXT_KEY": _UPSTREAM,
    "SCOPE_CONTEXT_KEY": "coatcheck_haystack.options",
    "AlwaysOffload": _UPSTREAM,
    "FileSystemToolResultStore": "coatcheck_haystack.store",
    "NeverOffload": _UPSTREAM,
    "OffloadOverChars": _UPSTREAM,
    "OffloadOverTokens": "coatcheck_haystack.policy",
    "OffloadPolicy": _UPSTREAM,
    "RetrievalTool": "coatcheck_haystack.retrieval",
    "ToolResultOffloadHook": "coatcheck_haystack.hook",
    "ToolResultStore": _UPSTREAM,
    "arestore_meta": "coatcheck_haystack.meta",
    "offloaded_references": "coatcheck_haystack.convert",
    "restore_meta": "coatcheck_haystack.meta",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used.

    Raises:
        AttributeError: there is no such name.

    """
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
