"""Storages: where offloaded content goes.

``protocol`` defines what a storage is. The public ones are in modules of their own: storages, and bridges to those of
frameworks. A storage keeps bytes under keys and knows nothing of agents, scopes or previews.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.lazy import lazily

if TYPE_CHECKING:
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

__all__ = (
    "Deletes",
    "DeletesMany",
    "DescribesErrors",
    "FileStorage",
    "FsspecBridge",
    "InMemoryStorage",
    "LangGraphStoreBridge",
    "Listed",
    "Lists",
    "ListsPages",
    "LocalPath",
    "NamesReferences",
    "Page",
    "ReadsRanges",
    "S3Storage",
    "Storage",
    "Stored",
    "StrandsOffloaderStorageBridge",
    "StrandsStorageBridge",
    "Sweeps",
    "ToolResultStoreBridge",
)

if not TYPE_CHECKING:  # a type checker that sees __getattr__ accepts any misspelled name
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "file": ("FileStorage",),
            "fsspec_bridge": ("FsspecBridge",),
            "haystack_bridge": ("ToolResultStoreBridge",),
            "langgraph_bridge": ("LangGraphStoreBridge",),
            "memory": ("InMemoryStorage",),
            "protocol": (
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
            "s3": ("S3Storage",),
            "strands_bridge": ("StrandsOffloaderStorageBridge", "StrandsStorageBridge"),
        },
    )
