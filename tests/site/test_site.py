"""The site that `nox -s docs` built is complete, and loads nothing from other servers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import coatcheck
import coatcheck.storage
import coatcheck.testing
from coatcheck.cli.app import app

SITE = Path(__file__).parents[2] / "build/site"
MIN_PAGES = 20
"""Fewer pages than this mean that the site was not built."""

PAGES = sorted(SITE.rglob("*.html"))
LOADING = {"audio", "embed", "iframe", "img", "link", "object", "script", "source", "track", "use", "video"}
"""Elements that make a browser fetch their address."""

ELSEWHERE = re.compile(r"\s*(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?\s*(?:[a-z]+:)?//""", re.IGNORECASE)


class Reader(HTMLParser):
    """Collects what a page loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag in LOADING and given.get("rel") != "canonical":  # canonical is the page itself, never fetched
            self.loaded += [given[name] for name in ("src", "srcset", "href", "data") if name in given]


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def test_the_site_was_built() -> None:
    assert len(PAGES) >= MIN_PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
def test_a_page_loads_nothing_from_elsewhere(page: Path) -> None:
    loaded = read(page).loaded

    assert loaded
    assert [address for address in loaded if ELSEWHERE.match(address)] == []
    assert IN_STYLES.search(page.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize("path", [*SITE.rglob("*.css"), *SITE.rglob("*.svg")], ids=lambda path: path.name)
def test_styles_and_pictures_load_nothing_from_elsewhere(path: Path) -> None:
    assert IN_STYLES.search(path.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    "package", [coatcheck, coatcheck.storage, coatcheck.testing], ids=lambda package: package.__name__
)
def test_every_public_name_is_in_the_reference(package: object) -> None:
    anchors = {anchor.rpartition(".")[2] for page in SITE.glob("api/*.html") for anchor in read(page).anchors}
    names = getattr(package, "__all__")  # noqa: B009 - packages have it, but their type does not declare it

    assert set(names) - anchors == {"__version__"} & set(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(SITE).as_posix())
def test_a_page_does_not_let_the_theme_ask_github(page: Path) -> None:
    html = page.read_text(encoding="utf-8")

    assert 'class="md-source"' in html
    assert 'data-md-component="source"' not in html, "the theme's script fetches what GitHub counts of that repository"


def test_every_command_is_documented() -> None:
    page = (SITE / "command-line.html").read_text(encoding="utf-8")
    names = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]

    assert names
    assert [name for name in names if f"coatcheck {name}</code>" not in page] == []


def test_hidden_comments_are_not_on_the_site() -> None:
    assert not [page for page in PAGES if "<!---" in page.read_text(encoding="utf-8")]
