"""coatcheck for the Microsoft Agent Framework: oversized tool results stay out of a conversation, one tool reads them.

Only the public names belong here, each loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_agent_framework.convert import offloaded_references
    from coatcheck_agent_framework.offloader import ToolOffloader

__all__ = ("ToolOffloader", "offloaded_references")

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept a misspelled name
    __getattr__, __dir__ = front_door(
        __name__,
        {"convert": ("offloaded_references",), "offloader": ("ToolOffloader",)},
        needs="agent_framework",
        install="coatcheck[agent-framework]",
    )
