"""Writes everything that is generated from the code: run ``python -m tests.docs.rewrite``, then look at the diff.

Run it after you intentionally change a word that the model reads, a docstring, a command, a constant that a page names
or a scenario of the contract. It writes the conversation that all frameworks are compared with. In the pages it writes
the shown blocks, the numbers, the API tables, the commands and the table of the contract. It needs every extra.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.contract import golden, table
from tests.contract.definition import tokens_on_the_wire
from tests.contract.strands_harness import StrandsHarness
from tests.docs import api, command_line, figures
from tests.docs.pages import PAGES, blocks_of, shown
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def rewrite(page: Path) -> None:
    """Run the code that a page's shown blocks need, and write the results into the blocks."""
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    blocks = blocks_of(page)
    needed = {block.part for block in blocks if block.kind == "shown"}
    names: dict[str, Any] = {"__name__": "__main__"}
    written: list[tuple[int, int, str]] = []
    for block in blocks if needed else ():
        if block.kind == "python" and block.part in needed:
            exec(compile(block.text, str(page), "exec", dont_inherit=True), names)  # noqa: S102 - our own pages
        elif block.kind == "shown":
            end = block.line + len(block.text.splitlines())
            written.append((block.line, end, shown(names[block.name])))
    for start, end, text in reversed(written):
        lines[start:end] = [text]
    page.write_text("".join(lines), encoding="utf-8")


def demo(folder: str) -> dict[str, Any]:
    """Return the report of ``coatcheck demo`` on its own data."""
    command = [sys.executable, "-m", "coatcheck.cli", "demo", "--json", "--storage", folder]
    said: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return said


def change(page: Path, made: Callable[[str], str]) -> None:
    """Replace a page by the result of calling ``made`` with it."""
    page.write_text(made(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        golden.FILE.write_text(golden.text(), encoding="utf-8")
        table.PAGE.write_text(table.page(), encoding="utf-8")
        for each in PAGES:
            rewrite(each)
        for each in api.PAGES:
            change(each, api.with_tables)
        change(command_line.PAGE, command_line.with_commands)
        measured = (*figures.of_strands(tokens_on_the_wire(StrandsHarness)), *figures.of_demo(demo(folder)))
        for name, sentence in (*figures.FIGURES, *measured):
            change(ROOT / name, partial(figures.with_figure, sentence=sentence))
        change(ROOT / "README.md", lambda readme: figures.with_figure(readme, figures.shown_placeholder(readme)))
