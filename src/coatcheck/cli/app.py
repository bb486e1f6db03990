"""The commands of ``coatcheck``: their arguments, their help, their exit codes.

A command checks its arguments, calls the module that does the work, and hands what comes of it to ``screen``, or prints
it as JSON. Whatever is heavy is imported inside the command, so that ``--help`` is quick.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from coatcheck.cli.failure import CannotRun
from coatcheck.cli.screen import printable, show_end, show_part, show_start, working

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.cli.demo_report import DemoReport, PartReport

__all__ = ("app",)

DONE, NOT_AS_EXPECTED, COULD_NOT_RUN = 0, 1, 2
"""The exit codes of every command. Typer, too, ends with the last where arguments are wrong."""

_SCRIPTED = "scripted"

app = typer.Typer(
    name="coatcheck",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug shows Python's own traceback, without the values of variables
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 done but something is not as it should be, 2 could not run.",
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        typer.echo(f"coatcheck {metadata.version('coatcheck')}")
        raise typer.Exit(DONE)


@app.callback()
def coatcheck(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep big tool results out of an agent's context: saved whole, shown as a preview, read back on demand."""


@app.command(epilog="Exit codes: 0 answered from the data, 1 answered wrong, 2 could not run.")
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
        typer.Option(
            metavar="FOLDER", file_okay=False, help="Where to store; by default a new folder for temporary files."
        ),
    ] = None,
    max_result_tokens: Annotated[
        int,
        typer.Option(metavar="N", min=100, max=100_000, help="A tool result above N tokens leaves the conversation."),
    ] = 2_500,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A real model, such as openai:gpt-5-mini, with its key in the environment."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Run a real LangChain agent whose tool returns megabytes, and see it answer from them.

    No key, no server: a scripted model asks, reads back and answers. The answer is checked against the data.
    """
    console = Console(highlight=False, quiet=as_json)
    try:
        report = _run_demo(console, file, storage, max_result_tokens=max_result_tokens, model=model)
    except CannotRun as error:
        typer.echo(f"coatcheck: {printable(str(error))}", err=True)
        raise typer.Exit(COULD_NOT_RUN) from None
    if as_json:
        typer.echo(report.as_json())
    raise typer.Exit(DONE if report.verified else NOT_AS_EXPECTED)


def _run_demo(
    console: Console, file: Path | None, storage: Path | None, *, max_result_tokens: int, model: str | None
) -> DemoReport:
    """Run the demo, and show each part as soon as it is there.

    Raises:
        CannotRun: an extra, the data or the model is missing.

    """
    with working(console, "Loading LangChain ..."):
        try:
            from coatcheck.cli.demo import Demo  # noqa: PLC0415 - needs the extra langgraph, and seconds
        except ImportError as error:
            msg = f'the demo runs a LangChain agent ({error}): pip install "coatcheck[cli,langgraph]"'
            raise CannotRun(msg) from error
    from coatcheck.cli.demo_builtin import builtin_cases  # noqa: PLC0415 - only this command needs them
    from coatcheck.cli.demo_input import input_case  # noqa: PLC0415
    from coatcheck.cli.demo_report import DemoReport  # noqa: PLC0415

    cases = builtin_cases() if file is None else iter([input_case(file)])
    agent = Demo(storage, max_result_tokens=max_result_tokens, model=model)
    show_start(console, model or _SCRIPTED)
    parts = tuple(_shown_one_by_one(console, map(agent.run, cases)))
    report = DemoReport(model=model or _SCRIPTED, storage=str(agent.folder), parts=parts)
    show_end(console, report)
    return report


def _shown_one_by_one(console: Console, parts: Iterator[PartReport]) -> Iterator[PartReport]:
    while True:
        with working(console, "Running the agent ..."):
            part = next(parts, None)
        if part is None:
            return
        show_part(console, part)
        yield part
