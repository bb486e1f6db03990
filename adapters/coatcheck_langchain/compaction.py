"""LangChain's own compaction, changed to keep the references of offloaded results.

Only drop-in variants of LangChain classes that erase placeholders belong here. The core writes the line that they keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain.agents.middleware.context_editing import ClearToolUsesEdit as LangChainClearToolUsesEdit
from langchain_core.messages import ToolMessage

from coatcheck import keep_references

if TYPE_CHECKING:
    from langchain.agents.middleware.context_editing import TokenCounter
    from langchain_core.messages import AnyMessage

__all__ = ("ClearToolUsesEdit",)


class ClearToolUsesEdit(LangChainClearToolUsesEdit):
    """LangChain's ``ClearToolUsesEdit`` with the same arguments. It keeps the references of what it clears.

    For ``ContextEditingMiddleware(edits=[ClearToolUsesEdit(...)])``. A cleared tool result with references becomes the
    ``placeholder`` and a line that names them, so the model can still read them back.
    """

    __slots__ = ()

    def apply(self, messages: list[AnyMessage], *, count_tokens: TokenCounter) -> None:
        """Apply the edit to the message list in place."""
        before = list(messages)
        LangChainClearToolUsesEdit.apply(self, messages, count_tokens=count_tokens)
        for position, (old, new) in enumerate(zip(before, messages, strict=True)):
            if isinstance(new, ToolMessage) and new is not old:
                line = keep_references([old])
                if line:
                    messages[position] = new.model_copy(update={"content": f"{self.placeholder}\n{line}"})
