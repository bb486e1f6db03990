"""No code block of a page goes unseen: each is run, compared or looked up somewhere, or the page is an error."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import CORE, PAGES, Unknown, blocks_in, blocks_of
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LEAST_BLOCKS = 40
"""So that a parser that finds nothing proves nothing."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_is_known(page: Path) -> None:
    blocks_of(page)


def test_there_are_blocks() -> None:
    assert sum(len(blocks_of(page)) for page in PAGES) >= LEAST_BLOCKS


def test_every_part_has_a_session_that_runs_pages() -> None:
    parts = {block.part for page in PAGES for block in blocks_of(page)}
    tested = {path.name for kind in ("adapters", "storage") for path in (ROOT / "tests" / kind).iterdir()}
    jobs = {
        node.name: ast.unparse(node)
        for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }

    assert parts <= {CORE, *tested}
    assert "tests/docs" in jobs["core"]
    assert all("EXTRAS_PAGES" in jobs[session] for session in ("adapter", "storage"))


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
def test_a_block_that_nothing_runs_is_an_error(markdown: str, complaint: str) -> None:
    with pytest.raises(Unknown, match=complaint) as raised:
        list(blocks_in(f"# Title\n\n{markdown}\n", "page.md"))

    assert str(raised.value).startswith("page.md:")


def test_a_block_knows_where_it_stands_and_what_it_needs() -> None:
    python, shown = "```python\nimport strands\n```", "<!--- shows: x in haystack -->\n\n```text\nshown\n```"
    markdown = f"# Title\n\n{python}\n\n{shown}\n\n    nox -l\n"

    found = [(block.kind, block.line, block.part) for block in blocks_in(markdown, "page.md")]

    assert found == [("python", 3, "strands"), ("shown", 9, "haystack"), ("shell", 12, "core")]
