"""Names of Haystack's own hook that users can import from here too. They are the same objects."""

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
