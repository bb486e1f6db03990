"""What the tests of the command line share: running a command in this process, and small data in place of megabytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from coatcheck.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

LIBRARY = {
    "abc.py": "class Other:\n    pass\n",
    "json/decoder.py": '\n\n\nclass Wanted(ValueError):\n    """With:\n\n    msg: a text\n    pos: a place\n    """\n',
}


def run(*arguments: str | Path) -> Result:
    """Run ``coatcheck`` with these arguments, on a screen of 80 columns that is no terminal."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "80", "TERM": "dumb"})


def facts(*arguments: str | Path) -> dict[str, Any]:
    """Run ``coatcheck demo --json``, and return what it prints."""
    ran = run("demo", "--json", *arguments)
    assert ran.exit_code == 0, ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files with these names and texts, and return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
