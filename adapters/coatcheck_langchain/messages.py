"""Find the tool messages in the result of a tool, a tool node or a graph, and what the conversation says about them.

Only looking and copying belong here; nothing is converted or offloaded. Whatever holds a changed message is copied,
never mutated. Whatever holds none is returned as the same object. Host objects are duck-typed, so that commands are
found with langchain-core alone.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages

from coatcheck import InvalidRequest, is_called_by_code, is_for_code_only
from coatcheck.adapting import check_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.tools import BaseTool

    from coatcheck import Scope

__all__ = (
    "Calls",
    "find_messages",
    "identity_of",
    "is_for_others",
    "messages_in",
    "replace_messages",
)

_HOLDERS = ("update", "value")
"""The fields that hold messages, in LangGraph's ``Command`` and in its ``Overwrite``."""


_OVERWRITE = "__overwrite__"
"""Marks a mapping that stands for an ``Overwrite``, as JSON serializes it."""


_SCREENSHOT = "computer_call_output"
"""Marks a message, in ``additional_kwargs``, as the answer to OpenAI's ``computer_call``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What is known about the calls that a result answers."""

    by_id: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """The calls being answered."""

    messages: Sequence[object] = ()
    """The conversation up to these calls."""

    tools: Mapping[str, BaseTool] = dataclasses.field(default_factory=dict)
    """The known tools, by name."""

    context: object = None
    """The argument of a ``scope`` callable: the ``ToolRuntime`` or the ``RunnableConfig``."""

    config: object = None
    """The ``RunnableConfig``."""

    retrieval_tool: str | None = None
    """The name under which the model has the retrieval tool, or None if it has none."""

    error: Exception | None = None
    """Why nothing else is known, if finding out failed."""

    def find_answered(self) -> set[str]:
        """Return the ids of calls that were answered earlier, and of calls that code made.

        Some providers let code call tools. LangChain's tool calls do not say so. The content blocks of the model's
        message, from which LangChain makes the calls, do.
        """
        answers = {message.tool_call_id for message in self.messages if isinstance(message, ToolMessage)}
        last = next((message for message in reversed(self.messages) if isinstance(message, AIMessage)), None)
        blocks = last.content if last is not None and isinstance(last.content, list) else []
        by_code = {
            str(block.get("call_id") or block.get("id"))  # OpenAI's blocks have their own id besides the call's
            for block in blocks
            if isinstance(block, dict)
            and is_called_by_code(block.get("caller") or (block.get("extras") or {}).get("caller"))
        }
        return (answers - self.by_id.keys()) | by_code


def find_messages(result: Any, *, key: str) -> Iterator[tuple[object, ToolMessage]]:  # noqa: ANN401 - as a graph's node returns it
    """Yield each tool message in a result as a pair: the host's own object, and a ``ToolMessage``.

    Args:
        result: a message, a command, a state update, or a list of them.
        key: the key of the messages in a state update.

    """
    match result:
        case ToolMessage():
            yield result, result
        case dict() if "tool" in {result.get("role"), result.get("type")} and "tool_call_id" in result:
            message = convert_to_messages([result])[0]
            yield result, message if isinstance(message, ToolMessage) else ToolMessage("", tool_call_id="")
        case dict() if (held := _key_of_messages(result, key)) in result:
            yield from find_messages(result[held], key=key)
        case list() | tuple():
            is_update = all(map(_is_pair, result))
            for item in result:
                if not is_update or item[0] == key:
                    yield from find_messages(item, key=key)
        case _:
            for holder in _holders(result, key):
                yield from find_messages(getattr(result, holder, None), key=key)


def replace_messages(result: Any, copies: Mapping[int, object], *, key: str) -> Any:  # noqa: ANN401 - as a graph's node returns it
    """Return ``result`` with messages replaced by their ``copies``, keyed by ``id``; itself if it holds none."""
    if id(result) in copies:
        return copies[id(result)]
    match result:
        case dict() if (name := _key_of_messages(result, key)) in result:
            held = replace_messages(result[name], copies, key=key)
            return result if held is result[name] else {**result, name: held}
        case list() | tuple():
            is_update = all(map(_is_pair, result))
            items = [
                item if is_update and item[0] != key else replace_messages(item, copies, key=key) for item in result
            ]
            if all(new is old for new, old in zip(items, result, strict=True)):
                return result
            # A command's update may be pairs, and LangGraph accepts only tuples as pairs.
            return tuple(items) if isinstance(result, tuple) else items
        case _:
            for holder in _holders(result, key):
                held = replace_messages(getattr(result, holder, None), copies, key=key)
                if held is not getattr(result, holder, None):
                    return _copy(result, {holder: held})
            return result


def _key_of_messages(update: Mapping[str, Any], key: str) -> str:
    """Return the key of the messages in a mapping, which is a state update or either form of an ``Overwrite``."""
    if len(update) == 1 and _OVERWRITE in update:
        return _OVERWRITE
    return "value" if update.get("type") == _OVERWRITE else key


def _is_pair(item: object) -> bool:
    """Return whether an item is a key and its value. An update may be a list of such pairs."""
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)  # noqa: PLR2004 - a pair


def _copy(holder: Any, change: dict[str, Any]) -> object:  # noqa: ANN401 - a dataclass or a model, as ``_holders`` has it
    """Return a copy of ``holder``, which holds messages, with other messages.

    Raises:
        TypeError: its ``__copy__`` returns the object itself, so no raw result would be left to go back to.

    """
    if dataclasses.is_dataclass(holder) and not isinstance(holder, type):
        try:
            copied = copy.copy(holder)
        except TypeError:  # its ``__new__`` requires arguments
            return dataclasses.replace(holder, **change)  # second choice, because it calls ``__init__`` again
        if copied is holder:
            msg = f"{type(holder).__name__}.__copy__ must return another object, for the messages that change"
            raise TypeError(msg)
        for name, value in change.items():
            object.__setattr__(copied, name, value)  # it may be frozen
        return copied
    return holder.model_copy(update=change)


def _holders(result: object, key: str) -> tuple[str, ...]:
    """Return the fields of an object that may hold messages: a command, an overwrite, or a typed state."""
    if dataclasses.is_dataclass(result):
        return (*_HOLDERS, key)
    return (key,) if hasattr(result, "model_copy") else ()


def is_for_others(tool: BaseTool | None, message: ToolMessage) -> bool:
    """Return whether a result is not for the model as text: a final answer, a result for code only, or a screenshot.

    OpenAI's computer-use model accepts only an image as the answer to its call.
    """
    extras = getattr(tool, "extras", None)
    for_code = isinstance(extras, dict) and is_for_code_only(extras.get("allowed_callers"))
    is_screenshot = message.additional_kwargs.get("type") == _SCREENSHOT
    return for_code or is_screenshot or bool(getattr(tool, "return_direct", False))


def messages_in(state: object, *, key: str) -> Sequence[object]:
    """Return the messages of a graph's state, which is a list of them, a mapping, or an object with attributes."""
    held = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    found = state if isinstance(state, list) else held
    return found if isinstance(found, list | tuple) else ()


def identity_of(config: object) -> Scope | None:
    """Return the ``thread_id`` of a ``RunnableConfig``, which is LangGraph's stable identity of a conversation.

    A tuple that is a valid scope stays a tuple. Anything else becomes a ``str``.
    """
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    thread_id = configurable.get("thread_id") if isinstance(configurable, Mapping) else None
    if thread_id is None or thread_id == "":
        return None
    if isinstance(thread_id, tuple):
        with suppress(InvalidRequest):
            check_scope(thread_id)
            return thread_id
    return str(thread_id)
