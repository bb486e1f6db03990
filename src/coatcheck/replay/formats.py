"""The formats of recordings: one reader for each, and the choice of the reader that fits, by content alone.

A reader takes one message as a JSON value and yields its parts. It raises ``Misfit`` at the first thing that its format
does not know, so that no format is taken for another. To accept another format, add its reader to ``_READERS``.
``files`` turns files and folders into lists of messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from coatcheck.core.blocks import ToolResult
from coatcheck.replay.conversation import Call, Part, Result, Turn, Words, blocks_of

__all__ = ("FORMATS", "Misfit", "read_messages")

Message: TypeAlias = Mapping[str, Any]
Names: TypeAlias = dict[str, str]
"""Maps the id of each call seen so far to the name of its tool."""

_UNNAMED = "(unnamed tool)"

_LONGEST_QUOTED = 60
"""The most characters that an error message quotes of a recording."""

_ITEMS = "OpenAI Responses items"
"""The format in which one turn of the model may be several items."""

_OF_SERVERS = (
    *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "item_reference", "compaction"),
    *("tool_search_output", "additional_tools", "configuration_update"),
)
"""Items of the Responses API that are neither said, called nor returned. Of tools they hold only definitions."""

_ITEM_PARTS = ("input_", "output_", "reasoning_", "refusal", "text")
"""Prefixes of the types of content parts in Responses API messages."""

_OPENAI_PARTS = ("text", "image_url", "input_audio", "file", "refusal")
_ANTHROPIC_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_LANGCHAIN_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta", "server_tool_call")
"""Types of blocks in a model's message that repeat its ``tool_calls``."""

_HAYSTACK_MARK, _OUR_MARK = "tool_result_offloaded", "coatcheck"
"""The key that Haystack's own hook and ours for it leave in an offloaded message, and that of our other adapters."""


class Misfit(Exception):
    """A message does not have the format that it was read as. The text says what does not fit."""

    def __init__(self, reason: str, *, position: int = 0, recorded_as: str = "") -> None:
        super().__init__(reason)
        self.position = position
        """Index of the message, from 0."""
        self.recorded_as = recorded_as
        """The format that fits furthest."""


def read_messages(messages: Sequence[object], *, in_pieces: bool = False) -> tuple[str, tuple[Part, ...]]:
    """Return the name of the format of a list of messages, and the parts of the conversation.

    Messages that several formats share, such as plain text of user and assistant, are read the same in each.

    Args:
        messages: the messages as JSON values.
        in_pieces: whether the recorder split what the model wrote in one turn into several messages.

    Raises:
        Misfit: no format fits. It describes the one that fits furthest.

    """
    misfits = []
    for name, reader in _READERS.items():
        parts = _read_as(name, reader, messages=messages)
        if not isinstance(parts, Misfit):
            return name, _joined(parts) if in_pieces or name == _ITEMS else parts
        misfits.append(parts)
    raise max(misfits, key=lambda misfit: misfit.position)


def _read_as(
    name: str, reader: Callable[[Message, Names], Iterator[Part]], *, messages: Sequence[object]
) -> tuple[Part, ...] | Misfit:
    names: Names = {}
    read: list[list[Part]] = []
    try:
        for message in messages:
            if not isinstance(message, Mapping):
                _reject(f"is {_kind(message)}, not an object")
            read.append(list(reader(message, names)))
    except Misfit as error:
        return Misfit(str(error), position=len(read), recorded_as=name)
    return tuple(part for parts in read for part in parts)


def _openai(message: Message, names: Names) -> Iterator[Part]:
    """Chat completions: results have their own role, and calls are next to the content."""
    content = message.get("content")
    is_result = str(message.get("role")) in {"tool", "function"}  # a result may hold any part that has a type
    for block in _objects_in(content):
        if block.get("type") not in _OPENAI_PARTS and not (is_result and isinstance(block.get("type"), str)):
            _reject(f"holds a content part of type {_quoted(block.get('type'))}")
    match message:
        case {"role": "system" | "developer" | "user" as role, "content": _}:
            yield _words(role, content)
        case {"role": "assistant"}:
            legacy = message.get("function_call")
            calls = _list_of(message, "tool_calls") or ([{"function": legacy}] if legacy else [])
            yield _turn(content, [_openai_call(call, names) for call in calls])
        case {"role": "tool" | "function", "content": _}:
            yield _result(content, message.get("name") or names.get(str(message.get("tool_call_id"))))
        case _:
            _reject(_unknown_role(message))


def _openai_call(call: Message, names: Names) -> tuple[str, object]:
    match call:
        case {"function": {"name": str(name), "arguments": arguments}} | {
            "custom": {"name": str(name), "input": arguments}
        }:
            return _named(names, call.get("id"), name), arguments
        case _:
            return _reject("holds a tool call without the name and the arguments of its function")


def _anthropic(message: Message, names: Names) -> Iterator[Part]:
    """Messages API: results are typed blocks in user messages, calls are typed blocks in assistant messages."""
    content = message.get("content")
    if "tool_calls" in message:
        _reject("has tool_calls next to its content")
    if any(not isinstance(block.get("type"), str) for block in _objects_in(content)):
        _reject("holds a content block without a type")
    match message:
        case {"role": "assistant", "content": _}:
            said, calls = _split(content, lambda block: block.get("type") in _ANTHROPIC_CALLS)
            yield _turn(said, [(_named(names, call.get("id"), call.get("name")), call.get("input")) for call in calls])
        case {"role": "user" | "system" as role, "content": _}:
            said, results = _split(content, lambda block: block.get("type") == "tool_result")
            for result in results:
                name = names.get(str(result.get("tool_use_id")))
                yield _result(result.get("content"), name, is_error=result.get("is_error") is True)
            if said:
                yield _words(role, said)
        case _:
            _reject(_unknown_role(message))


def _langchain(message: Message, names: Names) -> Iterator[Part]:
    """``dumpd``, ``messages_to_dict`` and ``model_dump`` of messages and chunks."""
    match message:
        case {"lc": _, "id": [*_, kind], "kwargs": fields} | {"type": kind, "data": fields}:
            pass
        case _:
            kind, fields = message.get("type"), message
    if "role" in message or not isinstance(kind, str) or not isinstance(fields, Mapping) or "content" not in fields:
        _reject("is neither {type, content}, {type, data} nor {lc, id, kwargs}")
    content = fields["content"]
    match kind.lower().removesuffix("chunk").removesuffix("message"):
        case "human" | "system" | "chat" as role:
            yield _words(role, content)
        case "ai":
            said, _ = _split(content, lambda block: block.get("type") in _LANGCHAIN_CALLS)
            calls = [*_list_of(fields, "tool_calls"), *_list_of(fields, "invalid_tool_calls")]
            yield _turn(said, [(_named(names, call.get("id"), call.get("name")), call.get("args")) for call in calls])
        case "tool" | "function":
            name = fields.get("name") or names.get(str(fields.get("tool_call_id")))
            marked = _OUR_MARK in _object_of(fields, "additional_kwargs")
            yield _result(content, name, is_error=fields.get("status") == "error", offloaded=marked)
        case _:
            _reject(f"is of type {_quoted(kind)}")


def _strands(message: Message, names: Names) -> Iterator[Part]:
    """Strands, and Bedrock's Converse: blocks have no type and are named by their one key."""
    content = message.get("content")
    if not isinstance(content, list) or any("type" in block for block in _objects_in(content)):
        _reject("lacks a list of blocks such as {text}, {toolUse} and {toolResult} as its content")
    match message:
        case {"role": "assistant"}:
            said, calls = _split(content, lambda block: isinstance(block.get("toolUse"), dict))
            uses = [call["toolUse"] for call in calls]
            yield _turn(
                said, [(_named(names, use.get("toolUseId"), use.get("name")), use.get("input")) for use in uses]
            )
        case {"role": "user"}:
            said, results = _split(content, lambda block: isinstance(block.get("toolResult"), dict))
            for result in (block["toolResult"] for block in results):
                name, error = names.get(str(result.get("toolUseId"))), result.get("status") == "error"
                yield _result(result.get("content"), name, is_error=error, offloaded=_OUR_MARK in result)
            if said:
                yield _words("user", said)
        case _:
            _reject(_unknown_role(message))


def _haystack(message: Message, names: Names) -> Iterator[Part]:  # noqa: ARG001 - results name their tool themselves
    """``ChatMessage.to_dict``: blocks have no type, and ``meta`` is next to them."""
    content, meta = message.get("content"), message.get("meta")
    if not isinstance(meta, dict) or not isinstance(content, list):
        _reject("lacks meta, or a list of blocks such as {text}, {tool_call} and {tool_call_result} as its content")
    match message:
        case {"role": "system" | "user" as role}:
            yield _words(role, content)
        case {"role": "assistant"}:
            said, calls = _split(content, lambda block: isinstance(block.get("tool_call"), dict))
            made = [block["tool_call"] for block in calls]
            yield _turn(said, [(_required_name(call.get("tool_name")), call.get("arguments")) for call in made])
        case {"role": "tool"}:
            _, results = _split(content, lambda block: isinstance(block.get("tool_call_result"), dict))
            for result in (block["tool_call_result"] for block in results):
                name, error = _object_of(result, "origin").get("tool_name"), result.get("error") is True
                yield _result(result.get("result"), name, is_error=error, offloaded=_HAYSTACK_MARK in meta)
        case _:
            _reject(_unknown_role(message))


def _responses(item: Message, names: Names) -> Iterator[Part]:
    """Responses API, and sessions of OpenAI's SDK: calls and results are separate items next to messages."""
    kind = item.get("type", "message")
    if kind in _OF_SERVERS:  # with a role or without
        yield Words(blocks_of([item]))
        return
    if not isinstance(kind, str) or ("role" in item) is not (kind == "message"):
        _reject("is neither a message nor an item with a type")
    for block in _objects_in(item.get("content")):
        if not str(block.get("type")).startswith(_ITEM_PARTS):
            _reject(f"holds a content part of type {_quoted(block.get('type'))}")
    if "tool_calls" in item:
        _reject("has tool_calls next to its content")
    match item:
        case {"role": "assistant", "content": content}:
            yield _turn(content, ())
        case {"role": "system" | "developer" | "user" as role, "content": content}:
            yield _words(role, content)
        case {"role": _}:
            _reject(_unknown_role(item))
        case _:
            yield _of_item(item, kind, names)


def _of_item(item: Message, kind: str, names: Names) -> Part:
    """Convert an item without a role to a part."""
    if kind == "reasoning":
        return _turn([*_list_of(item, "summary"), *_list_of(item, "content")], ())
    if kind in {"function_call", "custom_tool_call"}:
        arguments = item.get("arguments", item.get("input"))
        return _turn(None, [(_named(names, item.get("call_id"), item.get("name")), arguments)])
    call_id = item.get("call_id")
    if kind.endswith("_output") and "output" in item and isinstance(call_id, str):
        return _result(item["output"], names.get(call_id))
    if kind.endswith("_call") and isinstance(call_id or item.get("id"), str):
        # A call of a tool that the provider runs. The same item holds its result.
        return _turn(None, [(_named(names, call_id, kind.removesuffix("_call")), {**item})])
    return _reject(f"is an item of type {_quoted(kind)}")


_READERS: dict[str, Callable[[Message, Names], Iterator[Part]]] = {
    "OpenAI messages": _openai,
    "Anthropic messages": _anthropic,
    "LangChain messages": _langchain,
    "Haystack messages": _haystack,
    "Strands messages": _strands,
    _ITEMS: _responses,
}

FORMATS = tuple(_READERS)
"""The names of the formats, in the order in which they are tried."""


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Join consecutive turns: between two calls of the model there is always another part."""
    joined: list[Part] = []
    for part in parts:
        before = joined[-1] if joined else None
        if isinstance(part, Turn) and isinstance(before, Turn):
            joined[-1] = Turn((*before.said, *part.said), (*before.calls, *part.calls))
        else:
            joined.append(part)
    return tuple(joined)


def _words(role: str, content: object) -> Words:
    return Words(blocks_of(content), is_system=role in {"system", "developer"})


def _turn(said: object, calls: Sequence[tuple[str, object]]) -> Turn:
    """Return what the model wrote."""
    written = [
        Call(name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
        for name, arguments in calls
    ]
    return Turn(blocks_of(said), tuple(written))


def _result(content: object, name: object, *, is_error: bool = False, offloaded: bool = False) -> Result:
    named = name if isinstance(name, str) and name else _UNNAMED
    return Result(ToolResult(blocks=blocks_of(content), tool_name=named, is_error=is_error), offloaded=offloaded)


def _named(names: Names, call_id: object, name: object) -> str:
    """Return the name of a called tool, and remember it under the id of the call."""
    found = _required_name(name)
    if isinstance(call_id, str):
        names[call_id] = found
    return found


def _required_name(name: object) -> str:
    return name if isinstance(name, str) else _reject("holds a tool call without a name")


def _split(content: object, chosen: Callable[[Message], bool]) -> tuple[list[Any], list[Any]]:
    """Split the content's blocks into those that are not chosen and those that are."""
    blocks = content if isinstance(content, list) else [content] if content else []
    others: list[Any] = []
    picked: list[Any] = []
    for block in blocks:
        (picked if isinstance(block, Mapping) and chosen(block) else others).append(block)
    return others, picked


def _objects_in(content: object) -> Iterator[Message]:
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, Mapping))


def _list_of(message: Message, key: str) -> list[Any]:
    """Return the objects in the list under a key; none if it is absent or null."""
    values = message.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, Mapping) for value in values):
        _reject(f"has no list of objects under {key!r}")
    return list(values)


def _object_of(message: Message, key: str) -> Message:
    value = message.get(key)
    return value if isinstance(value, Mapping) else {}


def _unknown_role(message: Message) -> str:
    role = message.get("role")
    if not isinstance(role, str):
        return "has no role"
    return f"has the role {_quoted(role)}{'' if 'content' in message else ' and no content'}"


def _quoted(value: object) -> str:
    return repr(value)[:_LONGEST_QUOTED]


def _kind(value: object) -> str:
    kinds = {
        str: "a string",
        list: "a list",
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), f"a {type(value).__name__}")


def _reject(reason: str) -> NoReturn:
    raise Misfit(reason)
