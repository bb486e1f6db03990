"""coatcheck for LangChain and LangGraph: oversized tool results leave the conversation, one tool reads them back.

Only the front door belongs here: the public names, each loaded when it is first used, and the one place that says which
extra to install. ``coatcheck[langchain]`` brings what needs langchain-core alone, ``coatcheck[langgraph]`` the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

try:
    import langchain_core as _langchain_core  # noqa: F401 - all else is loaded when it is first used
except ImportError as exc:
    _msg = 'coatcheck_langchain needs langchain-core. Install it with: pip install "coatcheck[langchain]"'
    raise ImportError(_msg) from exc

if TYPE_CHECKING:
    from coatcheck_langchain.artifacts import arestore_artifact, restore_artifact
    from coatcheck_langchain.convert import offloaded_references
    from coatcheck_langchain.middleware import OffloadMiddleware
    from coatcheck_langchain.retrieval import retrieval_tool
    from coatcheck_langchain.tool import offload_tool
    from coatcheck_langchain.tool_calls import offload_tool_calls
    from coatcheck_langchain.tool_node import offload_tool_node

__all__ = (
    "OffloadMiddleware",
    "arestore_artifact",
    "offload_tool",
    "offload_tool_calls",
    "offload_tool_node",
    "offloaded_references",
    "restore_artifact",
    "retrieval_tool",
)

_MODULE_OF = {
    "OffloadMiddleware": "middleware",
    "arestore_artifact": "artifacts",
    "offload_tool": "tool",
    "offload_tool_calls": "tool_calls",
    "offload_tool_node": "tool_node",
    "offloaded_references": "convert",
    "restore_artifact": "artifacts",
    "retrieval_tool": "retrieval",
}
_BEYOND_CORE = {"OffloadMiddleware": "langchain.agents.middleware", "offload_tool_calls": "langgraph.prebuilt"}
"""What a name needs beside langchain-core."""


def __getattr__(name: str) -> object:
    """Load a public name when it is first used.

    Raises:
        ImportError: it needs the extra ``coatcheck[langgraph]``.
        AttributeError: there is no such name.

    """
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if name in _BEYOND_CORE:
        try:
            importlib.import_module(_BEYOND_CORE[name])
        except ImportError as exc:
            msg = f'{name} needs langchain and langgraph. Install them with: pip install "coatcheck[langgraph]"'
            raise ImportError(msg) from exc
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
