"""The tool with which a model reads offloaded content back.

Only the tool belongs here: its schema, its scope, and how an answer becomes a result. The arguments go to the core as
the model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import Content, FunctionInvocationContext, FunctionTool
from pydantic import BaseModel, ConfigDict, model_validator

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, retrieval_schema
from coatcheck.adapting import Failure, aanswer, check_flags, resolve_scope
from coatcheck_agent_framework.convert import contents_of

if TYPE_CHECKING:
    from coatcheck import Offloader
    from coatcheck.adapting import ScopeOption
    from coatcheck_agent_framework.hook import Sessions

__all__ = ("RetrievalTool",)


class _AsSent(BaseModel):
    """Takes all arguments as one, so that the framework never refuses one with its own message."""

    # Building a process's first model makes pydantic search all installed packages for plugins.
    model_config = ConfigDict(defer_build=True)

    as_sent: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, sent: Any) -> Any:  # noqa: ANN401 - whatever the model sent
        match sent:
            case {"as_sent": dict()} if len(sent) == 1:  # the framework may validate arguments twice
                return sent
            case {"raw": other} if len(sent) == 1:  # what the framework makes of arguments that are not an object
                return {"as_sent": {"reference": other}}
            case _:
                return {"as_sent": sent}


class RetrievalTool(FunctionTool):
    """The retrieval tool. The hook tells it from a user's tool of the same name by its class and its offloader."""

    def __init__(self, offloader: Offloader, *, scope: ScopeOption, sessions: Sessions, native_media: bool) -> None:
        check_flags(native_media=native_media)
        super().__init__(
            name=RETRIEVAL_TOOL,
            description=RETRIEVAL_DESCRIPTION,
            input_model=_AsSent,
            func=self._read,
            approval_mode="never_require",
        )
        self.offloader = offloader
        self._scope = scope
        self._sessions = sessions
        self._native_media = native_media

    def parameters(self) -> dict[str, Any]:
        """Return the schema for the model."""
        return retrieval_schema()

    async def _read(self, context: FunctionInvocationContext, as_sent: object) -> str | list[Content]:
        def find() -> tuple[Offloader, dict[str, Any]]:
            scope = resolve_scope(self._scope, context)
            return self.offloader, {"scope": scope, "identity": self._sessions.identity_of(context)}

        answered = await aanswer(
            find,
            as_sent,
            convert_media=contents_of,
            native_media=self._native_media,
            retrieval_tool=context.function.name,  # a copy may have another name, but calls this same method
        )
        # An exception would mark the error, but the framework would not show its text to the model.
        return answered.text if isinstance(answered, Failure) else answered
