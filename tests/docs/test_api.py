"""The API pages list, in tables, the names of their sections and what the source says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck import TextBlock
from tests.docs.api import PAGES, with_tables

if TYPE_CHECKING:
    from pathlib import Path

SECTION = "## Blocks\n\nSome words.\n\n{}::: coatcheck.core.blocks.TextBlock\n    options:\n      members: false\n"
TABLE = f"| name | what it is |\n|---|---|\n| `TextBlock` | {str(TextBlock.__doc__).splitlines()[0]} |\n\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_say_what_the_source_says(page: Path) -> None:
    markdown = page.read_text(encoding="utf-8")

    assert "| name | what it is |" in markdown
    assert markdown == with_tables(markdown), "python -m tests.docs.rewrite"


@pytest.mark.parametrize("table", ["", TABLE, TABLE.replace("Text ", "Old ")], ids=["none", "right", "wrong"])
def test_a_section_gets_its_table(table: str) -> None:
    assert with_tables(SECTION.format(table)) == SECTION.format(TABLE)
