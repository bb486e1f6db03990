"""What must survive when a conversation is compacted: the references to what it offloaded.

References are read where coatcheck wrote them: in the marks of messages, in the notice of a placeholder, and in any
text that is not a tool result, such as a summary. Nothing else that a tool returned is searched.

A tool can itself return the text of a placeholder. Many frameworks keep nothing of ours but this text, so it is
believed. But it adds no more references than a placeholder has, and if there are marks, all other references take
precedence over its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import accumulate, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck.adapting.content import MARK, references_in
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import (
    CHARACTERS_KEPT,
    MAX_KEPT,
    MAX_LISTED,
    ONE_KEPT,
    OPENINGS,
    RETRIEVAL_TOOL,
    kept_in,
    kept_references,
    listed_in,
)
from coatcheck.core.references import find_references
from coatcheck.engine.failures import log_failure, logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("find_references_in", "keep_references", "references_of_results")

_OUTPUT = "function_call_output"
"""The type of a tool result in OpenAI's Responses API, where it is not a message."""

_BEFORE_ERRORS = "Error: Function failed. Exception: "
"""What the Microsoft Agent Framework puts before the text of an error, where it shows that to the model."""

_WRITERS = ("assistant", "developer", "system", "user")
"""Roles whose own words may name a reference. A message with any other role, or none, may be a tool's."""

_OF_A_RESULT, _OF_WORDS, _OF_A_MARK = range(3)
"""Where a reference was found: the higher the value, the less likely it is that a tool wrote it."""


def keep_references(messages: Iterable[object], *, retrieval_tool: str = RETRIEVAL_TOOL) -> str:
    """Return one line for a summary, or for the prompt that asks for one, so that no reference is lost with a message.

    The line repeats what such a line in an earlier summary says, so a second summary keeps it as well.

    A tool that returns the text of a placeholder can add up to 8 false references with each result. Only a mark next
    to a result proves that it was offloaded; only LangChain (except ``offload_tool``), Haystack and Strands keep marks.

    Args:
        messages: the messages that will be removed: those of LangChain, Haystack, Strands, the Microsoft Agent
            Framework or Pydantic AI; contents of Google ADK; or messages of the APIs of OpenAI, Anthropic and Bedrock
            as JSON values, as a session of the OpenAI Agents SDK keeps them. Anything else is skipped. So is a message
            that raises when it is read, with a warning.
        retrieval_tool: the name of the agent's retrieval tool.

    Returns:
        The newest references, oldest first: at most 20, and at most 1,600 characters, about 800 tokens, but always at
        least one; ``""`` if there are none. If any message has a mark, references in marks are kept first, then those
        in the words of users, models and summaries, then those named only by results without a mark. A reference that a
        storage chose is left out if it is longer than 1,000 characters, or has characters that no path or address has.

    Raises:
        InvalidRequest: ``messages`` is a single message or string, or not an iterable of messages.

    """
    # A pydantic message, such as LangChain's and ADK's, is iterable too, but yields its fields.
    iterates = getattr(type(messages), "__iter__", None)
    is_model = str(getattr(iterates, "__module__", "")).startswith("pydantic")
    if is_model or isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        msg = f"messages must be a list of messages, not {type(messages).__name__}"
        raise InvalidRequest(msg)
    found = [each for message in messages for each in _read(message)]
    # The first mention counts: a listing of what is stored names everything again, newest first.
    known = list(dict(found))
    source = dict(sorted(found, key=itemgetter(1)))
    ranked = sorted(known, key=source.__getitem__) if _OF_A_MARK in source.values() else known
    lengths = accumulate(map(len, reversed(ranked)))
    fitting = sum(1 for length in islice(lengths, MAX_KEPT) if length <= CHARACTERS_KEPT)
    kept = frozenset(ranked[-max(fitting, 1) :])
    return kept_references(
        [each for each in known if each in kept],
        more=len(known) > len(kept),
        reader=retrieval_tool,
        lister=f"{retrieval_tool}()",
    )


def find_references_in(messages: Iterable[object]) -> Iterator[str]:
    """Yield the references in messages, in order. ``keep_references`` says what a message may be."""
    for message in messages:
        yield from (reference for reference, _ in _references(message))


def references_of_results(messages: Iterable[object]) -> tuple[str, ...]:
    """Return the references in the tool results of messages, each once. Other words only repeat them."""
    found = (each for message in messages for each, where in _references(message) if where != _OF_WORDS)
    return tuple(dict.fromkeys(found))


class _Part(NamedTuple):
    """A part of a message."""

    content: object
    """What it says: a ``str``, or parts that have text."""

    mark: object = None
    """The value in which the adapter wrote the references of an offloaded result."""

    is_result: bool = False
    """Whether it is a tool result, or what replaced one."""

    is_cleared: bool = False
    """Whether the framework replaced what the tool returned with the host's own text and our line of references."""


def _read(message: object) -> Iterator[tuple[str, int]]:
    """Yield the references of one message, as far as it can be read."""
    try:
        yield from _references(message)
    except Exception as error:  # noqa: BLE001 - the host's object may raise whenever an attribute is read
        log_failure(logger, "coatcheck skipped a message in which it looked for references", error=error)


def _references(message: object) -> Iterator[tuple[str, int]]:
    """Yield the references of one message in order, each with where it was found."""
    for part in _parts_of(message):
        marked = [each for each in references_in(part.mark) if re.fullmatch(ONE_KEPT, each, re.ASCII)]
        if marked:
            yield from ((each, _OF_A_MARK) for each in marked)
        elif part.is_result:
            yield from ((each, _OF_A_RESULT) for each in islice(_named_in(part), MAX_LISTED))
        else:
            yield from ((each, _OF_WORDS) for each in _named_in(part))


def _named_in(part: _Part) -> Iterator[str]:
    for text in _texts(part.content):
        if text.startswith(OPENINGS):  # what follows the notice is a tool's text
            yield from (match.group() for each in listed_in(text) for match in find_references(each))
        elif part.is_cleared or not part.is_result:
            yield from (match.group() for match in find_references(text))
            yield from kept_in(text)


def _parts_of(message: object) -> list[_Part]:
    if isinstance(message, str):
        return [_Part(message)]
    contents = _get(message, "contents")
    if isinstance(contents, list | tuple):  # of the Microsoft Agent Framework, or what a saved session keeps of one
        return [_part_of_contents(each) for each in contents]
    if isinstance(message, Mapping):  # of an API, or of Strands
        return _parts_of_json(message)
    extra, meta = _get(message, "additional_kwargs"), _get(message, "meta")
    if isinstance(extra, Mapping):  # of LangChain
        is_result = _get(message, "type") == "tool"
        is_cleared = bool(_get(_get(_get(message, "response_metadata"), "context_editing"), "cleared"))
        return [_Part(_get(message, "content"), mark=extra.get(MARK), is_result=is_result, is_cleared=is_cleared)]
    if isinstance(meta, Mapping):  # of Haystack, which has a key of its own
        results = [_get(each, "result") for each in _parts_in(_get(message, "tool_call_results"))]
        texts = _get(message, "texts")
        return [_Part(texts), _Part(results, mark=meta.get("tool_result_offloaded"), is_result=True)]
    held = _get(message, "parts")
    return [_part_of(part) for part in held] if isinstance(held, list | tuple) else []


def _parts_of_json(message: Mapping[str, object]) -> list[_Part]:
    content, mark = message.get("output" if message.get("type") == _OUTPUT else "content"), message.get(MARK)
    if message.get("role") not in _WRITERS:
        return [_Part(content, mark=mark, is_result=True)]
    parts = [_Part(None, mark=mark)]
    for each in _parts_in(content):
        result = _result_in(each)
        if result is None:
            parts.append(_Part(each))
        else:
            parts.append(_Part(result.get("content"), mark=result.get(MARK), is_result=True))
    return parts


def _result_in(part: object) -> Mapping[str, object] | None:
    """Return the tool result in a part of a user's message, as in Anthropic's API, Bedrock's API and Strands."""
    if not isinstance(part, Mapping):
        return None
    result = part if part.get("type") == "tool_result" else part.get("toolResult")
    return result if isinstance(result, Mapping) else None


def _part_of(part: object) -> _Part:
    """Read a part of a Pydantic AI message, or of a Google ADK content."""
    response = _get(part, "function_response")
    if response is not None or hasattr(part, "text"):
        said = _get(response, "response")
        values = said.values() if isinstance(said, Mapping) else ()
        results = [each for value in values for each in _parts_in(value)]  # of several blocks, ADK has a list
        return _Part(results or _get(part, "text"), is_result=response is not None)
    kind = _get(part, "part_kind")
    is_retry = kind == "retry-prompt" and _get(part, "tool_name") is not None  # a tool's own words, too
    return _Part(_get(part, "content"), is_result=is_retry or kind == "tool-return")


def _part_of_contents(content: object) -> _Part:
    if _get(content, "type") != "function_result":
        return _Part(_get(content, "text"))
    result = _get(content, "result")
    return _Part(result.removeprefix(_BEFORE_ERRORS) if isinstance(result, str) else result, is_result=True)


def _texts(content: object) -> Iterator[str]:
    """Yield the strings in a content: itself, or the text of its parts."""
    for part in _parts_in(content):
        text = part.get("text") if isinstance(part, Mapping) else getattr(part, "text", part)
        if isinstance(text, str):
            yield text


def _parts_in(content: Any) -> Sequence[object]:  # noqa: ANN401 - what frameworks put into messages
    """Return the parts of a content, which may itself be one part."""
    return content if isinstance(content, list | tuple) else (content,)


def _get(holder: object, name: str) -> Any:  # noqa: ANN401 - what frameworks put into messages
    """Return a field of a mapping or an object, or None if it has none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
