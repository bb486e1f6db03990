"""coatcheck for LangChain and LangGraph: oversized tool results stay out of the conversation, one tool reads them back.

Only the public names belong here, each loaded when it is first used. ``coatcheck[langchain]`` is enough for what needs
only langchain-core; the rest needs ``coatcheck[langgraph]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_langchain.artifacts import arestore_artifact, restore_artifact
    from coatcheck_langchain.compaction import ClearToolUsesEdit
    from coatcheck_langchain.convert import offloaded_references
    from coatcheck_langchain.middleware import OffloadMiddleware
    from coatcheck_langchain.retrieval import retrieval_tool
    from coatcheck_langchain.tool import offload_tool
    from coatcheck_langchain.tool_calls import offload_tool_calls
    from coatcheck_langchain.tool_node import offload_tool_node

__all__ = (
    "ClearToolUsesEdit",
    "OffloadMiddleware",
    "arestore_artifact",
    "offload_tool",
    "offload_tool_calls",
    "offload_tool_node",
    "offloaded_references",
    "restore_artifact",
    "retrieval_tool",
)

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept a misspelled name
    __getattr__, __dir__ = front_door(
        __name__,
        {
            "artifacts": ("arestore_artifact", "restore_artifact"),
            "compaction": ("ClearToolUsesEdit",),
            "convert": ("offloaded_references",),
            "middleware": ("OffloadMiddleware",),
            "retrieval": ("retrieval_tool",),
            "tool": ("offload_tool",),
            "tool_calls": ("offload_tool_calls",),
            "tool_node": ("offload_tool_node",),
        },
        needs="langchain_core",
        install="coatcheck[langgraph]",  # brings langchain-core too, so one install is enough
        more={
            "ClearToolUsesEdit": ("langchain.agents.middleware", "coatcheck[langgraph]"),
            "OffloadMiddleware": ("langchain.agents.middleware", "coatcheck[langgraph]"),
            "offload_tool_calls": ("langgraph.prebuilt", "coatcheck[langgraph]"),
        },
    )
