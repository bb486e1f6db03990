"""The models of the demo: the scripted one, and how to make a real one.

The scripted model is a chat model like any other, but in this process: it sees the conversation and nothing else. Its
script decides what it asks and how it finds the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from coatcheck.cli.demo_script import NotFound
from coatcheck.cli.failure import CannotRun
from coatcheck.core.notice import OPENINGS, RETRIEVAL_TOOL
from coatcheck.core.references import find_references

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from coatcheck.cli.demo_script import Script

__all__ = ("ScriptedModel", "one_line", "real_model")

_GIVEN_UP = "I could not find the answer in what I was given."


class ScriptedModel(BaseChatModel):
    """Calls the tool, reads back twice, and answers from what it read."""

    script: Any
    """The ``Script``; typed loosely, because pydantic would check a protocol by its class."""

    tool_name: str
    """The tool that returns the data."""

    @property
    def _llm_type(self) -> str:
        return "coatcheck-demo"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ANN401, ARG002 - as the base declares it
        """Return the model itself: the script knows both tools by name."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: object, **kwargs: object) -> ChatResult:  # noqa: ARG002 - unused
        results = [str(message.text) for message in messages if isinstance(message, ToolMessage)]
        try:
            reply = self._reply(self.script, results)
        except NotFound:
            reply = AIMessage(_GIVEN_UP)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _reply(self, script: Script, results: Sequence[str]) -> AIMessage:
        if not results:
            return _call(self.tool_name, {}, 0)
        shown, *read = results
        if not shown.startswith(OPENINGS):  # small enough to stay
            return AIMessage(script.sentence(script.facts_in(shown)))
        if not read:
            return _retrieval(shown, script.first_call(), 1)
        if len(read) == 1:
            return _retrieval(shown, script.second_call(read[0]), 2)
        return AIMessage(script.sentence(script.facts(read[0], read[1])))


def real_model(name: str) -> BaseChatModel:
    """Return the model that LangChain knows by a name such as ``openai:gpt-5-mini``.

    Raises:
        CannotRun: its package or key is missing, or LangChain does not know it. The message is LangChain's.

    """
    try:
        return init_chat_model(name)
    except Exception as error:
        # Each provider's client raises its own errors for a missing key.
        msg = f"the model {name!r} cannot be used: {one_line(error)}"
        raise CannotRun(msg) from error


def one_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _retrieval(placeholder: str, arguments: Mapping[str, object], number: int) -> AIMessage:
    found = next(find_references(placeholder), None)
    if found is None:
        raise NotFound(placeholder)
    return _call(RETRIEVAL_TOOL, {"reference": found[0], **arguments}, number)


def _call(name: str, arguments: dict[str, object], number: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{number}", "type": "tool_call"}])
