"""One step of an agent: the tool results that are new in its state, and how they are put back.

Only walking and replacing belong here; what becomes of a result is the core's decision. A message is new if it belongs
to the tool results at the end of the conversation and nobody has offloaded it yet: positions say nothing of calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from haystack.components.agents.state.state_utils import replace_values

from coatcheck import Policy, ToolResult
from coatcheck_haystack.convert import MARK, blocks_of, holds_media, plain_blocks_of, rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haystack.components.agents.state import State
    from haystack.dataclasses import ChatMessage, ToolCallResult

    from coatcheck import Offloader, Outcome

__all__ = ("New", "Step", "new_results")


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """A result that nobody has decided about."""

    position: int
    """Of its message in the conversation."""

    message: ChatMessage
    """As the agent made it."""

    result: ToolCallResult
    """What the message holds."""

    policy: Policy | None
    """What governs it; None for the offloader's own policies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The results that the core decides about together."""

    state: State
    """Of the run."""

    new: Sequence[New]
    """In the order of the conversation."""

    offloader: Offloader
    """Of the run."""

    keep_meta: bool
    """Whether ``meta`` stays even where it holds a copy of the text that left."""

    details: dict[str, Any]
    """Scope, policies and the name of the retrieval tool, for the core."""

    @property
    def is_heavy(self) -> bool:
        """Whether converting the results may take a while."""
        return any(holds_media(new.result.result) for new in self.new)

    def results(self) -> list[ToolResult]:
        """Return the results as the core has them."""
        return [
            ToolResult(
                blocks=blocks_of(new.result.result),
                tool_name=new.result.origin.tool_name,
                tool_args=new.result.origin.arguments,
                is_error=new.result.error,
            )
            for new in self.new
        ]

    def last_resorts(self) -> list[dict[str, Any]]:
        """Return what the core's last resort is told of each result, where deciding together failed."""
        return [
            {"blocks": plain_blocks_of(new.result.result), "tool_name": new.result.origin.tool_name, **self.details}
            for new in self.new
        ]

    def put_back(self, outcomes: Sequence[Outcome | None]) -> bool:
        """Write the conversation back, with copies of the messages that changed; return whether any did.

        None among the outcomes means that the result stays.
        """
        messages = list(self.state.data["messages"])
        for new, outcome in zip(self.new, outcomes, strict=True):
            if outcome is not None:
                messages[new.position] = rewritten(new.message, new.result, outcome=outcome, keep_meta=self.keep_meta)
        changed = any(messages[new.position] is not new.message for new in self.new)
        if changed:
            # The handler of the schema would append.
            self.state.set("messages", messages, handler_override=replace_values)
        return changed


def new_results(state: State) -> list[tuple[int, ChatMessage, ToolCallResult]]:
    """Return the tool results at the end of the conversation that nobody has offloaded, and their positions."""
    messages = state.data.get("messages") or ()
    found = []
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        result = message.tool_call_result
        if result is None:
            break
        if not message.meta.get(MARK):
            found.append((position, message, result))
    found.reverse()
    return found
