"""coatcheck for the OpenAI Agents SDK: oversized tool results stay out of the conversation, one tool reads them back.

Only the public names belong here. Each is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_openai.convert import offloaded_references
    from coatcheck_openai.offloader import ToolOffloader

__all__ = ("ToolOffloader", "offloaded_references")

if not TYPE_CHECKING:  # type checkers that see a ``__getattr__`` accept any name, even a misspelled one
    __getattr__, __dir__ = front_door(
        __name__,
        {"convert": ("offloaded_references",), "offloader": ("ToolOffloader",)},
        needs="agents",
        install="coatcheck[openai-agents]",
    )
