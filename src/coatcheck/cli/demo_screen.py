"""Shows a demo on a screen of 80 columns or more, with or without colour.

Only presentation belongs here; nothing is measured or decided. Whatever comes from data, from a model or from the file
system goes through ``printable`` and is never read as markup, so that no data can control the terminal.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.box import ROUNDED
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from coatcheck.cli.printing import printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from coatcheck.cli.demo_report import DemoReport, PartReport, Retrieval

__all__ = ("show_end", "show_part", "show_start", "working")

_HEAD_LINES, _TAIL_LINES = 9, 2
"""Lines shown of what went into the conversation; the rest is in the stored file."""

_LABEL_COLUMNS = 14

_OUTCOMES = {
    "offloaded": " in its place",
    "kept": ": the result stays as it is",
    "truncated": ": the result was cut, because it could not be stored",
}


def show_start(console: Console, model: str) -> None:
    """Say what is going to happen."""
    console.print(Text(f"coatcheck demo: a LangChain agent with OffloadMiddleware; model: {printable(model)}", "bold"))


def show_part(console: Console, part: PartReport) -> None:
    """Show one question and its answer. The path comes last and unbroken, so that it can be copied."""
    console.print()
    console.rule(Text(printable(part.title), "bold"), align="left", style="dim")
    console.print(
        _rows(("Question", part.question), ("Tool returned", _returned(part)), ("Conversation", _shown(part)))
    )
    console.print(_preview(part.shown))
    console.print(_rows(*_retrievals(part.retrievals), ("Answer", Text(printable(part.answer), "bold"))))
    console.print(_rows(("Checked", _checked(part)), *_costs(part), ("Time", _time(part))))
    if part.path is not None:
        console.print(Text.assemble(("Stored file:  ", "cyan"), printable(part.path)), soft_wrap=True)


def show_end(console: Console, report: DemoReport) -> None:
    """Say how it went, and where everything is."""
    console.print()
    if report.verified:
        sent = sum(part.tokens_sent for part in report.parts)
        without = sum(part.tokens_sent_without for part in report.parts)
        saved = f", with {sent:,} tokens sent instead of {without:,}" if sent < without else ""
        console.print(Text(f"Answered from the data{saved}.", "bold green"))
    else:
        console.print(Text("Not answered from the data: see what was checked, above.", "bold red"))
    if any(part.outcome == "offloaded" for part in report.parts):
        console.print(Text(f"What was stored stays until you delete it: {printable(report.storage)}"), soft_wrap=True)
    else:
        console.print(Text("Nothing was stored."))


def working(console: Console, what: str) -> AbstractContextManager[object]:
    """Return a context that shows on a terminal that work is going on; it writes nothing to a file or a pipe."""
    return console.status(what) if console.is_terminal else nullcontext()


def _rows(*rows: tuple[str, str | Text]) -> Table:
    table = Table.grid(padding=(0, 0))
    table.add_column(style="cyan", width=_LABEL_COLUMNS)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, value if isinstance(value, Text) else Text(printable(value)))
    return table


def _returned(part: PartReport) -> str:
    estimated = "; the placeholder shows an estimate" if part.outcome == "offloaded" else ""
    return f"{part.bytes:,} bytes, {part.tokens:,} tokens, counted{estimated} ({part.tool})"


def _shown(part: PartReport) -> str:
    if not part.shown:
        return "the model did not call the tool"
    return f"{part.shown_tokens:,} tokens{_OUTCOMES[part.outcome]}"


def _preview(shown: str) -> Panel:
    lines = printable(shown).rstrip("\n").split("\n")
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out > 1:
        mark = f"      ⋮ {left_out} more lines in the conversation"
        lines = [*lines[:_HEAD_LINES], mark, *lines[-_TAIL_LINES:]]
    text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
    return Panel(text, box=ROUNDED, border_style="dim")


def _retrievals(retrievals: tuple[Retrieval, ...]) -> list[tuple[str, str | Text]]:
    return [
        (f"Retrieval {number}", f"{_arguments(retrieval)} -> {retrieval.tokens:,} tokens")
        for number, retrieval in enumerate(retrievals, start=1)
    ]


def _arguments(retrieval: Retrieval) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in retrieval.arguments.items())


def _checked(part: PartReport) -> Text:
    if not part.answer_in_data:
        return Text("WRONG: this is not what the data says", "bold red")
    if part.stored_exactly is None:
        return Text("right: the data says so", "green")
    if not part.stored_exactly:
        return Text("WRONG: the stored file is not what the tool returned", "bold red")
    return Text("right: the data says so; the stored file equals it byte for byte", "green")


def _costs(part: PartReport) -> tuple[tuple[str, str], ...]:
    sent = f"{part.tokens_sent:,} in {part.model_calls} model calls, with the retrieval tool's definition"
    if part.path is None:
        return ("Tokens sent", sent), ("Saved", "nothing: the result was not offloaded")
    share = part.tokens_saved / part.tokens_sent_without
    return (
        (
            "Tokens sent",
            f"{sent}, instead of at least {part.tokens_sent_without:,} ({share:.1%} less)",
        ),
        ("Saved", f"{part.tokens - part.shown_tokens:,} tokens in each call that carries the result"),
    )


def _time(part: PartReport) -> str:
    return (
        f"{part.seconds:.2f} s in all, offloading {part.offload_seconds:.2f} s,"
        f" reading back {part.retrieval_seconds:.2f} s"
    )
