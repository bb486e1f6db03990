"""The options that several commands have, each said once.

Only what users type belongs here; what becomes of it is in the commands.
"""

from __future__ import annotations

from typing import Annotated

import typer

from coatcheck.cli.location import STORAGE_VARIABLE

__all__ = ("SCOPE_VARIABLE", "AsJson", "ReferenceArgument", "ScopeOption", "StorageOption")

SCOPE_VARIABLE = "COATCHECK_SCOPE"

StorageOption = Annotated[
    str, typer.Option(envvar=STORAGE_VARIABLE, metavar="PATH|URL", help="A folder, s3://bucket/prefix, or gs://...")
]
ScopeOption = Annotated[
    str, typer.Option(envvar=SCOPE_VARIABLE, metavar="SCOPE", help="Whose content, such as a thread_id.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")]
ReferenceArgument = Annotated[str, typer.Argument(metavar="REF", help="The reference, as the placeholder shows it.")]
