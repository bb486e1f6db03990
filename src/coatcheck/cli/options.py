"""Options shared by several commands, each described once, and how help shows arguments.

Only what users type belongs here; what it does is in the commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from coatcheck.cli.failure import CannotRun
from coatcheck.cli.location import STORAGE_VARIABLE
from coatcheck.scopes import DEFAULT_SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coatcheck.core.references import Scope

__all__ = (
    "SCOPE_VARIABLE",
    "AsJson",
    "PlainCommand",
    "ReferenceArgument",
    "ScopeOption",
    "StorageOption",
    "make_plain",
    "refuse_empty",
    "scope_of",
)

SCOPE_VARIABLE = "COATCHECK_SCOPE"

StorageOption = Annotated[
    str, typer.Option(envvar=STORAGE_VARIABLE, metavar="PATH|URL", help="A folder, s3://bucket/prefix, or gs://...")
]
ScopeOption = Annotated[
    list[str] | None,
    typer.Option(
        envvar=SCOPE_VARIABLE,
        metavar="SCOPE",
        show_default=DEFAULT_SCOPE,
        help="The scope, such as a thread_id; once for each part of a tuple.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")]
ReferenceArgument = Annotated[str, typer.Argument(metavar="REF", help="The reference, as the placeholder shows it.")]


def scope_of(given: Sequence[str] | None) -> Scope:
    """Return the scope that ``--scope`` names: a ``str`` if given once, a tuple of its parts if given several times."""
    if not given:
        return DEFAULT_SCOPE
    return given[0] if len(given) == 1 else tuple(given)


def refuse_empty(**options: str | Sequence[str] | None) -> None:
    """Refuse an option that is given without a value, for example because a shell variable is not set.

    Raises:
        CannotRun: an option is empty.

    """
    for name, value in options.items():
        if not all([value] if isinstance(value, str) else value or ()):
            msg = f"--{name} is empty; give it a value, or leave it out"
            raise CannotRun(msg)


class PlainCommand(TyperCommand):
    """A command with help for people who do not know Python."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of typer
        """Make typer's parameters plain."""
        super().__init__(*args, **kwargs)
        make_plain(self.params)


def make_plain(parameters: Iterable[Any]) -> None:
    """Make typer's parameters plain in help, and let each take its whole environment variable as one value."""
    for each in parameters:
        each.__class__ = _Argument if isinstance(each, TyperArgument) else _Option


class _Argument(TyperArgument):
    """An argument without its Python type, and without braces in the usage line."""

    def display_type(self, ctx: Any) -> str:  # noqa: ANN401, ARG002 - as typer calls it
        return ""

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - as typer calls it
        return [] if self.hidden else [f"{self.metavar}{'' if self.nargs == 1 else '...'}"]


class _Option(TyperOption):
    """An option that takes its whole environment variable as one value, including spaces."""

    def value_from_envvar(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer calls it
        """Return the variable's value; as the only value of an option that may be given several times."""
        value = self.resolve_envvar_value(ctx)
        return [value] if self.multiple and value is not None else value
