"""The reference in docs/command-line.md: each command's ``--help``, as Markdown that also reads well as a file."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("PAGE", "with_commands")

PAGE: Path = ROOT / "docs/command-line.md"

_MARK = "<!-- commands -->\n"
_DESCRIBE = [sys.executable, "-m", "typer", "coatcheck.cli.app", "utils", "docs", "--name", "coatcheck"]
_USAGE = re.compile(r"\*\*Usage\*\*:\n\n```console\n\$ (.*)\n```")


def with_commands(markdown: str) -> str:
    """Return the page with everything below its mark regenerated. Needs the extra ``cli``."""
    above, mark, _ = markdown.partition(_MARK)
    made = subprocess.run(_DESCRIBE, check=True, capture_output=True, encoding="utf-8").stdout
    # A \b keeps lines apart in a terminal; some versions of Typer leave its line behind.
    _, first, commands = re.sub(r"\n{3,}", "\n\n", made.replace("\b", "")).partition("## ")
    # Usage is inline code: a code block would count as a command that readers can type.
    shown = _USAGE.sub(r"Usage: `\1`", f"{first}{commands}").replace("\n## ", "\n### ")
    return f"{above}{mark}\n#{re.sub(r' +$', '', shown, flags=re.MULTILINE).rstrip()}\n"
