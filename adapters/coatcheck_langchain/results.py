"""Where tool messages stand in what a tool, a tool node or a graph's state holds, and which calls they answer.

Only walking belongs here: nothing is converted or offloaded. Whatever holds a changed message is copied, never mutated;
whatever holds none is returned, the same object. Hosts are known by the members used here, so that commands are found
with langchain-core alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages
from langchain_core.messages.tool import ToolOutputMixin

from coatcheck import is_called_by_code

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_core.tools import BaseTool

__all__ = (
    "Change",
    "Step",
    "answered_in",
    "called_by_code_in",
    "id_of",
    "is_message_result",
    "map_tool_messages",
    "messages_in",
    "step_of_input",
)

Change = Callable[[object, ToolMessage], object]
"""Gets the object that stands in the result, and the message that it is; returns what shall stand there."""

_HOLDERS = ("update", "value")
"""The field that holds messages: of LangGraph's ``Command``, and of its ``Overwrite``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is known of the calls that a result answers."""

    calls: Mapping[str, Mapping[str, Any]]
    """The calls being answered, by id."""

    answered: Collection[str | None]
    """Ids of calls that the conversation already has answers for: those messages are not new."""

    called_by_code: Collection[str]
    """Ids of calls that code made, not the model: their results go to that code."""

    tools: Mapping[str, BaseTool]
    """The tools at hand, by name, as far as they are known."""

    context: object
    """What a ``scope`` callable gets: the ``ToolRuntime`` or the ``RunnableConfig``."""

    config: object
    """The ``RunnableConfig``."""

    retrieval_tool: str | None
    """The name under which the model has the retrieval tool, or None if it has none."""


def map_tool_messages(result: Any, change: Change, *, key: str) -> Any:  # noqa: ANN401 - as a graph's node returns it
    """Return ``result`` with every tool message in it passed through ``change``; itself if nothing changed.

    Args:
        result: a message, a command, a state update, or a list of them.
        change: what is done with each tool message.
        key: where the messages stand in a state update.

    """
    match result:
        case ToolMessage():
            return change(result, result)
        case dict() if "tool" in {result.get("role"), result.get("type")} and "tool_call_id" in result:
            return change(result, _message_of(result))
        case dict() if key in result:
            changed = map_tool_messages(result[key], change, key=key)
            return result if changed is result[key] else {**result, key: changed}
        case list() | tuple():
            items = [map_tool_messages(item, change, key=key) for item in result]
            same = all(new is old for new, old in zip(items, result, strict=True))
            return result if same else items
        case _:
            pass
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        for holder in _HOLDERS:
            held = getattr(result, holder, None)
            changed = map_tool_messages(held, change, key=key)
            if changed is not held:
                return dataclasses.replace(result, **{holder: changed})
    return result


def is_message_result(value: object) -> bool:
    """Return whether LangChain takes ``value``, returned by a tool's function, as messages and commands."""
    values = value if isinstance(value, list) and value else [value]
    return all(isinstance(item, ToolOutputMixin) for item in values)


def messages_in(state: object, *, key: str) -> Iterable[object]:
    """Return the messages of a graph's state: a list of them, a mapping, or an object with attributes."""
    held = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    found = state if isinstance(state, list) else held
    return found if isinstance(found, list | tuple) else ()


def step_of_input(
    value: object, *, key: str, tools: Mapping[str, BaseTool], config: object, retrieval_tool: str | None
) -> Step:
    """Return what the input of a tool node says about the calls that it shall answer."""
    state: object = value
    calls: list[Mapping[str, Any]] = []
    if isinstance(value, Mapping) and "tool_call" in value:  # what create_agent sends to its tool node
        state, calls = value.get("state"), [value["tool_call"]]
    messages = list(messages_in(state, key=key))
    if not calls:
        last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
        calls = list(last.tool_calls) if last is not None else [call for call in messages if isinstance(call, Mapping)]
    ids = [id_of(call) for call in calls]
    # An id that a model used twice in a step tells nothing of a message; the message's own name does.
    by_id = {call_id: call if ids.count(call_id) == 1 else {} for call_id, call in zip(ids, calls, strict=True)}
    return Step(
        calls=by_id,
        answered=answered_in(messages) - by_id.keys(),
        called_by_code=called_by_code_in(messages),
        tools=tools,
        context=config,
        config=config,
        retrieval_tool=retrieval_tool,
    )


def id_of(call: Mapping[str, Any]) -> str:
    """Return the id that an answer to a call has: messages know no missing id, so it is empty then."""
    return call.get("id") or ""


def answered_in(messages: Iterable[object]) -> set[str | None]:
    """Return the ids of the calls that ``messages`` hold answers for."""
    return {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def called_by_code_in(messages: Iterable[object]) -> set[str]:
    """Return the ids of the calls in the last message of the model that code made there, as its provider says.

    LangChain's tool calls have no place for it; the content blocks they were made of keep it.
    """
    last = next((message for message in reversed(list(messages)) if isinstance(message, AIMessage)), None)
    blocks = last.content if last is not None and isinstance(last.content, list) else []
    return {
        str(block.get("call_id") or block.get("id"))  # OpenAI's blocks have an id of their own beside that of the call
        for block in blocks
        if isinstance(block, dict)
        and is_called_by_code(block.get("caller") or (block.get("extras") or {}).get("caller"))
    }


def _message_of(native: dict[str, Any]) -> ToolMessage:
    message = convert_to_messages([native])[0]
    return message if isinstance(message, ToolMessage) else ToolMessage("", tool_call_id="")
