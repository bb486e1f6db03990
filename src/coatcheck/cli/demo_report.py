"""The results of one run of the demo: frozen values, and how they are taken from the conversation.

Only facts belong here, named so that a program can use them too: ``coatcheck demo --json`` prints them as they are.
``demo_screen`` shows them on a screen.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.replay.measure import definition_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from coatcheck.cli.demo_script import Case
    from coatcheck.core.tokens import TokenCounter
    from coatcheck.engine.events import Event

__all__ = ("DemoReport", "PartReport", "Retrieval", "part_report")


_OUTCOMES = ("offloaded", "truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """One call of the retrieval tool."""

    arguments: dict[str, Any]
    """The arguments as the model sent them, without the reference."""

    tokens: int
    """Tokens of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """One question, and what it took to answer it."""

    title: str
    tool: str
    question: str
    answer: str

    answer_in_data: bool
    """Whether the answer states what the data says, looked up in the data itself."""

    stored_exactly: bool | None
    """Whether the stored file equals the result, byte for byte; None if nothing had to be stored."""

    bytes: int
    """Bytes that the tool returned."""

    tokens: int
    """Tokens that the tool returned, counted exactly; the placeholder shows an estimate."""

    outcome: str
    """What became of the result: "offloaded", "kept", or "truncated" if it could not be stored."""

    shown: str
    """What the conversation holds of it."""

    shown_tokens: int

    retrievals: tuple[Retrieval, ...]

    model_calls: int

    tokens_sent: int
    """Tokens of all model calls: each sends the whole conversation again, and the retrieval tool's definition."""

    tokens_sent_without: int
    """The same without offloading, at least: one call that calls the tool, one that answers from the whole result."""

    offload_seconds: float
    retrieval_seconds: float
    seconds: float
    """From the question to the answer."""

    reference: str | None
    """The reference of the stored result. None, as for ``path``, if the result stayed in the conversation."""

    path: str | None

    @property
    def verified(self) -> bool:
        """Whether both checks passed."""
        return self.answer_in_data and self.stored_exactly is not False

    @property
    def tokens_saved(self) -> int:
        """Tokens that offloading saved."""
        return self.tokens_sent_without - self.tokens_sent


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """The report on a whole demo."""

    model: str
    storage: str
    parts: tuple[PartReport, ...]

    @property
    def verified(self) -> bool:
        """Whether every part is verified."""
        return all(part.verified for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON value, with what follows from its fields."""
        parts = [{**asdict(part), "tokens_saved": part.tokens_saved, "verified": part.verified} for part in self.parts]
        return {**asdict(self), "parts": parts, "verified": self.verified}


def part_report(
    case: Case,
    messages: Sequence[BaseMessage],
    events: Sequence[Event],
    *,
    counter: TokenCounter,
    seconds: float,
    answer_in_data: bool,
    path: Path | None,
) -> PartReport:
    """Return the report on a finished conversation.

    Args:
        case: what was asked.
        messages: the conversation, the answer last.
        events: what the offloader did during the run.
        counter: counts the tokens of every message.
        seconds: how long the conversation took.
        answer_in_data: whether the answer states what the data says.
        path: the stored file, if the result was stored.

    """
    offloaded = next((event for event in events if event.kind == "offloaded"), None)
    tokens = counter.count(case.result)
    shown = next((_text(message) for message in messages if _is_result_of(message, case.tool_name)), "")
    costs = [_cost(message, counter) for message in messages]
    sent = _sent(messages, costs, definition=definition_tokens(counter))
    asked = sum(costs[:2])
    raw = case.result.encode()
    return PartReport(
        title=case.title,
        tool=case.tool_name,
        question=case.script.question,
        answer=_text(messages[-1]),
        answer_in_data=answer_in_data,
        stored_exactly=None if path is None else path.read_bytes() == raw,
        bytes=len(raw),
        tokens=tokens,
        outcome=next((event.kind for event in events if event.kind in _OUTCOMES), "kept"),
        shown=shown,
        shown_tokens=counter.count(shown),
        retrievals=_retrievals(messages, counter),
        model_calls=len(sent),
        tokens_sent=sum(sent),
        tokens_sent_without=costs[0] + asked + tokens,
        offload_seconds=_seconds(events, "offloaded"),
        retrieval_seconds=_seconds(events, "retrieved"),
        seconds=seconds,
        reference=None if offloaded is None else offloaded.references[0],
        path=None if path is None else str(path),
    )


def _text(message: BaseMessage) -> str:
    return str(message.text)


def _is_result_of(message: BaseMessage, tool_name: str) -> bool:
    return isinstance(message, ToolMessage) and message.name == tool_name


def _cost(message: BaseMessage, counter: TokenCounter) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return counter.count(_text(message)) + sum(counter.count(json.dumps(call["args"])) for call in calls)


def _sent(messages: Sequence[BaseMessage], costs: Sequence[int], *, definition: int) -> list[int]:
    """Return the tokens sent with each model call: the retrieval tool's definition, and all messages before it."""
    before = accumulate(costs, initial=0)
    return [
        definition + cost for message, cost in zip(messages, before, strict=False) if isinstance(message, AIMessage)
    ]


def _retrievals(messages: Sequence[BaseMessage], counter: TokenCounter) -> tuple[Retrieval, ...]:
    answers = {message.tool_call_id: _text(message) for message in messages if isinstance(message, ToolMessage)}
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    return tuple(
        Retrieval(
            arguments={name: value for name, value in call["args"].items() if name != "reference"},
            tokens=counter.count(answers.get(call["id"] or "", "")),
        )
        for call in calls
        if call["name"] == RETRIEVAL_TOOL
    )


def _seconds(events: Sequence[Event], kind: str) -> float:
    return sum(event.milliseconds for event in events if event.kind == kind) / 1_000
