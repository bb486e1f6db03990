"""What all adapters' tests ask of ``coatcheck replay``: it reads what a real agent recorded, and its counts are right.

A recording is replayed as if nothing had been offloaded. The same agent then runs with offloading, in the scope of the
replay, so that references are equal. What stays in its conversation must cost exactly what the replay said.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from coatcheck.core.tokens import TiktokenCounter
from coatcheck.replay.billing import BilledResult
from coatcheck.replay.files import read_conversations
from coatcheck.replay.measure import (
    conversation_report,
    count_conversation,
    find_left,
    offloaded_parts,
    offloader_for,
    plain_parts,
)
from coatcheck.replay.report import Assumptions

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.replay.conversation import Conversation

SCOPE = "replay"
THRESHOLD = 2_500
COUNTER = TiktokenCounter()


def recorded(path: Path, value: Any) -> Conversation:  # noqa: ANN401 - any JSON value
    """Write a conversation as a framework dumped it, and return what a replay reads from the file."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return read(path)


def read(path: Path) -> Conversation:
    """Return the one conversation in a file or a folder."""
    (conversation,) = read_conversations(path, [])
    return conversation


def in_view(conversation: Conversation) -> list[tuple[str, int]]:
    """Return the tool of each result, and the tokens that the result costs in the conversation."""
    return _results(plain_parts(conversation.parts, COUNTER))


def said_to_stay(conversation: Conversation, *, preview_tokens: int | None = None) -> list[tuple[str, int]]:
    """Return the same, as a replay predicts it with offloading. ``preview_tokens=None`` is the core's default."""
    plain = plain_parts(conversation.parts, COUNTER)
    offloader = offloader_for(THRESHOLD, preview_tokens, counter=COUNTER, answer_tokens=THRESHOLD)
    left = find_left(conversation.parts, plain, needs={}, offloader=offloader)
    return _results(offloaded_parts(plain, left, reads={}, definition=0))


def already_offloaded(conversation: Conversation) -> int:
    """Return how many results a replay finds already offloaded, at a threshold low enough to offload them again.

    The tool whose results were offloaded is called ``search`` in all tests.
    """
    given = Assumptions(thresholds=(100,), retrievals=0, retrieval_tokens=0, definition_tokens=0)
    report = conversation_report(count_conversation(conversation, COUNTER), given, counter=COUNTER)
    assert [one for one in report.leaving if one.tool == "search"] == []
    return report.already_offloaded


def _results(parts: list[Any]) -> list[tuple[str, int]]:
    return [(part.tool, part.tokens) for part in parts if isinstance(part, BilledResult)]
