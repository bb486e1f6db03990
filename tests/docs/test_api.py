"""The tables on the API pages list the names of their sections with the first sentences from the source."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from coatcheck import TextBlock
from tests.docs.api import PAGES, with_tables
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECTION = "## Blocks\n\nSome words.\n\n{}::: coatcheck.core.blocks.TextBlock\n    options:\n      members: false\n"
TABLE = f"| name | what it is |\n|---|---|\n| `TextBlock` | {str(TextBlock.__doc__).splitlines()[0]} |\n\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_match_the_docstrings(page: Path) -> None:
    markdown = page.read_text(encoding="utf-8")

    assert "| name | what it is |" in markdown
    assert markdown == with_tables(markdown), "python -m tests.docs.rewrite"


@pytest.mark.parametrize("package", sorted(path.parent.name for path in ROOT.glob("adapters/coatcheck_*/__init__.py")))
def test_every_public_name_of_an_adapter_is_on_the_page(package: str) -> None:
    page = (ROOT / "docs/api/adapters.md").read_text(encoding="utf-8")

    listed = re.findall(rf"^::: {package}\.(?:\w+\.)*(\w+)$", page, re.MULTILINE)

    assert sorted(listed) == sorted(names_of(package)), "a ::: line for each in docs/api/adapters.md"


def names_of(package: str) -> Iterator[str]:
    """Yield a package's own exports without importing it, because its framework need not be installed."""
    source = (ROOT / "adapters" / package / "__init__.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(package):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("table", ["", TABLE, TABLE.replace("Text ", "Old ")], ids=["none", "right", "wrong"])
def test_a_section_gets_its_table(table: str) -> None:
    assert with_tables(SECTION.format(table)) == SECTION.format(TABLE)
