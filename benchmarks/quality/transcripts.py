"""The tool results in recorded conversations from which something was needed, and which of them are held out.

``coatcheck.replay.needs`` decides what a span is, and from which result it was needed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.quality.kinds import kind_of
from coatcheck import InvalidRequest
from coatcheck.core.preview.names import SENTENCE_WORDS
from coatcheck.replay.conversation import Turn, Words
from coatcheck.replay.files import read_conversations
from coatcheck.replay.needs import find_needs, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from coatcheck.replay.conversation import Conversation, Part

__all__ = ("HELD_OUT_SETS", "Result", "is_held_out", "read_results", "read_sets")

HELD_OUT_SETS = ("livemcpbench", "ko_agentbench")
"""File names, without extension, of the sets that were added after the rules were made."""

_MAX_WORDS = 12
_WORD = re.compile(r"[\w./@-]{4,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One tool result of one conversation."""

    source: str
    conversation: str
    text: str
    kind: str
    needed: tuple[str, ...]
    known: tuple[str, ...]
    """Words that the agent could search for: the user's, and those of its next turn. None is part of a needed span."""

    held_out: bool
    """Whether its conversation was kept out of choosing rules."""


def read_sets(folder: Path) -> Iterator[tuple[str, Conversation]]:
    """Yield every conversation of every transcript below ``folder``, with its file's name without extension."""
    for path in sorted(folder.rglob("*.jsonl")):
        try:
            conversations = read_conversations(path, [])
        except InvalidRequest:
            continue  # a tool's output, not a transcript
        yield from ((path.stem, conversation) for conversation in conversations)


def is_held_out(source: str, name: str, sets: Collection[str]) -> bool:
    """Return whether a conversation belongs to the held-out half of the sets named in ``sets``."""
    return source in sets and hashlib.sha256(f"coatcheck-heldout:{name}".encode()).digest()[0] % 2 == 0


def read_results(folder: Path, *, hold_out: Collection[str] = HELD_OUT_SETS) -> Iterator[Result]:
    """Yield every tool result from which anything was needed, in every conversation below ``folder``."""
    for source, conversation in read_sets(folder):
        parts = conversation.parts
        for position, needs in find_needs(parts).items():
            needed = tuple(need.span for need in needs)
            text = text_of(parts[position])
            yield Result(
                source=source,
                conversation=f"{source}/{conversation.name}",
                text=text,
                kind=kind_of(text),
                needed=needed,
                known=_known(parts, position, needed=needed),
                held_out=is_held_out(source, conversation.name, hold_out),
            )


def _known(parts: Sequence[Part], position: int, *, needed: tuple[str, ...]) -> tuple[str, ...]:
    """Return words of the next turn and of the user, the latest first, except those that occur in a needed span."""
    following = next((text_of(part) for part in parts[position + 1 :] if isinstance(part, Turn)), "")
    asked = [text_of(part) for part in parts[:position] if isinstance(part, Words)]
    told = " ".join(needed).lower()
    words = dict.fromkeys(_WORD.findall("\n".join((following, *reversed(asked)))))
    found = [word for word in words if word.lower() not in SENTENCE_WORDS and word.lower() not in told]
    return tuple(found[:_MAX_WORDS])
