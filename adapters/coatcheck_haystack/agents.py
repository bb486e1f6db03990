"""What a hook can learn about its run: which tools the model has, and which of them give the final answer.

Only looking belongs here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from haystack.components.agents import Agent

from coatcheck import RETRIEVAL_TOOL
from coatcheck_haystack.retrieval import RetrievalTool

if TYPE_CHECKING:
    from collections.abc import Collection

    from haystack.components.agents.state import State
    from haystack.tools.tool import Tool

    from coatcheck_haystack.options import Source

__all__ = ("final_tools", "is_name_taken", "retrieval_tools", "tools_of")


def tools_of(state: State) -> Collection[Tool]:
    """Return the tools that the model has in this step."""
    return state.data.get("tools") or ()


def retrieval_tools(tools: Collection[Tool], source: Source) -> list[str]:
    """Return the names of all retrieval tools, with the one that reads from ``source`` first."""
    found = [tool for tool in tools if isinstance(tool, RetrievalTool)]
    return [tool.name for tool in sorted(found, key=lambda tool: tool.source is not source)]


def is_name_taken(tools: Collection[Tool]) -> bool:
    """Return whether a user's tool has the name of the retrieval tool."""
    return any(tool.name == RETRIEVAL_TOOL and not isinstance(tool, RetrievalTool) for tool in tools)


def final_tools() -> Collection[str]:
    """Return the exit conditions of the calling agent, which are tools that end its run. Empty if no agent is calling.

    The agent is looked up among the callers, because as of haystack-ai 3.4 nothing else knows its exit conditions. A
    hook gets only the ``State``, which has tools and ``hook_context`` but no exit conditions. ``warm_up`` gets no
    argument. The span that has them exists only if tracing is on. Rejected: an argument that repeats the names, which
    users would forget; and putting results back in an ``on_exit`` hook, which users would have to register too.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to find the callers
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Agent):
            return () if caller.exit_conditions == ["text"] else caller.exit_conditions
        frame = frame.f_back  # type: ignore[assignment]
    return ()
