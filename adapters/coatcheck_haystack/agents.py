"""What the run around a hook says: which tools the model has, and which of them give its final answer.

Only looking belongs here. Tools stand in the ``State``; exit conditions stand in the ``Agent`` alone.
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
    """Return the names of all retrieval tools, the one that reads from ``source`` itself first."""
    found = [tool for tool in tools if isinstance(tool, RetrievalTool)]
    return [tool.name for tool in sorted(found, key=lambda tool: tool.source is not source)]


def is_name_taken(tools: Collection[Tool]) -> bool:
    """Return whether a tool that is none of ours has the name of the retrieval tool."""
    return any(tool.name == RETRIEVAL_TOOL and not isinstance(tool, RetrievalTool) for tool in tools)


def final_tools() -> Collection[str]:
    """Return the tools whose result ends the run of the agent that is calling; none where no agent is.

    Haystack gives a hook the state, and its exit conditions neither to the state nor to the hook. So the agent is
    looked up among the callers. Rejected: an argument for the same names once more, which would be forgotten; and
    putting results back in an ``on_exit`` hook, which would have to be registered beside this one.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to one's callers
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Agent):
            return () if caller.exit_conditions == ["text"] else caller.exit_conditions
        frame = frame.f_back  # type: ignore[assignment]
    return ()
