"""coatcheck takes oversized tool results out of a conversation, and gives the model one tool to read them back.

The public names are below. Each loads its module on first use, so ``import coatcheck`` costs next to nothing: it loads
no tokenizer, no regex engine and no framework. No module of this package imports this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.forks import loading
from coatcheck.core.lazy import lazily

if TYPE_CHECKING:
    from coatcheck.adapting.compaction import keep_references
    from coatcheck.adapting.guards import asks_to_keep, is_called_by_code, is_for_code_only
    from coatcheck.core.arguments import asks_for_list
    from coatcheck.core.blocks import (
        Block,
        JsonBlock,
        Kept,
        MediaBlock,
        Offloaded,
        OpaqueBlock,
        Outcome,
        TextBlock,
        ToolResult,
        Truncated,
    )
    from coatcheck.core.errors import (
        CoatcheckError,
        CorruptContent,
        InvalidRequest,
        ReferenceExpired,
        ReferenceNotFound,
        StorageError,
    )
    from coatcheck.core.facts import Reference
    from coatcheck.core.notice import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL
    from coatcheck.core.plan import policy_of
    from coatcheck.core.policy import (
        Always,
        Never,
        OverChars,
        OverShare,
        OverTokens,
        Policy,
    )
    from coatcheck.core.references import Scope
    from coatcheck.core.retrieved import Content, ListedContent, Listing, Retrieved
    from coatcheck.core.settings import Settings
    from coatcheck.core.tokens import ByteCounter, TiktokenCounter, TokenCounter
    from coatcheck.engine.events import Event, Stats
    from coatcheck.engine.failures import log_failure
    from coatcheck.engine.options import OffloaderOptions
    from coatcheck.offloader import Offloader
    from coatcheck.retrieval import failure_for_model, retrieval_arguments, retrieval_schema
    from coatcheck.scopes import choose_scope, scope
    from coatcheck.storage.file import FileStorage
    from coatcheck.storage.fsspec_bridge import FsspecBridge
    from coatcheck.storage.haystack_bridge import ToolResultStoreBridge
    from coatcheck.storage.langgraph_bridge import LangGraphStoreBridge
    from coatcheck.storage.memory import InMemoryStorage
    from coatcheck.storage.protocol import (
        Deletes,
        DeletesMany,
        DescribesErrors,
        Listed,
        Lists,
        ListsPages,
        LocalPath,
        NamesReferences,
        Page,
        ReadsRanges,
        Storage,
        Stored,
        Sweeps,
    )
    from coatcheck.storage.s3 import S3Storage
    from coatcheck.storage.strands_bridge import StrandsOffloaderStorageBridge, StrandsStorageBridge
    from coatcheck.telemetry import OpenTelemetry

    __version__: str

__all__ = (
    "RETRIEVAL_DESCRIPTION",
    "RETRIEVAL_TOOL",
    "Always",
    "Block",
    "ByteCounter",
    "CoatcheckError",
    "Content",
    "CorruptContent",
    "Deletes",
    "DeletesMany",
    "DescribesErrors",
    "Event",
    "FileStorage",
    "FsspecBridge",
    "InMemoryStorage",
    "InvalidRequest",
    "JsonBlock",
    "Kept",
    "LangGraphStoreBridge",
    "Listed",
    "ListedContent",
    "Listing",
    "Lists",
    "ListsPages",
    "LocalPath",
    "MediaBlock",
    "NamesReferences",
    "Never",
    "Offloaded",
    "Offloader",
    "OffloaderOptions",
    "OpaqueBlock",
    "OpenTelemetry",
    "Outcome",
    "OverChars",
    "OverShare",
    "OverTokens",
    "Page",
    "Policy",
    "ReadsRanges",
    "Reference",
    "ReferenceExpired",
    "ReferenceNotFound",
    "Retrieved",
    "S3Storage",
    "Scope",
    "Settings",
    "Stats",
    "Storage",
    "StorageError",
    "Stored",
    "StrandsOffloaderStorageBridge",
    "StrandsStorageBridge",
    "Sweeps",
    "TextBlock",
    "TiktokenCounter",
    "TokenCounter",
    "ToolResult",
    "ToolResultStoreBridge",
    "Truncated",
    "__version__",
    "asks_for_list",
    "asks_to_keep",
    "choose_scope",
    "failure_for_model",
    "is_called_by_code",
    "is_for_code_only",
    "keep_references",
    "log_failure",
    "policy_of",
    "retrieval_arguments",
    "retrieval_schema",
    "scope",
)

_MODULES = {
    "adapting.compaction": ("keep_references",),
    "adapting.guards": ("asks_to_keep", "is_called_by_code", "is_for_code_only"),
    "core.arguments": ("asks_for_list",),
    "core.blocks": (
        "Block",
        "JsonBlock",
        "Kept",
        "MediaBlock",
        "Offloaded",
        "OpaqueBlock",
        "Outcome",
        "TextBlock",
        "ToolResult",
        "Truncated",
    ),
    "core.errors": (
        "CoatcheckError",
        "CorruptContent",
        "InvalidRequest",
        "ReferenceExpired",
        "ReferenceNotFound",
        "StorageError",
    ),
    "core.facts": ("Reference",),
    "core.notice": ("RETRIEVAL_DESCRIPTION", "RETRIEVAL_TOOL"),
    "core.plan": ("policy_of",),
    "core.policy": (
        "Always",
        "Never",
        "OverChars",
        "OverShare",
        "OverTokens",
        "Policy",
    ),
    "core.references": ("Scope",),
    "core.retrieved": ("Content", "ListedContent", "Listing", "Retrieved"),
    "core.settings": ("Settings",),
    "core.tokens": ("ByteCounter", "TiktokenCounter", "TokenCounter"),
    "engine.events": ("Event", "Stats"),
    "engine.failures": ("log_failure",),
    "engine.options": ("OffloaderOptions",),
    "offloader": ("Offloader",),
    "retrieval": ("failure_for_model", "retrieval_arguments", "retrieval_schema"),
    "scopes": ("choose_scope", "scope"),
    "storage.file": ("FileStorage",),
    "storage.fsspec_bridge": ("FsspecBridge",),
    "storage.haystack_bridge": ("ToolResultStoreBridge",),
    "storage.langgraph_bridge": ("LangGraphStoreBridge",),
    "storage.memory": ("InMemoryStorage",),
    "storage.protocol": (
        "Deletes",
        "DeletesMany",
        "DescribesErrors",
        "Listed",
        "Lists",
        "ListsPages",
        "LocalPath",
        "NamesReferences",
        "Page",
        "ReadsRanges",
        "Storage",
        "Stored",
        "Sweeps",
    ),
    "storage.s3": ("S3Storage",),
    "storage.strands_bridge": ("StrandsOffloaderStorageBridge", "StrandsStorageBridge"),
    "telemetry": ("OpenTelemetry",),
}

if not TYPE_CHECKING:  # a type checker that sees __getattr__ accepts any misspelled name
    _load, __dir__ = lazily(__name__, _MODULES)

    def __getattr__(name: str) -> object:
        """Load a public name on first use."""
        if name == "__version__":
            with loading:
                from importlib.metadata import version  # noqa: PLC0415 - read only when asked for

            return version("coatcheck")
        return _load(name)
