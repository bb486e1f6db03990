"""The compared ways to show a part of a result. Each is a function of the result and a budget.

An installed package is called as its users call it. The ways of the frameworks take a line each, and are written here.
All get the same budget of exact tokens, ``o200k_base``, and longer output is cut to it. Notices and footers are left
out everywhere, so that only the shown content is compared. The one exception is ``WHOLE``: our preview in the tokens
that our notice leaves of the budget.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from coatcheck import Always, Offloaded, Offloader, TextBlock, TiktokenCounter
from coatcheck.core.preview import Previewed, preview

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from benchmarks.quality.transcripts import Result

    Way: TypeAlias = Callable[[Result, int], str]

COUNTER = TiktokenCounter()
OURS = "coatcheck, preview"
WHOLE = "coatcheck, whole placeholder"
HEAD, HEAD_AND_TAIL = "head", "head and tail"
PLAIN = (HEAD, HEAD_AND_TAIL)
"""The ways that no preview may lose to."""

OVER_BUDGET = "head, 4 characters a token"
"""The one way that may exceed the budget, because it is shown as shipped. Cut to the budget, it is ``HEAD``."""

CHARACTERS_PER_TOKEN = 4
_HAYSTACK_CHARACTERS = 200
_LINES = 5
_LONGEST_LINE = 1_000


def ours(result: Result, budget: int) -> str:
    """Show the preview in a coatcheck placeholder."""
    return preview(Previewed.of(result.text), COUNTER, budget=budget)


def header_tokens(result: Result) -> int:
    """Return the tokens of a coatcheck placeholder without its preview."""
    offloader = Offloader(preview_tokens=0, policies={"*": Always()}, token_counter=COUNTER)
    outcome = offloader.offload([TextBlock(result.text)], tool_name="tool", scope="quality")
    # A result that is hardly longer than the notice stays, because a placeholder would not be smaller.
    blocks = outcome.blocks if isinstance(outcome, Offloaded) else ()
    return sum(COUNTER.count(block.text) for block in blocks if isinstance(block, TextBlock))


def head(result: Result, budget: int) -> str:
    """Show the head."""
    return COUNTER.head(result.text, budget)


def head_and_tail(result: Result, budget: int) -> str:
    """Show equally many tokens of head and tail."""
    return COUNTER.head(result.text, budget // 2) + "\n" + COUNTER.tail(result.text, budget // 2 - 1)


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


def all_ways() -> dict[str, Way]:
    """Return every way that can run here, by name, ours first. ``WHOLE`` is left out: it is ours at less budget."""
    found: dict[str, Way] = {
        OURS: ours,
        HEAD: head,
        HEAD_AND_TAIL: head_and_tail,
        OVER_BUDGET: head_as_shipped,
        "5+5 lines": five_and_five,
        "200 characters": two_hundred_characters,
    }
    for name, make in (("tooltrim", _tooltrim), ("tooltrim, asked", _tooltrim_asked), ("ctxtual", _ctxtual)):
        try:
            found[name] = make()
        except ImportError as error:  # noqa: PERF203 - only three rounds
            print(f"{name}: left out, not installed ({error})")
    return found


def _tooltrim() -> Way:
    compress = _compressor()
    return lambda result, budget: COUNTER.head(compress(result.text, None, budget), budget)


def _tooltrim_asked() -> Way:
    compress = _compressor()
    return lambda result, budget: COUNTER.head(compress(result.text, " ".join(result.known), budget), budget)


def _compressor() -> Callable[[str, str | None, int], str]:
    tooltrim: Any = importlib.import_module("tooltrim")
    # Its own encoding needs a download. Without one, it would guess four characters a token and waste its budget.
    tokens: Any = importlib.import_module("tooltrim.tokens")
    tokens._ENCODER = _Encoder  # noqa: SLF001
    compressor = tooltrim.ToolCompressor(store=None, add_footer=False)
    return lambda text, query, budget: compressor.compress(text, query=query, max_tokens=budget).text


class _Encoder:
    """The part of an encoding that tooltrim uses."""

    @staticmethod
    def encode(text: str) -> range:
        return range(COUNTER.count(text))


def _ctxtual() -> Way:
    shown: Any = importlib.import_module("ctxtual.mcp.preview")

    def show(result: Result, budget: int) -> str:
        shown.PREVIEW_MAX_CHARS = budget * CHARACTERS_PER_TOKEN
        made = shown.build_preview(shown.parse_text_payload(result.text))
        return COUNTER.head(made if isinstance(made, str) else json.dumps(made, ensure_ascii=False), budget)

    return show
