"""Write into the pages what their code makes now: ``python -m tests.docs.rewrite``, then look at the difference.

For whoever changed, on purpose, a word that the model reads, a docstring or a command. It writes shown blocks, the
tables of the API pages and the commands of docs/command-line.md. It needs every extra.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

from tests.docs import api, command_line
from tests.docs.pages import PAGES, blocks_of, shown

if TYPE_CHECKING:
    from pathlib import Path


def rewrite(page: Path) -> None:
    """Run a page as far as what it shows needs, and put in what came of it."""
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for each in PAGES:
            rewrite(each)
        for each in api.PAGES:
            each.write_text(api.with_tables(each.read_text(encoding="utf-8")), encoding="utf-8")
        page = command_line.PAGE
        page.write_text(command_line.with_commands(page.read_text(encoding="utf-8")), encoding="utf-8")
