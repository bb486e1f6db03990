"""The tool with which a model reads offloaded content back.

Only the tool belongs here: its schema, its scope, and how an answer becomes a result. The arguments go to the core as
the model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_core import SchemaValidator, core_schema

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, retrieval_schema
from coatcheck.adapting import Failure, RetrievalName, ScopeOption, WarnOnce, aanswer, check_flags, resolve_scope
from coatcheck_pydantic_ai.convert import result_of
from coatcheck_pydantic_ai.hook import identity_of, logger

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

    from coatcheck import Offloader

__all__ = ("find_tool", "is_retrieval", "retrieval_toolset")

_KEY, _VALUE = "coatcheck", "reads back"
"""Metadata that tells the tool from a user's tool of the same name. It is not sent to the model."""


class _Mark(str):
    """The metadata's value, which also knows the offloader that its tool reads from.

    It is a ``str``, and so equal in each process, because some durable execution finds a request again by its content.
    """

    __slots__ = ("offloader",)

    offloader: Offloader

    def __deepcopy__(self, _: object) -> _Mark:
        """Return this object, because the tool in a copy of a toolset reads from the same offloader."""
        return self


_TOOLSET = "coatcheck"
"""The toolset's id, by which durable execution finds it again after a restart."""


def retrieval_toolset(
    offloader: Offloader, *, scope: ScopeOption, retrieval: RetrievalName, native_media: bool
) -> FunctionToolset[Any]:
    """Return a toolset with one tool, which reads back what ``offloader`` stored."""
    check_flags(native_media=native_media)

    async def retrieve(context: RunContext[Any], /, **sent: Any) -> Any:  # noqa: ANN401 - as the model sent them
        answered = await aanswer(
            lambda: (offloader, {"scope": resolve_scope(scope, context), "identity": identity_of(context)}),
            sent,
            convert_media=lambda blocks: result_of(blocks, None),
            native_media=native_media,
            retrieval_tool=retrieval.find(context.tools) or RETRIEVAL_TOOL,  # the name may have a prefix
        )
        if isinstance(answered, Failure):
            raise ToolFailed(answered.text) from answered.error
        return answered

    tool = Tool[Any].from_schema(retrieve, RETRIEVAL_TOOL, RETRIEVAL_DESCRIPTION, retrieval_schema(), takes_ctx=True)
    # The framework accepts any JSON for such a tool, and its call ends the run for anything but an object.
    tool.function_schema.validator = SchemaValidator(
        core_schema.no_info_after_validator_function(_as_object, core_schema.any_schema())
    )
    mark = _Mark(_VALUE)
    mark.offloader = offloader
    return FunctionToolset([tool], id=_TOOLSET, metadata={_KEY: mark})


def _as_object(sent: object) -> dict[str, Any]:
    """Return arguments as an object; what a model sent instead of one is the reference, as in the core."""
    return sent if isinstance(sent, dict) else {"reference": sent}


def is_retrieval(definition: ToolDefinition) -> bool:
    """Return whether this is a retrieval tool, whatever it reads from."""
    return (definition.metadata or {}).get(_KEY) == _VALUE


def reads_back(definition: ToolDefinition | None, offloader: Offloader) -> bool:
    """Return whether this is a retrieval tool that reads back what ``offloader`` stored.

    A definition from another process does not say which offloader it reads from, and is trusted.
    """
    if definition is None or not is_retrieval(definition):
        return False
    return getattr((definition.metadata or {})[_KEY], "offloader", offloader) is offloader


def find_tool(offloader: Offloader) -> RetrievalName:
    """Return the finder of the retrieval tool's name among an agent's tools."""
    return RetrievalName(
        RETRIEVAL_TOOL,
        warn=WarnOnce(logger),
        is_ours=lambda definition: reads_back(definition, offloader),
        how_to_add="Let no toolset or capability hide it",
    )
