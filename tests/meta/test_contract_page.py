"""The page of the contract says what the contract is."""

from __future__ import annotations

from tests.contract.table import page
from tests.meta.source_tree import ROOT


def test_the_page_is_made_of_the_scenarios_and_the_tables() -> None:
    written = (ROOT / "docs/contract.md").read_text(encoding="utf-8")

    assert written == page(), "python -m tests.contract.table > docs/contract.md"
