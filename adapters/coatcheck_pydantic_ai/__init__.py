"""coatcheck for Pydantic AI: oversized tool results stay out of the conversation, one tool reads them back.

Only the public names belong here, each loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_pydantic_ai.convert import offloaded_references
    from coatcheck_pydantic_ai.offloader import ToolOffloader

__all__ = ("ToolOffloader", "offloaded_references")

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept a misspelled name
    __getattr__, __dir__ = front_door(
        __name__,
        {"convert": ("offloaded_references",), "offloader": ("ToolOffloader",)},
        needs="pydantic_ai",
        install="coatcheck[pydantic-ai]",
    )
