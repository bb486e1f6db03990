"""What must survive when a conversation is compacted: the references to what it offloaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from coatcheck.adapting.content import MARK, references_in
from coatcheck.core.notice import RETRIEVAL_TOOL, kept_references
from coatcheck.core.references import find_references

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("MOST_KEPT", "find_references_in", "keep_references")

MOST_KEPT = 20
"""References in the line, about 20 tokens each. The retrieval tool lists older ones, so the line need not grow."""


def keep_references(messages: Iterable[object], *, retrieval_tool: str = RETRIEVAL_TOOL) -> str:
    """Return one line for a summary, or for the prompt that asks for one, so that no reference is lost with a message.

    It repeats what such a line of an earlier summary says, so a second summary keeps it as well.

    Args:
        messages: the messages that will go: those of a framework, or JSON values, such as the messages of an API.
        retrieval_tool: the name of the agent's retrieval tool.

    Returns:
        The 20 newest references, oldest first, and the number of older ones, in at most 600 tokens; ``""`` without any.

    """
    found: dict[str, None] = {}
    for reference in find_references_in(messages):
        found.pop(reference, None)  # a later mention makes it newer
        found[reference] = None
    known = list(found)
    # In the order of the conversation: so the next summary takes them in the same order from the line of this one.
    return kept_references(known[-MOST_KEPT:], more=len(known[:-MOST_KEPT]), retrieval_tool=retrieval_tool)


_MARKS = (MARK, "tool_result_offloaded")
"""Where messages keep the references of what was offloaded; the second is Haystack's own key."""

_CONVERTERS = ("model_dump", "to_dict")
"""What turns a message of LangChain and of Haystack into JSON values. Those of Strands are such values."""


def find_references_in(messages: Iterable[object]) -> Iterator[str]:
    """Yield every reference in messages, in their texts and in the marks next to these, as ``keep_references`` does."""
    waiting: list[object] = [list(messages)]
    while waiting:
        match waiting.pop():
            case str(text):
                yield from (match.group() for match in find_references(text))
            case Mapping() as mapping:
                yield from (reference for mark in _MARKS for reference in references_in(mapping.get(mark)))
                waiting += reversed(list(mapping.values()))
            case bytes() | bytearray():
                pass
            case list() | tuple() as values:
                waiting += reversed(values)
            case other:
                convert = next((getattr(other, name) for name in _CONVERTERS if hasattr(other, name)), None)
                waiting += [convert()] if callable(convert) else []
