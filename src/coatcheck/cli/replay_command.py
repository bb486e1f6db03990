"""``coatcheck replay``: its arguments, what it prints and writes, its exit codes.

Only the command belongs here. ``coatcheck.replay`` reads, measures and draws the page; ``replay_screen`` prints
the tables. All are loaded when the command runs, so that ``--help`` is quick.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import CannotRun, reported
from coatcheck.cli.options import AsJson  # noqa: TC001 - typer reads the annotations
from coatcheck.cli.printing import complain, open_console, printable, progress, show_json
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS, MIN_BUDGET
from coatcheck.core.tokens import TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from coatcheck.core.tokens import TokenCounter
    from coatcheck.replay.conversation import Conversation
    from coatcheck.replay.measure import CountedConversation
    from coatcheck.replay.report import Assumptions, ReplayReport

__all__ = ("replay",)

_THRESHOLDS = (1_000, 2_500, 5_000, 10_000, 20_000)
"""Tokens: around the library's default, up to the largest single result that anyone lets into a conversation."""

_MAX_RETRIEVALS = 100
"""The most read-backs of each result. Each is a turn to add up, so a typo could take hours."""

_MAX_PRICE = 1e12
"""In any currency. Far above it, costs would become infinite, which JSON cannot express."""

_MAX_TOKENS = 10**12
"""The most tokens of a threshold or a prefix. Far above it, no cost can be computed."""

_Transcripts = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRANSCRIPT",
        exists=True,
        show_default=False,
        help="From OpenAI, Anthropic, LangChain, Haystack, Strands, Claude Code or Codex.",
    ),
]
_Threshold = Annotated[
    list[int] | None,
    typer.Option(
        metavar="N", min=100, show_default=False, help="Threshold to try; repeatable. Else five, 1000 to 20000."
    ),
]
_PreviewTokens = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        show_default=False,
        help=f"Tokens of a preview. Else {DEFAULT_PREVIEW_TOKENS}, then others.",
    ),
]
_Retrievals = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        max=_MAX_RETRIEVALS,
        show_default=False,
        help="Assumed read-backs of each result. Else by need.",
    ),
]
_RetrievalTokens = Annotated[
    int | None,
    typer.Option(metavar="T", min=MIN_BUDGET, show_default="the threshold", help="Most tokens of a read-back."),
]
_PrefixTokens = Annotated[
    int, typer.Option(metavar="T", min=0, help="Tokens of the system prompt and the other tools.")
]
_InputPrice = Annotated[float | None, typer.Option(metavar="P", min=0, help="Price of a million input tokens.")]
_CachedPrice = Annotated[
    float | None,
    typer.Option(metavar="P", min=0, show_default="a tenth", help="The same, read from a prompt cache."),
]
_WrittenPrice = Annotated[
    float | None,
    typer.Option(metavar="P", min=0, show_default="1.25 times", help="The same, written to it."),
]
_Html = Annotated[
    Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write a page with charts; it needs no network.")
]


@reported
def replay(
    transcripts: _Transcripts,
    *,
    threshold: _Threshold = None,
    preview_tokens: _PreviewTokens = None,
    retrievals: _Retrievals = None,
    retrieval_tokens: _RetrievalTokens = None,
    prefix_tokens: _PrefixTokens = 0,
    price: _InputPrice = None,
    cached_price: _CachedPrice = None,
    written_price: _WrittenPrice = None,
    html: _Html = None,
    as_json: AsJson = False,
) -> None:
    """See what offloading would save on conversations that you recorded.

    JSON, JSON Lines, or folders of them. A result counts as read back if a later
    message holds something of it that the preview does not show.
    """
    from coatcheck.cli.replay_screen import show_replay
    from coatcheck.replay.measure import definition_tokens
    from coatcheck.replay.report import Assumptions

    console = open_console(quiet=as_json)
    _check_tokens({"--threshold": max(threshold or [0]), "--prefix-tokens": prefix_tokens})
    _check_prices(price, {"--cached-price": cached_price, "--written-price": written_price})
    if html is not None:
        _check_page(html, transcripts)
    given = Assumptions(
        thresholds=tuple(sorted(set(threshold or _THRESHOLDS))),
        preview_tokens=preview_tokens,
        retrievals=retrievals,
        retrieval_tokens=retrieval_tokens,
        definition_tokens=definition_tokens(TiktokenCounter()),
        prefix_tokens=prefix_tokens,
        price=price,
        cached_price=cached_price,
        written_price=written_price,
    )
    report = _replayed(transcripts, given)
    show_replay(console, report)
    if html is not None:
        _write(console, html, report)
    if as_json:
        show_json(report.as_json())


def _check_tokens(given: Mapping[str, int]) -> None:
    """Refuse token counts that no cost can be computed with.

    Raises:
        BadParameter: one is too high.

    """
    for option, value in given.items():
        if value > _MAX_TOKENS:
            msg = f"must be at most {_MAX_TOKENS:,}"
            raise typer.BadParameter(msg, param_hint=option)


def _check_prices(price: float | None, of_the_cache: Mapping[str, float | None]) -> None:
    """Refuse prices that no cost can be computed with.

    Raises:
        BadParameter: one is too high, the price is 0, or a price of the cache came without ``--price``.

    """
    if price == 0:
        msg = "must be above 0: a price of 0 leaves nothing to save"
        raise typer.BadParameter(msg, param_hint="--price")
    for option, value in {"--price": price, **of_the_cache}.items():
        if value is not None and value > _MAX_PRICE:
            msg = f"must be at most {_MAX_PRICE:,.0f}"
            raise typer.BadParameter(msg, param_hint=option)
        if value is not None and price is None:
            msg = "needs --price, what a million tokens cost without a cache"
            raise typer.BadParameter(msg, param_hint=option)


def _check_page(html: Path, transcripts: list[Path]) -> None:
    """Refuse a place for the page before anything is replayed, which may take minutes.

    Raises:
        BadParameter: the page would replace a transcript, or its folder does not exist.

    """
    if _would_replace(html.resolve(), transcripts):
        msg = f"{html} is a transcript: the page would replace it"
        raise typer.BadParameter(msg, param_hint="--html")
    if not html.absolute().parent.is_dir():
        msg = f"{html.parent} is not a folder: make it first, since replaying may take minutes"
        raise typer.BadParameter(msg, param_hint="--html")


def _would_replace(page: Path, transcripts: list[Path]) -> bool:
    """Return whether the page, as an absolute path, would replace something that is replayed."""
    from coatcheck.replay.files import SUFFIXES

    given = {path.resolve() for path in transcripts}
    return page in given or (page.suffix in SUFFIXES and not given.isdisjoint(page.parents))


def _replayed(transcripts: list[Path], given: Assumptions) -> ReplayReport:
    """Read and replay everything, showing the progress if somebody watches.

    Raises:
        InvalidRequest: no conversation can be read, or none can be replayed. If others can, one that cannot is left
            out and named on standard error.

    """
    from coatcheck.replay.files import ACCEPTED, without_beginnings
    from coatcheck.replay.measure import conversation_report, count_conversation
    from coatcheck.replay.report import ReplayReport

    counter = TiktokenCounter()
    odd: list[str] = []
    found = _read(transcripts, odd)
    conversations = without_beginnings(found)
    counted, reports = [], []
    with progress("Replaying", len(conversations)) as advance:
        for conversation in conversations:
            try:
                each = count_conversation(conversation, counter)
                reports.append(conversation_report(each, given, counter=counter))
                counted.append(each)
            except InvalidRequest as error:
                odd.append(str(error))
            except Exception as error:  # noqa: BLE001 - one bad conversation must not fail the whole replay
                odd.append(f"{conversation.source}: {conversation.name}: {type(error).__name__}: {error}")
            advance(1)
    if odd and not reports:
        raise InvalidRequest(odd[0])
    accepted = f" Accepted: {ACCEPTED}"
    for one in odd:
        complain(f"coatcheck: left out: {one.removesuffix(accepted)}")
    if any(one.endswith(accepted) for one in odd):
        complain(f"coatcheck: accepted: {ACCEPTED}")
    report = ReplayReport(
        assumptions=given,
        conversations=tuple(reports),
        beginnings=len(found) - len(conversations),
        left_out=len(odd),
    )
    return _with_other_previews(report, counted, counter)


def _with_other_previews(
    report: ReplayReport, counted: Sequence[CountedConversation], counter: TokenCounter
) -> ReplayReport:
    """Replay again with each other preview size, only above the best threshold: all thresholds would take hours."""
    from coatcheck.replay.measure import conversation_report
    from coatcheck.replay.report import ReplayReport

    tried = report.assumptions.other_previews(report.shown)
    if not tried:
        return report
    previews = []
    with progress("Trying other previews", len(tried) * len(counted)) as advance:
        for given in tried:
            reports = []
            for each in counted:
                reports.append(conversation_report(each, given, counter=counter))
                advance(1)
            previews.append(ReplayReport(assumptions=given, conversations=tuple(reports)))
    return replace(report, previews=tuple(previews))


def _read(transcripts: list[Path], left_out: list[str]) -> list[Conversation]:
    """Read everything once: a file that is named twice, by itself and through its folder, was paid for once."""
    from coatcheck.replay.files import read_conversations, read_each

    known: set[Path] = set()

    def read(path: Path) -> list[Conversation]:
        found = read_conversations(path, left_out)
        sources = {source: Path(source).resolve() for source in {each.source for each in found}}
        new = [each for each in found if sources[each.source] not in known]
        known.update(sources.values())
        return new

    return read_each((partial(read, path) for path in transcripts), left_out)


def _write(console: Console, path: Path, report: ReplayReport) -> None:
    """Write the page, and say where it is and how large.

    Raises:
        CannotRun: it cannot be written.

    """
    from coatcheck.replay.page import page

    data = page(report).encode("utf-8")
    try:
        path.write_bytes(data)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise CannotRun(msg) from None
    console.print(f"Page of {len(data) / 1_000:,.0f} KB: {printable(str(path))}", markup=False, soft_wrap=True)
