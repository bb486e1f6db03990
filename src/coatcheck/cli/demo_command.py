"""``coatcheck demo``: its arguments, and how its report reaches the screen, part by part.

``demo`` and its neighbours run the demo, ``demo_screen`` prints it; both are loaded when the command runs.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import DONE, NOT_AS_EXPECTED, CannotRun, reported
from coatcheck.cli.options import AsJson  # noqa: TC001 - typer reads the annotations
from coatcheck.cli.printing import open_console, show_json
from coatcheck.core.errors import install_command
from coatcheck.core.settings import MAX_RESULT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from coatcheck.cli.demo_report import DemoReport, PartReport

__all__ = ("demo",)

_SCRIPTED = "scripted"


@reported
def demo(
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Your own file, text or JSON, as the tool's result.",
        ),
    ] = None,
    storage: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", file_okay=False, help="Where to store; by default a new temporary folder."),
    ] = None,
    max_result_tokens: Annotated[
        int,
        typer.Option(metavar="N", min=100, max=100_000, help="Offload tool results above N tokens."),
    ] = MAX_RESULT_TOKENS,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A real model, such as openai:gpt-5-mini, with its key in the environment."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """See a real agent answer from the megabytes that its tool returns.

    No key, no server: a scripted model asks, reads back and answers. The answer is checked against the data.
    """
    report = _run_demo(open_console(quiet=as_json), file, storage, max_result_tokens=max_result_tokens, model=model)
    if as_json:
        show_json(report.as_json())
    raise typer.Exit(DONE if report.verified else NOT_AS_EXPECTED)


def _run_demo(
    console: Console, file: Path | None, storage: Path | None, *, max_result_tokens: int, model: str | None
) -> DemoReport:
    """Run the demo, and show each part as soon as it is ready.

    Raises:
        CannotRun: an extra, the data or the model is missing.

    """
    from coatcheck.cli.demo_screen import show_end, show_start, working

    with working(console, "Loading LangChain ..."):
        try:
            from coatcheck.cli.demo import Demo  # needs the extra langgraph, and seconds
        except ImportError as error:
            msg = f"the demo runs a LangChain agent ({error}): {install_command('coatcheck[cli,langgraph]')}"
            raise CannotRun(msg) from error
    from coatcheck.cli.demo_builtin import builtin_cases  # only this command needs them
    from coatcheck.cli.demo_input import input_case
    from coatcheck.cli.demo_report import DemoReport

    cases = builtin_cases() if file is None else iter([input_case(file)])
    agent = Demo(storage, max_result_tokens=max_result_tokens, model=model)
    show_start(console, model or _SCRIPTED)
    parts = tuple(_shown_one_by_one(console, map(agent.run, cases)))
    report = DemoReport(model=model or _SCRIPTED, storage=str(agent.folder), parts=parts)
    show_end(console, report)
    if storage is None:
        with suppress(OSError):  # unless something was stored there
            agent.folder.rmdir()
    return report


def _shown_one_by_one(console: Console, parts: Iterator[PartReport]) -> Iterator[PartReport]:
    from coatcheck.cli.demo_screen import show_part, working

    while True:
        with working(console, "Running the agent ..."):
            part = next(parts, None)
        if part is None:
            return
        show_part(console, part)
        yield part
