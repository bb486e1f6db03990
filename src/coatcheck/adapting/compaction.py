"""What must survive when a conversation is compacted: the references to what it offloaded.

References are read where coatcheck wrote them: in the marks of messages, in the notice of a placeholder, and in any
text that is not a tool result, such as a summary. What a tool returned is not searched, so it cannot add references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck.adapting.content import MARK, references_in
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import RETRIEVAL_TOOL, is_placeholder, kept_references, notice_of
from coatcheck.core.references import find_references

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("find_references_in", "keep_references")

MOST_KEPT = 20
"""How many references the line names. The retrieval tool lists older ones, so the line need not grow."""

_OUTPUT = "function_call_output"
"""The type of a tool result in OpenAI's Responses API, where it is not a message."""

_WRITERS = frozenset({"assistant", "developer", "system", "user"})
"""The roles of those who may name a reference in their own words. What has another role, or none, may be a tool's."""

_ONE_REFERENCE = re.compile(r"[!-~]{1,110}")
"""A mark is trusted no further: a storage may choose its references, and frameworks keep 110 characters of one."""


def keep_references(messages: Iterable[object], *, retrieval_tool: str = RETRIEVAL_TOOL) -> str:
    """Return one line for a summary, or for the prompt that asks for one, so that no reference is lost with a message.

    It repeats what such a line of an earlier summary says, so a second summary keeps it as well.

    Args:
        messages: the messages that will go: those of LangChain, Haystack, Strands, the Microsoft Agent Framework,
            Pydantic AI, contents of Google ADK, or of the APIs of OpenAI, Anthropic and Bedrock as JSON values, as a
            session of the OpenAI Agents SDK keeps them. Anything else is skipped.
        retrieval_tool: the name of the agent's retrieval tool.

    Returns:
        The 20 newest references, oldest first, in at most 800 tokens; ``""`` without any.

    Raises:
        InvalidRequest: ``messages`` is one message or text instead of several.

    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        msg = f"messages must be a list of messages, not {type(messages).__name__}"
        raise InvalidRequest(msg)
    # The first mention counts: the answer that lists what is stored names all of it again, newest first.
    known = list(dict.fromkeys(find_references_in(messages)))
    return kept_references(known[-MOST_KEPT:], more=len(known) > MOST_KEPT, retrieval_tool=retrieval_tool)


def find_references_in(messages: Iterable[object]) -> Iterator[str]:
    """Yield the references in messages, in their order. ``keep_references`` says what a message may be."""
    for message in messages:
        yield from _references(message)


class _Part(NamedTuple):
    """A part of a message."""

    content: object
    """What it says: a ``str``, or parts that have texts."""

    mark: object = None
    """Where the adapter wrote the references of an offloaded result."""

    is_result: bool = False
    """Whether a tool returned it."""


def _references(message: object) -> Iterator[str]:
    """Yield the references of one message, in their order."""
    for part in _parts_of(message):
        marked = [each for each in references_in(part.mark) if _ONE_REFERENCE.fullmatch(each)]
        yield from marked
        for text in () if marked else _texts(part.content):
            if is_placeholder(text):  # a tool wrote the preview behind the notice
                yield from (match.group() for match in find_references(notice_of(text)))
            elif not part.is_result:
                yield from (match.group() for match in find_references(text))


def _parts_of(message: object) -> list[_Part]:
    if isinstance(message, str):
        return [_Part(message)]
    contents = message.get("contents") if isinstance(message, Mapping) else getattr(message, "contents", None)
    if isinstance(contents, list | tuple):  # of the Microsoft Agent Framework, or what a saved session keeps of one
        return [_part_of_contents(each if isinstance(each, Mapping) else vars(each)) for each in contents]
    if isinstance(message, Mapping):  # of an API, or of Strands
        is_result = message.get("role") not in _WRITERS
        content = message.get("output" if message.get("type") == _OUTPUT else "content")
        parts = [_Part(None, mark=message.get(MARK))]
        for each in content if isinstance(content, list | tuple) else [content]:
            result = _result_in(each)
            if result is None:
                parts.append(_Part(each, is_result=is_result))
            else:
                parts.append(_Part(result.get("content"), mark=result.get(MARK), is_result=True))
        return parts
    extra, meta = getattr(message, "additional_kwargs", None), getattr(message, "meta", None)
    if isinstance(extra, Mapping):  # of LangChain
        is_result = getattr(message, "type", None) == "tool"
        return [_Part(getattr(message, "content", None), mark=extra.get(MARK), is_result=is_result)]
    if isinstance(meta, Mapping):  # of Haystack, which has a key of its own
        results = [getattr(each, "result", None) for each in getattr(message, "tool_call_results", ())]
        texts = getattr(message, "texts", None)
        return [_Part(texts), _Part(results, mark=meta.get("tool_result_offloaded"), is_result=True)]
    held = getattr(message, "parts", None)
    return [_part_of(part) for part in held] if isinstance(held, list | tuple) else []


def _result_in(part: object) -> Mapping[str, object] | None:
    """Return the tool result that is a part of a user's message, as in Anthropic's API, Bedrock's and Strands."""
    if not isinstance(part, Mapping):
        return None
    result = part if part.get("type") == "tool_result" else part.get("toolResult")
    return result if isinstance(result, Mapping) else None


def _part_of(part: object) -> _Part:
    """Return a part of a message of Pydantic AI, or of a content of Google ADK's."""
    response = getattr(part, "function_response", None)
    if response is not None or hasattr(part, "text"):
        results = list((getattr(response, "response", None) or {}).values())
        return _Part(results or getattr(part, "text", None), is_result=response is not None)
    is_result = getattr(part, "part_kind", None) == "tool-return"
    return _Part(getattr(part, "content", None), is_result=is_result)


def _part_of_contents(fields: Mapping[str, object]) -> _Part:
    is_result = fields.get("type") == "function_result"
    return _Part(fields.get("result" if is_result else "text"), is_result=is_result)


def _texts(content: Any) -> Iterator[str]:  # noqa: ANN401 - what frameworks put into messages
    """Yield the texts of a content: itself, or those of its parts."""
    for part in content if isinstance(content, list | tuple) else (content,):
        text = part.get("text") if isinstance(part, Mapping) else getattr(part, "text", part)
        if isinstance(text, str):
            yield text
