"""The demo's screen: what it says in each case, within the width of the screen, in colour only if that is wanted."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Literal

import pytest
from rich.console import Console

from coatcheck.cli.demo_report import DemoReport, PartReport, Retrieval
from coatcheck.cli.demo_screen import show_end, show_part, working
from coatcheck.cli.printing import printable

PART = PartReport(
    title="Text",
    tool="read",
    question="Where?",
    answer="Here.",
    answer_in_data=True,
    stored_exactly=True,
    bytes=4_000_000,
    tokens=1_000_000,
    outcome="offloaded",
    shown="\n".join(f"line {number} {'of a preview ' * 20}" for number in range(50)),
    shown_tokens=1_000,
    retrievals=(Retrieval(arguments={"pattern": "x" * 200}, tokens=50),),
    model_calls=4,
    tokens_sent=4_000,
    tokens_sent_without=1_000_050,
    offload_seconds=0.1,
    retrieval_seconds=0.2,
    seconds=0.5,
    reference="read-0123456789abcdef-0123",
    path="/folder/v1/0123456789abcdef/0123456789abcdef.txt",
)


def screen(part: PartReport, *, width: int = 80, terminal: bool = False) -> str:
    file = io.StringIO()
    colours: Literal["standard"] | None = "standard" if terminal else None
    show_part(Console(file=file, width=width, highlight=False, force_terminal=terminal, color_system=colours), part)
    return file.getvalue()


def ending(*parts: PartReport) -> str:
    file = io.StringIO()
    show_end(Console(file=file, width=200), DemoReport(model="scripted", storage="/folder", parts=parts))
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_is_wider_than_the_screen(width: int) -> None:
    assert max(map(len, screen(PART, width=width).splitlines())) <= max(width, len(f"Stored file:  {PART.path}"))


def test_the_preview_is_shortened_and_says_so() -> None:
    shown = screen(PART)

    assert "line 0 " in shown
    assert "line 49 " in shown
    assert "39 more lines" in shown
    assert "line 20 " not in shown


def test_the_saving_is_shown_for_each_call_and_in_total() -> None:
    shown = screen(PART)

    sent = "4,000 in 4 model calls, with the retrieval tool's definition, instead of at least 1,000,050 (99.6% less)"
    assert sent in " ".join(shown.split())
    assert "999,000 tokens in each call" in shown


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (PART, "right: the data says so; the stored file equals it"),
        (replace(PART, answer_in_data=False), "WRONG: this is not what the data says"),
        (replace(PART, stored_exactly=False), "WRONG: the stored file is not what the tool returned"),
        (replace(PART, outcome="truncated", stored_exactly=None, path=None), "could not be stored"),
        (replace(PART, outcome="kept", stored_exactly=None, path=None), "right: the data says so"),
        (replace(PART, shown=""), "the model did not call the tool"),
    ],
)
def test_each_case_is_reported(part: PartReport, said: str) -> None:
    assert said in " ".join(screen(part).split())


def test_the_last_line_says_whether_every_answer_was_right() -> None:
    assert "Answered from the data, with 8,000 tokens sent instead of 2,000,100." in ending(PART, PART)
    assert "Not answered from the data" in ending(PART, replace(PART, stored_exactly=False))


def test_colour_is_used_only_at_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[36m" in screen(PART, terminal=True)

    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in screen(PART, terminal=True)
    assert "\x1b" not in screen(PART)


def test_the_progress_line_is_shown_only_at_terminals() -> None:
    file, terminal = io.StringIO(), io.StringIO()

    with (
        working(Console(file=file), "Working ..."),
        working(Console(file=terminal, force_terminal=True), "Working ..."),
    ):
        pass

    assert file.getvalue() == ""
    assert "Working" in terminal.getvalue()


def test_foreign_text_is_made_harmless() -> None:
    assert printable("a\x1b[31mb\tc\r\nd\u202ee") == "a·[31mb c\nd·e"
    assert "[bold]" in screen(replace(PART, answer="[bold]"))
