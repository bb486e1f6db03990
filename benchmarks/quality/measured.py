"""The share of the needed spans that each way shows of each result, at one budget."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.quality.methods import COUNTER, OURS, WHOLE, header_tokens, ours
from coatcheck import Always, Offloader, TextBlock, scope
from coatcheck.replay.needs import holds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.quality.methods import Way
    from benchmarks.quality.transcripts import Result

__all__ = ("Measured", "lost_spans", "measure", "share")

_ANSWER_TOKENS = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured for one result at one budget, by name of the way."""

    result: Result
    shown: Mapping[str, float]
    """Share of the needed spans in the preview."""

    reached: Mapping[str, float]
    """Share of the needed spans in the preview or in the answer to one retrieval call."""

    tokens: Mapping[str, int]
    """Tokens of the preview."""


def measure(results: Sequence[Result], budget: int, *, ways: Mapping[str, Way]) -> Iterator[Measured]:
    """Yield what each way keeps of each result that exceeds ``budget`` tokens."""
    for result in results:
        if not COUNTER.exceeds(result.text, budget):
            continue
        previews = {name: way(result, budget) for name, way in ways.items()}
        previews[WHOLE] = ours(result, max(0, budget - header_tokens(result)))
        read = _read_back(result)
        yield Measured(
            result=result,
            shown={name: share(result, made) for name, made in previews.items()},
            reached={name: share(result, f"{made}\n{read}") for name, made in previews.items()},
            tokens={name: COUNTER.count(made) for name, made in previews.items()},
        )


def share(result: Result, text: str) -> float:
    """Return the share of the needed spans that ``text`` contains."""
    return sum(holds(text, span) for span in result.needed) / len(result.needed)


def lost_spans(result: Result, budget: int, *, ways: Mapping[str, Way]) -> tuple[str, list[str]]:
    """Return the way that shows most, and the needed spans that it shows and ours does not."""
    previews = {name: way(result, budget) for name, way in ways.items()}
    best = max(previews, key=lambda name: share(result, previews[name]))
    shown = [span for span in result.needed if holds(previews[best], span) and not holds(previews[OURS], span)]
    return best, shown


_ANSWERS: dict[Result, str] = {}


def _read_back(result: Result) -> str:
    """Return our retrieval tool's answer to one search for what the agent knows, whatever the preview shows."""
    if result not in _ANSWERS:
        offloader = Offloader(token_counter=COUNTER, max_retrieval_tokens=_ANSWER_TOKENS)
        pattern = "(?i)" + "|".join(map(re.escape, result.known))
        with scope("quality"):
            outcome = offloader.offload([TextBlock(result.text)], tool_name="tool", policy=Always())
            found = result.known and offloader.retrieve(str(outcome.references[0]), pattern=pattern, context_lines=2)
        # Drop the header, which repeats the pattern.
        _ANSWERS[result] = found.text.partition("\n")[2] if found else ""
    return _ANSWERS[result]
