"""coatcheck for Google ADK: oversized tool results stay out of the conversation, one tool reads them back.

Only the public names belong here, each loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_adk.artifacts import ArtifactServiceBridge
    from coatcheck_adk.convert import offloaded_references
    from coatcheck_adk.plugin import OffloadPlugin

__all__ = ("ArtifactServiceBridge", "OffloadPlugin", "offloaded_references")

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept a misspelled name
    __getattr__, __dir__ = front_door(
        __name__,
        {
            "artifacts": ("ArtifactServiceBridge",),
            "convert": ("offloaded_references",),
            "plugin": ("OffloadPlugin",),
        },
        needs="google.adk",
        install="coatcheck[google-adk]",
    )
