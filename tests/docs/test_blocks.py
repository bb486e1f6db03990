"""No code block of a page goes unchecked: each is run, compared, parsed or looked up, or the page is an error."""

from __future__ import annotations

import ast
import builtins
from symtable import SymbolTable, symtable
from typing import TYPE_CHECKING

import pytest
import tomli

from tests.docs.pages import CORE, PAGES, Unknown, blocks_in, blocks_of
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIN_BLOCKS = 40
"""Fewer blocks than this mean that the parser is broken."""

CAPABILITIES = {
    "DeletesContract",
    "DeletesManyContract",
    "ListsContract",
    "ListsPagesContract",
    "ReadsRangesContract",
    "SweepsContract",
}

STEP_BY_STEP = {"model"}
"""Pages that are read from top to bottom, where a block may build on any block above it."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_is_known(page: Path) -> None:
    blocks_of(page)


def test_there_are_blocks() -> None:
    assert sum(len(blocks_of(page)) for page in PAGES) >= MIN_BLOCKS


def test_every_part_has_a_session_that_runs_pages() -> None:
    parts = {block.part for page in PAGES for block in blocks_of(page)}
    tested = {path.name for kind in ("adapters", "storage") for path in (ROOT / "tests" / kind).iterdir()}
    groups = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    without_adapter = {name.removeprefix("docs-") for name in groups if name.startswith("docs-")}
    jobs = {
        node.name: ast.unparse(node)
        for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }

    assert {part.replace("-", "_") for part in parts} <= {CORE, *tested, *without_adapter}
    assert "tests/docs" in jobs["core"]
    assert all("EXTRAS_PAGES" in jobs[session] for session in ("adapter", "page", "storage"))


@pytest.mark.parametrize(
    ("markdown", "complaint"),
    [
        ("```text\nanything\n```", "nothing runs or compares a block of text"),
        ("```bash\nls\n```", "nothing runs or compares a block of bash"),
        ("```\nls\n```", "nothing runs or compares a block of no language"),
        ("- a list\n\n  ```yaml\n  a: 1\n  ```", "nothing runs or compares a block of yaml"),
        ("```python\nimport numpy\n```", "no session is known to have numpy"),
        ("```python\nimport strands\nimport haystack\n```", "no session has haystack and strands"),
        ("```python\nno Python\n```", "invalid syntax"),
        ("<!--- run this\nx = 1\n-->", "steers nothing"),
        ("<!--- needs strands -->\n\nSome words.", "none follows"),
        ("<!--- needs strands -->", "none follows"),
        ("<!--- needs strands -->\n\n<!--- python\nx = 1\n-->", "none follows"),
        ("<!--- needs strands -->\n\n    pip install nox", "only Python needs an extra"),
    ],
)
def test_an_unknown_block_is_an_error(markdown: str, complaint: str) -> None:
    with pytest.raises(Unknown, match=complaint) as raised:
        list(blocks_in(f"# Title\n\n{markdown}\n", "page.md"))

    assert str(raised.value).startswith("page.md:")


def test_a_block_knows_where_it_is_and_what_it_needs() -> None:
    python, shown = "```python\nimport strands\n```", "<!--- shows: x in haystack -->\n\n```text\nshown\n```"
    markdown = f"# Title\n\n{python}\n\n{shown}\n\n    nox -l\n"

    found = [(block.kind, block.line, block.part) for block in blocks_in(markdown, "page.md")]

    assert found == [("python", 3, "strands"), ("shown", 9, "haystack"), ("shell", 12, "core")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_copied_block_needs_no_other_block_except_the_first_of_its_page(page: Path) -> None:
    shown = [block.text for block in blocks_of(page) if block.kind == "python" and not block.is_hidden]
    first = left_by(shown[0]) if shown else set()

    missing = {name for number, code in enumerate(shown) for name in needed_by(code) - (first if number else set())}

    assert page.stem in STEP_BY_STEP or missing == set()


@pytest.mark.parametrize(
    ("code", "needed", "left"),
    [
        ("import strands\nagent = strands.Agent(model)", {"model"}, {"strands", "agent"}),
        ("def read_log(n: int) -> str:\n    return str(n) + ending", {"ending"}, {"read_log"}),
        ("print([n for n in found])", {"found"}, set()),
        ("class Mine(Base):\n    kept = 1\n    def load(self): return self.kept", {"Base"}, {"Mine"}),
    ],
)
def test_the_names_that_code_needs_and_leaves_are_found(code: str, needed: set[str], left: set[str]) -> None:
    assert needed_by(code) == needed
    assert left_by(code) >= left  # Python 3.12 and newer add the variables of comprehensions


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_shown_storage_test_includes_the_base_contract(page: Path) -> None:
    """Readers copy it, and a storage that loses content would pass the contracts of capabilities alone."""
    shown = [ast.parse(block.text) for block in blocks_of(page) if block.kind == "python" and not block.is_hidden]
    tests = [
        {ast.unparse(base) for base in node.bases}
        for tree in shown
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]

    assert [bases for bases in tests if bases & CAPABILITIES and "StorageContract" not in bases] == []


def left_by(code: str) -> set[str]:
    """Return the names that code defines in its module."""
    symbols = symtable(code, "page", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def needed_by(code: str) -> set[str]:
    """Return the names that code uses but that neither it nor Python defines."""
    module = symtable(code, "page", "exec")
    used = {
        symbol.get_name()
        for table in tables_in(module)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or table is module)
    }
    return used - left_by(code) - set(dir(builtins))


def tables_in(table: SymbolTable) -> Iterator[SymbolTable]:
    """Yield a table and all tables nested in it."""
    yield table
    for inner in table.get_children():
        yield from tables_in(inner)
