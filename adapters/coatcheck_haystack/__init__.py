"""coatcheck for Haystack: oversized tool results stay out of an agent's conversation, and one tool reads them back.

Only the public names belong here, each loaded when it is first used. Names that Haystack has too (protocols, three
policies, one key) are Haystack's own objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from haystack.hooks.tool_result_offloading import (
        RESULT_STORE_CONTEXT_KEY,
        AlwaysOffload,
        NeverOffload,
        OffloadOverChars,
        OffloadPolicy,
        ToolResultStore,
    )

    from coatcheck_haystack.compat.policy import OffloadOverTokens
    from coatcheck_haystack.compat.store import FileSystemToolResultStore
    from coatcheck_haystack.convert import offloaded_references
    from coatcheck_haystack.hook import ToolResultOffloadHook
    from coatcheck_haystack.meta import arestore_meta, restore_meta
    from coatcheck_haystack.options import SCOPE_CONTEXT_KEY
    from coatcheck_haystack.retrieval import RetrievalTool

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

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept a misspelled name
    __getattr__, __dir__ = front_door(
        __name__,
        {
            "compat.policy": ("OffloadOverTokens",),
            "compat.store": ("FileSystemToolResultStore",),
            "convert": ("offloaded_references",),
            "hook": ("ToolResultOffloadHook",),
            "meta": ("arestore_meta", "restore_meta"),
            "options": ("SCOPE_CONTEXT_KEY",),
            "retrieval": ("RetrievalTool",),
            "compat.upstream": (
                "RESULT_STORE_CONTEXT_KEY",
                "AlwaysOffload",
                "NeverOffload",
                "OffloadOverChars",
                "OffloadPolicy",
                "ToolResultStore",
            ),
        },
        needs="haystack",
        install="coatcheck[haystack]",
    )
