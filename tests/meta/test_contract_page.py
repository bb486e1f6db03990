"""The page about the contract is up to date."""

from __future__ import annotations

from tests.contract.table import PAGE, page


def test_the_page_matches_the_scenarios_and_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.docs.rewrite"
