"""The tool with which a model reads offloaded content back.

Only the tool belongs here: its schema, its scope, and how an answer becomes an output. The arguments go to the core as
the model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents import FunctionTool
from agents.tool_context import ToolContext  # noqa: TC002 - the SDK evaluates the annotations of what it invokes

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, retrieval_schema
from coatcheck.adapting import Failure, RetrievalName, ScopeOption, WarnOnce, aanswer, check_flags, resolve_scope
from coatcheck_openai.convert import output_of
from coatcheck_openai.hook import identity_of, logger

if TYPE_CHECKING:
    from coatcheck import Offloader

__all__ = ("RetrievalTool", "find_tool", "reads_back", "retrieval_tool")


@dataclass
class RetrievalTool(FunctionTool):
    """The retrieval tool. Its class tells it apart from a user's tool of the same name."""

    offloader: Offloader = field(kw_only=True, repr=False)
    """A field, so that a copy made by ``dataclasses.replace`` has it too."""


def retrieval_tool(offloader: Offloader, *, scope: ScopeOption, native_media: bool) -> RetrievalTool:
    """Return the tool that reads back what ``offloader`` stored."""
    check_flags(native_media=native_media)

    async def retrieve(context: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401 - any output
        answered = await aanswer(
            lambda: (offloader, {"scope": resolve_scope(scope, context), "identity": identity_of(context)}),
            _decoded(arguments),
            convert_media=output_of,
            native_media=native_media,
            retrieval_tool=getattr(context, "tool_name", RETRIEVAL_TOOL),  # a copy may have another name
        )
        return answered.text if isinstance(answered, Failure) else answered  # the SDK cannot mark an error

    return RetrievalTool(
        name=RETRIEVAL_TOOL,
        description=RETRIEVAL_DESCRIPTION,
        params_json_schema=retrieval_schema(),
        on_invoke_tool=retrieve,
        strict_json_schema=False,  # a strict schema makes a model fill in every argument
        offloader=offloader,
    )


def reads_back(tool: object, offloader: Offloader) -> bool:
    """Return whether a tool is the retrieval tool, or a copy of it, that reads back what ``offloader`` stored."""
    return isinstance(tool, RetrievalTool) and tool.offloader is offloader


def find_tool(offloader: Offloader) -> RetrievalName:
    """Return the object that finds the retrieval tool's name among an agent's tools."""
    return RetrievalName(
        RETRIEVAL_TOOL,
        warn=WarnOnce(logger),
        is_ours=lambda tool: reads_back(tool, offloader),
        how_to_add="Pass its tools through ToolOffloader.tools",
    )


def _decoded(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
