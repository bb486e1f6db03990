"""The commands of ``coatcheck``, one line for each, and what they share.

What a command takes and does is in its own module. These modules are imported only for their arguments. The libraries
behind them are loaded when a command runs, so that ``--help`` is quick.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from coatcheck.cli.content_commands import cat, get, put, show_content
from coatcheck.cli.demo_command import demo
from coatcheck.cli.failure import DONE
from coatcheck.cli.hook_commands import hook
from coatcheck.cli.mcp_command import mcp
from coatcheck.cli.mcp_config_commands import register
from coatcheck.cli.options import PlainCommand
from coatcheck.cli.replay_command import replay
from coatcheck.cli.storage_commands import list_contents, remove, stats, sweep, verify

__all__ = ("app",)

_HELP = """\b
Keep big tool results out of an agent's context, and read them back.
Exit codes: 0 done, 1 not there or not as it should be, 2 could not run."""
"""The mark keeps the lines as they are: with empty lines between them, help would not fit a screen of 24 lines."""


class _Root(TyperGroup):
    """Hides ``--show-completion``, which still works: with its two lines, help would not fit a screen of 24 lines."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - as typer calls it
        params = super().get_params(ctx)
        for each in params:
            if isinstance(each, TyperOption) and each.name == "show_completion":
                each.hidden = True
        return params


app: typer.Typer = typer.Typer(
    name="coatcheck",
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug shows Python's own traceback, without the values of variables
    rich_markup_mode=None,  # panels take half a second and twice the lines, so help would not fit a screen
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        from importlib import metadata

        typer.echo(f"coatcheck {metadata.version('coatcheck')}")
        raise typer.Exit(DONE)


@app.callback(help=_HELP)
def coatcheck(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run the named command."""


_command = partial(app.command, cls=PlainCommand)
_command("put", epilog="Exit codes: 0 stored, 2 not stored, or stored and not shown.")(put)
_command("get", epilog="Exit codes: 0 answered, 1 no match or no such content, 2 could not run.")(get)
_command("cat", epilog="Exit codes: 0 written, 1 no such content, or damaged, 2 could not run.")(cat)
_command("show", epilog="Exit codes: 0 shown, 1 no such content, 2 could not run.")(show_content)
_command("ls", epilog="Exit codes: 0 listed, 2 could not run.")(list_contents)
_command("stats", epilog="Exit codes: 0 counted, 2 could not run.")(stats)
_command("verify", epilog="Exit codes: 0 no damage, 1 something is damaged or unreadable, 2 could not run.")(verify)
_command("sweep", epilog="Exit codes: 0 done, 2 could not run.")(sweep)
_command("rm", epilog="Exit codes: 0 deleted, 1 not confirmed or nothing there, 2 could not run.")(remove)
_command("replay", epilog="Exit codes: 0 replayed, 2 could not run.")(replay)
_command("demo", epilog="Exit codes: 0 answered from the data, 1 answered wrong, 2 could not run.")(demo)
register(mcp)
app.add_typer(mcp, name="mcp", short_help="Keep big results of any MCP server out of a client's context.")
app.add_typer(hook, name="hook", short_help="Do the same in Claude Code, after each of its tools.")
