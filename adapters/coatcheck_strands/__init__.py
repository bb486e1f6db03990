"""coatcheck for Strands Agents: oversized tool results stay out of the conversation, one tool reads them back.

Only the public names belong here, each loaded when it is first used. They include those of
``strands.vended_plugins.context_offloader``, so changing one import is enough to switch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_strands.compat.file import FileStorage
    from coatcheck_strands.compat.memory import InMemoryStorage
    from coatcheck_strands.compat.protocols import ShouldOffload, Storage
    from coatcheck_strands.compat.s3 import S3Storage
    from coatcheck_strands.convert import offloaded_references
    from coatcheck_strands.hook import ContextOffloader
    from coatcheck_strands.options import Call

__all__ = (
    "Call",
    "ContextOffloader",
    "FileStorage",
    "InMemoryStorage",
    "S3Storage",
    "ShouldOffload",
    "Storage",
    "offloaded_references",
)

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept a misspelled name
    __getattr__, __dir__ = front_door(
        __name__,
        {
            "compat.file": ("FileStorage",),
            "compat.memory": ("InMemoryStorage",),
            "compat.protocols": ("ShouldOffload", "Storage"),
            "compat.s3": ("S3Storage",),
            "convert": ("offloaded_references",),
            "hook": ("ContextOffloader",),
            "options": ("Call",),
        },
        needs="strands",
        install="coatcheck[strands]",
    )
