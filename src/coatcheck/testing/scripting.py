"""The scripted model: it calls tools, takes a reference out of what it was shown, and continues reading as instructed.

Like a real model, it knows only the text that it received. A reference that is not shown, or a next call that cannot be
parsed, therefore fails a scenario.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.testing.harness import ModelCall

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from coatcheck.testing.harness import Received
    from coatcheck.testing.scenario import Call, Read, Scenario

    Moves = Generator[Sequence[ModelCall], Sequence[Received], None]

__all__ = ("MAX_PAGES", "Script", "next_call", "page_content", "reference_of", "shown_references")

MAX_PAGES = 400
"""The most answers that the model reads one after another; more means that reading does not advance."""

_NEXT_CALL = re.compile(r"\n\[More: (?:\w+\((?P<whole>.*)\)|the same call with (?P<change>.*))\]$")
_ARGUMENT = re.compile(r"(?:, )?(\w+)=")
_PAGE = re.compile(r"\[Characters [\d,]+-[\d,]+ of [\d,]+\]\n(.*)\n\[(?:More: |End of content\])[^\n]*", re.DOTALL)
_HEADING = "[Stored references:]"


class Script:
    """Answers every request of a conversation, and keeps the answers to each read."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        references: Sequence[str] | None = None,
        others: Sequence[str] = (),
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Play a scenario.

        Args:
            scenario: what to play.
            references: what the model was shown in the first conversation, for a second one, which only reads.
            others: the references that the neighbour's model is shown.
            meanwhile: called between the last result and the first read.

        """
        self._others = others
        self._meanwhile = meanwhile
        self.answers: list[list[Received]] = [[] for _ in scenario.reads]
        self.is_reading: bool = False
        self._moves = self._play(scenario) if references is None else self._read(scenario, references)
        self._started = False

    def __call__(self, received: Sequence[Received]) -> Sequence[ModelCall]:
        """Answer one request."""
        try:
            if self._started:
                return self._moves.send(received)
            self._started = True
            return next(self._moves)
        except StopIteration:
            return ()

    def _play(self, scenario: Scenario) -> Moves:
        numbers = iter(range(len(scenario.calls)))
        received: Sequence[Received] = ()
        for step in scenario.steps:
            received = yield [_tool_call(call, next(numbers)) for call in step]
        self._meanwhile()
        if scenario.between == "nothing":
            references = [reference for result in received for reference in shown_references(result.text)]
            yield from self._read(scenario, [*references, *self._others])

    def _read(self, scenario: Scenario, references: Sequence[str]) -> Moves:
        for number, read in enumerate(scenario.reads):
            arguments: dict[str, object] | None = {
                "reference": reference_of(read, references),
                **read.arguments,
                **read.undefined,
            }
            while arguments is not None and len(self.answers[number]) < MAX_PAGES:
                call_id = f"read_{number}_{len(self.answers[number])}"
                self.is_reading = True
                received = yield [ModelCall(tool=RETRIEVAL_TOOL, arguments=arguments, call_id=call_id)]
                self.answers[number].append(received[-1])
                arguments = next_call(received[-1].text, arguments) if read.to_the_end else None


def shown_references(text: str) -> list[str]:
    """Return the references of a placeholder: the first word of each list line before the preview."""
    lines = iter(text.split("\n"))
    if not text.startswith("Tool result offloaded.") or _HEADING not in lines:  # advances past the heading
        return []
    return list(_first_words(lines))


def next_call(text: str, arguments: Mapping[str, object]) -> dict[str, object] | None:
    """Return the arguments of the call that an answer says to make next, or None."""
    found = _NEXT_CALL.search(text)
    if found is None:
        return None
    if found["change"] is not None:
        return {**arguments, **_arguments(found["change"])}
    return _arguments(found["whole"])


def page_content(text: str) -> str:
    """Return the content that an answer shows, without the answer's first and last line."""
    found = _PAGE.fullmatch(text)
    if found is None:
        message = f"not a page of characters with a first and a last line: {text[:80]!r} … {text[-80:]!r}"
        raise AssertionError(message)
    return found[1]


def _first_words(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("  "):
            return
        yield line.split()[0]


def _arguments(listed: str) -> dict[str, object]:
    """Parse ``name="text", other=10``: names with JSON values."""
    decoder = json.JSONDecoder()
    arguments: dict[str, object] = {}
    at = 0
    while found := _ARGUMENT.match(listed, at):
        arguments[found[1]], at = decoder.raw_decode(listed, found.end())
    return arguments


def _tool_call(call: Call, number: int) -> ModelCall:
    call_id = f"call_{number}" if call.call_id is None else call.call_id
    return ModelCall(tool=call.tool, arguments={"number": number}, call_id=call_id if call.has_id else None)


def reference_of(read: Read, references: Sequence[str]) -> str:
    """Return the reference that the model passes: one that it was shown, or another in its place."""
    if read.reference is not None and "{}" not in read.reference:
        return read.reference
    if read.of >= len(references):
        message = f"the model was shown {len(references)} references; the scenario reads the one at {read.of}"
        raise AssertionError(message)
    return (read.reference or "{}").format(references[read.of])
