"""The names of Haystack's own hook that users import from here too: the very same objects."""

from __future__ import annotations

from haystack.hooks.tool_result_offloading import (
    RESULT_STORE_CONTEXT_KEY,
    AlwaysOffload,
    NeverOffload,
    OffloadOverChars,
    OffloadPolicy,
    ToolResultStore,
)

__all__ = (
    "RESULT_STORE_CONTEXT_KEY",
    "AlwaysOffload",
    "NeverOffload",
    "OffloadOverChars",
    "OffloadPolicy",
    "ToolResultStore",
)
