"""The tool that a model reads offloaded content back with.

Only the tool belongs here: its schema, its scope, and how an answer becomes a result. The arguments go to the core as
the model sent them, because the core validates them and words what was wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import Content, FunctionInvocationContext, FunctionTool
from pydantic import BaseModel, model_validator

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, retrieval_schema
from coatcheck.adapting import Failure, RetrievalName, WarnOnce, aanswer, resolve_scope
from coatcheck_agent_framework.convert import contents_of
from coatcheck_agent_framework.hook import logger

if TYPE_CHECKING:
    from coatcheck import Offloader
    from coatcheck.adapting import ScopeOption
    from coatcheck_agent_framework.hook import Sessions

__all__ = ("RetrievalTool", "find_tool", "retrieval_tool")


class _AsSent(BaseModel):
    """Any arguments, as one, so that the framework finds none of the schema's to refuse in words of its own."""

    as_sent: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, sent: Any) -> Any:  # noqa: ANN401 - whatever the model sent
        match sent:
            case {"as_sent": dict()} if len(sent) == 1:  # the framework may validate what it has validated
                return sent
            case _:
                return {"as_sent": sent}


class RetrievalTool(FunctionTool):
    """The retrieval tool. Its class is how the hook tells it from a user's tool that has the same name."""

    offloader: Offloader

    def parameters(self) -> dict[str, Any]:
        """Return the schema that the model gets."""
        return retrieval_schema()


def retrieval_tool(
    offloader: Offloader, *, scope: ScopeOption, sessions: Sessions, native_media: bool
) -> RetrievalTool:
    """Return the tool that reads back what ``offloader`` stored."""

    async def retrieve(context: FunctionInvocationContext, as_sent: object) -> str | list[Content]:
        answered = await aanswer(
            lambda: (offloader, {"scope": resolve_scope(scope, context), "identity": sessions.identity_of(context)}),
            as_sent,
            convert_media=contents_of,
            native_media=native_media,
        )
        # An exception would mark the error, but the framework does not show its text to the model.
        return answered.text if isinstance(answered, Failure) else answered

    tool = RetrievalTool(
        name=RETRIEVAL_TOOL,
        description=RETRIEVAL_DESCRIPTION,
        input_model=_AsSent,
        func=retrieve,
        approval_mode="never_require",
    )
    tool.offloader = offloader
    return tool


def find_tool(offloader: Offloader) -> RetrievalName:
    """Return what finds the name of the retrieval tool in the tools of an agent."""
    return RetrievalName(
        RETRIEVAL_TOOL,
        warn=WarnOnce(logger),
        is_ours=lambda tool: isinstance(tool, RetrievalTool) and tool.offloader is offloader,
        how_to_add="Pass the ToolOffloader to the agent's context_providers",
    )
