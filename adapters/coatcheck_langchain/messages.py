"""Where tool messages are in what a tool, a tool node or a graph's state holds, and what the conversation says of them.

Only looking and copying belong here: nothing is converted or offloaded. Whatever holds a changed message is copied,
never mutated; whatever holds none is returned, the same object. Hosts are known by the members used here, so that
commands are found with langchain-core alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages

from coatcheck import asks_to_keep, is_called_by_code, is_for_code_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.tools import BaseTool

__all__ = (
    "Calls",
    "Change",
    "id_of",
    "identity_of",
    "last_from_model",
    "map_tool_messages",
    "messages_in",
)

Change = Callable[[object, ToolMessage], object]
"""Called with an object in the result and its ``ToolMessage`` form; returns what replaces the object."""

_HOLDERS = ("update", "value")
"""The field that holds messages: of LangGraph's ``Command``, and of its ``Overwrite``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What is known of the calls that a result answers."""

    by_id: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """The calls being answered."""

    messages: Sequence[object] = ()
    """The conversation up to them."""

    tools: Mapping[str, BaseTool] = dataclasses.field(default_factory=dict)
    """The tools at hand, by name, as far as they are known."""

    context: object = None
    """What a ``scope`` callable gets: the ``ToolRuntime`` or the ``RunnableConfig``."""

    config: object = None
    """The ``RunnableConfig``."""

    retrieval_tool: str | None = None
    """The name under which the model has the retrieval tool, or None if it has none."""

    @property
    def identity(self) -> str | None:
        """The identity of the conversation."""
        return identity_of(self.config)

    def find_settled(self) -> set[str]:
        """Return the ids of other calls, whose messages are not new, and of calls that code made."""
        answers = {message.tool_call_id for message in self.messages if isinstance(message, ToolMessage)}
        return {*(answers - self.by_id.keys()), *_find_called_by_code(self.messages)}

    def name_of(self, message: ToolMessage) -> str:
        """Return the name of the tool that a message comes from; an empty one where nobody knows it."""
        return str(self.by_id.get(message.tool_call_id, {}).get("name") or message.name or "")

    def is_for_others(self, tool_name: str) -> bool:
        """Return whether a tool's results are final answers for the user, or for code, its only allowed caller."""
        tool = self.tools.get(tool_name)
        extras = getattr(tool, "extras", None)
        for_code = isinstance(extras, dict) and is_for_code_only(extras.get("allowed_callers"))
        return for_code or bool(getattr(tool, "return_direct", False))

    def asks_to_keep(self, message: ToolMessage, tool_name: str) -> bool:
        """Return whether the host asks to keep a result: for a run, for a tool, or in the message."""
        run = self.config.get("metadata") if isinstance(self.config, dict) else None
        tool = getattr(self.tools.get(tool_name), "metadata", None)
        return any(map(asks_to_keep, (run, tool, message.additional_kwargs)))


def map_tool_messages(result: Any, change: Change, *, key: str) -> Any:  # noqa: ANN401 - as a graph's node returns it
    """Return ``result`` with every tool message in it passed through ``change``; itself if nothing changed.

    Args:
        result: a message, a command, a state update, or a list of them.
        change: what is done with each tool message.
        key: the key of the messages in a state update.

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


def messages_in(state: object, *, key: str) -> Sequence[object]:
    """Return the messages of a graph's state: a list of them, a mapping, or an object with attributes."""
    held = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    found = state if isinstance(state, list) else held
    return found if isinstance(found, list | tuple) else ()


def last_from_model(messages: Sequence[object]) -> AIMessage | None:
    """Return the last message of the model, if there is one."""
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def id_of(call: Mapping[str, Any]) -> str:
    """Return the id that an answer to a call has: messages know no missing id, so it is empty then."""
    return call.get("id") or ""


def identity_of(config: object) -> str | None:
    """Return the thread that a ``RunnableConfig`` names: LangGraph's stable identity of a conversation."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    thread_id = configurable.get("thread_id") if isinstance(configurable, Mapping) else None
    return None if thread_id is None or thread_id == "" else str(thread_id)


def _find_called_by_code(messages: Sequence[object]) -> set[str]:
    """Return the ids of the calls in the last message of the model that code made there, as its provider says.

    LangChain's tool calls have no place for it; the content blocks they were made of keep it.
    """
    last = last_from_model(messages)
    blocks = last.content if last is not None and isinstance(last.content, list) else []
    return {
        str(block.get("call_id") or block.get("id"))  # OpenAI's blocks have an id of their own next to the call's
        for block in blocks
        if isinstance(block, dict)
        and is_called_by_code(block.get("caller") or (block.get("extras") or {}).get("caller"))
    }


def _message_of(native: dict[str, Any]) -> ToolMessage:
    message = convert_to_messages([native])[0]
    return message if isinstance(message, ToolMessage) else ToolMessage("", tool_call_id="")
