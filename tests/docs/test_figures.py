"""Limits and defaults on pages match the code: when a constant changes, its sentences must follow."""

from __future__ import annotations

import pytest

from tests.docs.figures import FIGURES, of_strands, shown_placeholder, with_figure
from tests.meta.source_tree import ROOT

AGAIN = "`python -m tests.docs.rewrite` writes numbers where a page has the words of the sentence"


@pytest.mark.parametrize(("page", "sentence"), FIGURES)
def test_a_limit_on_a_page_matches_the_code(page: str, sentence: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    assert sentence in " ".join(text.split()), f"{page} must say: {sentence}; {AGAIN}"
    assert with_figure(text, sentence) == text, f"{page} has the words of another figure, too: add words to {sentence}"


@pytest.mark.parametrize(("page", "sentence"), of_strands(7))
def test_a_page_has_the_sentence_about_what_strands_sends(page: str, sentence: str) -> None:
    assert sentence in with_figure(" ".join((ROOT / page).read_text(encoding="utf-8").split()), sentence)


def test_the_readme_counts_the_placeholder_that_it_shows() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert shown_placeholder(readme) in readme, AGAIN


@pytest.mark.parametrize("wrapped", ["up to {} of {}% in `at={}`, ever", "up\nto {}\n of {}% in\n`at={}`, ever"])
def test_a_sentence_gets_its_numbers_wherever_a_page_wraps_it(wrapped: str) -> None:
    page = f"Up to 10,000 of 5%. It is {wrapped}, and {wrapped}."
    sentence = "up to {} of {}% in `at={}`".format("2,000", 12, "1_024")

    for old in (("10,000", "5", "7_000"), ("9", "0.5", "7"), ("2,000", "12", "1_024")):
        written = with_figure(page.format(*old, *old), sentence)

        assert written == page.format(*("2,000", "12", "1_024") * 2)


def test_a_page_without_the_sentence_stays_as_it_is() -> None:
    assert with_figure("at most 7 lines, o200k", "at most 8 lines, o100k") == "at most 7 lines, o200k"
