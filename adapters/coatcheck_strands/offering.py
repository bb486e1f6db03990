"""``offer_tool="when needed"``: the retrieval tool is in the model's requests from the first offloaded result on.

Only hiding the tool and the flag in the agent's state belong here. The agent can always run the tool, so a model that
knows it from elsewhere may call it while it is hidden.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from coatcheck import InvalidRequest
from coatcheck.adapting import OFFERED, OfferTool, is_offered_late, needs_retrieval_tool

if TYPE_CHECKING:
    from strands import Agent
    from strands.middleware import InvokeModelContext
    from strands.types.tools import AgentTool

__all__ = ("Offering",)

logger: logging.Logger = logging.getLogger("coatcheck_strands")

_MIDDLEWARE = "strands.middleware"
"""The module whose middleware sees a request's tools. Older versions keep it private, and agents cannot add to it."""


class Offering:
    """Decides when the agents of one plugin offer ``tool``, the retrieval tool."""

    def __init__(self, offer_tool: OfferTool, tool: AgentTool) -> None:
        """Set when to offer ``tool``.

        Raises:
            InvalidRequest: ``offer_tool`` has an unknown value, or this version of Strands cannot hide a tool.

        """
        self._is_late = is_offered_late(offer_tool)
        self._tool = tool
        if self._is_late and find_spec(_MIDDLEWARE) is None:
            msg = (
                f"offer_tool={offer_tool!r} needs strands-agents 1.62 or newer, where a plugin can leave a tool out of"
                " a request: upgrade it, or pass offer_tool='always'"
            )
            raise InvalidRequest(msg)

    def begin(self, agent: Agent) -> None:
        """Hide the tool from the agent's model until it is needed."""
        if self._is_late:
            from strands.middleware import InvokeModelStage  # noqa: PLC0415 - older versions have none

            agent.add_middleware(InvokeModelStage.Input, self._hide)

    def note(self, agent: Agent) -> None:
        """Offer the tool from now on. The flag persists in sessions."""
        if self._is_late:
            agent.state.set(OFFERED, True)  # noqa: FBT003 - as Strands takes it

    def _hide(self, context: InvokeModelContext) -> InvokeModelContext:
        agent, name = context.agent, self._tool.tool_name
        if agent.tool_registry.registry.get(name) is not self._tool or agent.state.get(OFFERED):
            return context
        # An agent may have taken over another agent's messages without its state.
        if needs_retrieval_tool(context.messages, logger=logger):
            agent.state.set(OFFERED, True)  # noqa: FBT003 - as Strands takes it
            return context
        return context.replace(tool_specs=[spec for spec in context.tool_specs if spec["name"] != name])
