"""The ways to leave a part of a result in view that are compared: each a function of text and budget.

Where a package is installed it is called as its users call it; the ways of the frameworks are a line each and stand
here. All get the same budget of exact tokens, ``o200k_base``, and what costs more is cut to it. Notices and footers are
left out everywhere, so that only what is shown of the content is compared.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

from coatcheck import TiktokenCounter
from coatcheck.core.preview import Previewed, preview

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.quality.transcripts import Result

    Method = Callable[[Result, int], str]

COUNTER = TiktokenCounter()
OURS = "coatcheck"
OVER_BUDGET = "head, 4 characters a token"
"""The one way that costs more than the budget: shown as it is shipped, and compared with cut to the budget too."""

CHARACTERS_PER_TOKEN = 4
_HAYSTACK_CHARACTERS = 200
_LINES = 5
_LONGEST_LINE = 1_000


def ours(result: Result, budget: int) -> str:
    """Show what a placeholder of coatcheck shows."""
    text = result.text
    lines = text.count("\n") + (not text.endswith("\n"))
    return preview(Previewed(text=text, content_type="text/plain", lines=lines), COUNTER, budget=budget)


def head(result: Result, budget: int) -> str:
    """Show the head, as Strands does (four characters a token), cut to the budget."""
    return COUNTER.head(result.text[: budget * CHARACTERS_PER_TOKEN], budget)


def head_as_shipped(result: Result, budget: int) -> str:
    """Show the head as Strands does, whatever it costs."""
    return result.text[: budget * CHARACTERS_PER_TOKEN]


def five_and_five(result: Result, budget: int) -> str:
    """Show the first and the last five lines, none beyond 1,000 characters, as deepagents does."""
    lines = [line[:_LONGEST_LINE] for line in result.text.splitlines()]
    shown = lines if len(lines) <= 2 * _LINES else [*lines[:_LINES], "...", *lines[-_LINES:]]
    return COUNTER.head("\n".join(shown), budget)


def two_hundred_characters(result: Result, budget: int) -> str:
    """Show 200 characters, as Haystack does unless told otherwise."""
    return COUNTER.head(result.text[:_HAYSTACK_CHARACTERS], budget)


def methods() -> dict[str, Method]:
    """Return every way that can be run here, by name; ours first."""
    found: dict[str, Method] = {
        OURS: ours,
        "head": head,
        OVER_BUDGET: head_as_shipped,
        "5+5 lines": five_and_five,
        "200 characters": two_hundred_characters,
    }
    for name, make in (("tooltrim", _tooltrim), ("tooltrim, asked", _tooltrim_asked), ("ctxtual", _ctxtual)):
        try:
            found[name] = make()
        except ImportError as error:  # noqa: PERF203 - three times
            print(f"{name}: left out, not installed ({error})")
    return found


def _tooltrim() -> Method:
    compress = _compressor()
    return lambda result, budget: COUNTER.head(compress(result.text, None, budget), budget)


def _tooltrim_asked() -> Method:
    compress = _compressor()
    return lambda result, budget: COUNTER.head(compress(result.text, " ".join(result.known), budget), budget)


def _compressor() -> Callable[[str, str | None, int], str]:
    tooltrim = importlib.import_module("tooltrim")
    # Its own encoding must be fetched; without it, it would guess four characters a token and waste its budget.
    importlib.import_module("tooltrim.tokens")._ENCODER = _Encoder  # noqa: SLF001
    compressor = tooltrim.ToolCompressor(store=None, add_footer=False)
    return lambda text, query, budget: compressor.compress(text, query=query, max_tokens=budget).text


class _Encoder:
    """What tooltrim asks of an encoding."""

    @staticmethod
    def encode(text: str) -> range:
        return range(COUNTER.count(text))


def _ctxtual() -> Method:
    shown = importlib.import_module("ctxtual.mcp.preview")

    def show(result: Result, budget: int) -> str:
        shown.PREVIEW_MAX_CHARS = budget * CHARACTERS_PER_TOKEN
        made = shown.build_preview(shown.parse_text_payload(result.text))
        return COUNTER.head(made if isinstance(made, str) else json.dumps(made, ensure_ascii=False), budget)

    return show
