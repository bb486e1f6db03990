"""README works wherever it is shown, such as on a package index: absolute links, true badges, few words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from tests.docs.pages import PAGES
from tests.meta.source_tree import ROOT, pyproject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from markdown_it.token import Token

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_WORDS = 1_300
MIN_LINKS = 20
CAVEAT = "not on the package index yet"
"""Without these words, a reader would install whatever somebody else registers under the name."""

PROJECT: Any = pyproject()["project"]
SOURCE = PROJECT["urls"]["Source"]
FILES = f"{SOURCE}/blob/main/"
RAW = f"{SOURCE.replace('github.com', 'raw.githubusercontent.com')}/main/"


def tokens(parsed: list[Token]) -> Iterator[Token]:
    for token in parsed:
        yield token
        yield from tokens(token.children or [])


def addresses(markdown: str) -> list[str]:
    found = [
        token.attrGet("href") or token.attrGet("src")
        for token in tokens(MarkdownIt("gfm-like", {"linkify": False}).parse(markdown))
    ]
    return [str(address) for address in found if address]


def slug(heading: str) -> str:
    """Return the anchor that GitHub and the site generate for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_every_link_is_absolute() -> None:
    found = addresses(README)

    assert len(found) >= MIN_LINKS
    assert [address for address in found if not address.startswith("https://")] == []


def test_links_into_the_repository_point_to_existing_files_and_headings() -> None:
    for address in addresses(README):
        if address.startswith((FILES, RAW)):
            name, _, anchor = unquote(address).removeprefix(FILES).removeprefix(RAW).partition("#")
            assert (ROOT / name).is_file(), address
            headings = re.findall(r"^#+ (.*)$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {"", *map(slug, headings)}, address


def test_the_list_of_all_pages_is_complete() -> None:
    listed = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    pages.remove("index.md")

    assert [page for page in pages if f"({page})" not in listed] == []


def test_the_project_has_one_address() -> None:
    assert set(re.findall(r"https://github\.com/[\w.-]+/[\w-]+", README)) == {SOURCE}
    assert all(url.startswith(SOURCE) for url in PROJECT["urls"].values())
    assert f"repo_url: {SOURCE}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_badges_are_true() -> None:
    pythons = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]

    assert f"python-{pythons[0]}_to_{pythons[-1]}-" in README
    assert f"licence-{PROJECT['license'].replace('-', '--')}-" in README
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert f"{SOURCE}/actions/workflows/ci.yml/badge.svg" in README


def test_the_readme_is_short() -> None:
    prose = re.sub(r"<!---.*?-->|^```.*?^```|^ {4}.*?$", "", README, flags=re.DOTALL | re.MULTILINE)

    assert len(prose.split()) <= MAX_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_says_that_there_is_no_release_before_it_shows_an_install_command(page: Path) -> None:
    markdown = page.read_text(encoding="utf-8")
    first = re.search(r"pip install [^\n`]*(?:coatcheck|/checkout)", markdown)

    assert first is None or CAVEAT in markdown[: first.start()]
