"""What agents later used of their tool results: conversations in, results with their needed spans out.

A span is an identifier, a number, a name or a quoted text. It is needed from a result where a later message of the
agent (or an argument of a later call) holds it, the result holds it, and nothing before the result does. Numbers of one
or two digits are left out, because they agree by chance; so are words that any sentence may begin with.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEAST_CHARACTERS = 3
MOST_CHARACTERS = 80
MOST_WORDS = 12

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_IDENTIFIER = r"[A-Za-z_./~][\w./~@:+-]*[\d_./@:-][\w./~@:+-]*\w"
_NAME = r"[A-Z]\w*[^\W\d_]"
_QUOTED = r"\"(\w[^\"\n]{1,78}\w)\"|'(\w[^'\n]{1,78}\w)'|`(\w[^`\n]{1,78}\w)`"
"""What begins and ends with a letter or digit: what stands between two quoted texts is none."""

_SPAN = re.compile(rf"{_QUOTED}|({_IDENTIFIER})|({_NAME})|({_NUMBER})")
_WORD = re.compile(r"[\w./@-]{4,}")
_COMMON = frozenset(
    {
        "about",
        "after",
        "again",
        "also",
        "been",
        "before",
        "both",
        "could",
        "does",
        "each",
        "first",
        "from",
        "have",
        "here",
        "into",
        "just",
        "last",
        "like",
        "make",
        "more",
        "most",
        "much",
        "need",
        "only",
        "other",
        "over",
        "please",
        "show",
        "some",
        "sure",
        "than",
        "thank",
        "thanks",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "want",
        "well",
        "were",
        "what",
        "when",
        "where",
        "which",
        "will",
        "with",
        "would",
        "your",
    }
)
_LISTED = re.compile(r"(?:[-dlbcps][rwxsStT-]{9}.*|\.{0,2}/\S*|\S+:)")
_NUMBERED = re.compile(r"\s*\d+[:|\t] ?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One tool result of one conversation."""

    source: str
    conversation: str
    text: str
    kind: str
    needed: tuple[str, ...]
    known: tuple[str, ...]
    """Words that the agent could search for: the user's, and those of its next call; none tells a needed span."""


def read_results(folder: Path) -> Iterator[Result]:
    """Yield every tool result that was needed for anything, of every conversation in ``folder``."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            conversation = json.loads(line)
            yield from _results(path.stem, conversation["id"], conversation["messages"])


def read_conversations(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the source and the messages of every conversation in ``folder``."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.stem, json.loads(line)["messages"]


def holds(text: str, span: str) -> bool:
    """Return whether ``span`` stands in ``text`` as a whole word."""
    return re.search(rf"(?<!\w){re.escape(span)}(?!\w)", text) is not None


def text_of(message: dict[str, Any]) -> str:
    """Return what a message says, and the arguments of its calls, as text."""
    said = message.get("content")
    parts = [said if isinstance(said, str) else json.dumps(said, ensure_ascii=False) if said else ""]
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        try:
            values = json.loads(arguments)
        except ValueError:
            values = arguments
        parts += map(str, values.values()) if isinstance(values, dict) else [str(values)]
    return "\n".join(parts)


def _results(source: str, name: str, messages: list[dict[str, Any]]) -> Iterator[Result]:
    texts = [text_of(message) for message in messages]
    for position, message in enumerate(messages):
        if message["role"] != "tool" or not texts[position]:
            continue
        later = [text for text, other in zip(texts[position + 1 :], messages[position + 1 :], strict=True)
                 if other["role"] == "assistant"]  # fmt: skip
        before = "\n".join(texts[:position])
        needed = tuple(
            span
            for span in dict.fromkeys(span for text in later for span in _spans(text))
            if holds(texts[position], span) and not holds(before, span)
        )
        if needed:
            asked = [text for text, other in zip(texts, messages, strict=True) if other["role"] == "user"]
            asked = asked[: sum(other["role"] == "user" for other in messages[:position])]
            known = _known("\n".join((*later[:1], *reversed(asked))), needed)
            kind = kind_of(texts[position])
            yield Result(
                source=source,
                conversation=f"{source}/{name}",
                text=texts[position],
                kind=kind,
                needed=needed,
                known=known,
            )


def _spans(text: str) -> Iterator[str]:
    for found in _SPAN.finditer(text):
        span = next(group for group in found.groups() if group).rstrip(".:,-")
        if LEAST_CHARACTERS <= len(span) <= MOST_CHARACTERS and span.lower() not in _COMMON:
            yield span
            if "," in span and span.replace(",", "").isdigit():
                yield span.replace(",", "")


def _known(text: str, needed: tuple[str, ...]) -> tuple[str, ...]:
    words = dict.fromkeys(_WORD.findall(text))
    told = " ".join(needed).lower()
    return tuple(word for word in words if word.lower() not in _COMMON and word.lower() not in told)[:MOST_WORDS]


def kind_of(text: str) -> str:
    """Return what kind of content a result is; the benchmark's own opinion, whatever the previews think."""
    opening = text.lstrip()[:1]
    if opening in "[{(" and opening:
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return "JSON"
        try:
            ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
        else:
            return "Python rows"
    lines = [line for line in text.splitlines() if line.strip()]
    if sum(_NUMBERED.match(line) is not None for line in lines) > len(lines) / 2:
        return "numbered source"
    if sum(_LISTED.fullmatch(line.strip()) is not None for line in lines) > len(lines) / 2:
        return "listing"
    return "command output"
