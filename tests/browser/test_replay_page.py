"""The page of ``coatcheck replay`` in a real browser: phone and desktop, light and dark, with no network.

``nox -s browser`` installs playwright and finds a Chromium, or says what to install. Without it these tests are
skipped, and say so.
"""

# ruff: noqa: ANN401 - the type checker runs without playwright

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.running import run
from tests.replay.samples import BIG, openai, saved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: nox -s browser")
CHROMIUM = os.environ.get("COATCHECK_BROWSER")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs COATCHECK_BROWSER, a Chromium: nox -s browser")

PHONE, DESKTOP = 390, 1_440
CHARTS = ("thresholds", "sizes", "tools", "conversations")
NAMES = [f"a_tool_with_quite_a_long_name_number_{number}" for number in range(20)]

PAINTED = """id => {
    const canvas = document.getElementById(id);
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const opaque = new Set(new Uint32Array(data.buffer).filter(pixel => pixel >>> 24 === 255));
    return [...opaque].map(pixel => `rgb(${pixel & 255}, ${(pixel >> 8) & 255}, ${(pixel >> 16) & 255})`);
}"""
"""Returns every opaque colour in a chart."""

COLOUR = """name => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    conversations = [openai(BIG[: 4_000 * number], name=name) for number, name in enumerate(NAMES, 1)]
    ran = run("replay", saved(folder / "a.json", conversations), "--html", folder / "page.html", "--price", "3")
    assert ran.exit_code == 0, ran.output
    return folder / "page.html"


class Visit:
    """One visit to the page, and everything that the page requested or wrote to the console."""

    def __init__(
        self, browser: Any, page_file: Path, *, width: int, scheme: str = "light", scripts: bool = True
    ) -> None:
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(page_file.as_uri())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_charts_are_drawn_in_the_colours_of_the_scheme_and_nothing_is_loaded(
    width: int, scheme: str, browser: Any, page_file: Path
) -> None:
    visit = Visit(browser, page_file, width=width, scheme=scheme)

    assert visit.asked == [page_file.as_uri()]
    assert visit.said == []
    for chart in CHARTS:
        painted = visit.page.evaluate(PAINTED, chart)
        assert visit.page.evaluate(COLOUR, "without") in painted
        assert visit.page.evaluate(COLOUR, "with") in painted
    assert visit.page.evaluate(COLOUR, "best") in visit.page.evaluate(PAINTED, "thresholds")


@pytest.mark.parametrize("width", [320, PHONE, 768, DESKTOP, 2_560])
def test_nothing_overflows_at_the_sides(width: int, browser: Any, page_file: Path) -> None:
    page = Visit(browser, page_file, width=width).page

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.evaluate(
        "[...document.querySelectorAll('section, canvas')].map(e => e.getBoundingClientRect().toJSON())"
    ):
        assert box["left"] >= 0
        assert box["right"] <= width
        assert box["width"] >= 250


@pytest.mark.parametrize(("width", "columns"), [(PHONE, 1), (DESKTOP, 2)])
def test_charts_are_side_by_side_if_there_is_room(width: int, columns: int, browser: Any, page_file: Path) -> None:
    page = Visit(browser, page_file, width=width).page

    lefts = {page.locator(f"#{chart}").bounding_box()["x"] for chart in CHARTS}
    assert len({round(left / 100) for left in lefts}) == columns


def test_the_table_by_threshold_fits_a_phone(browser: Any, page_file: Path) -> None:
    page = Visit(browser, page_file, width=PHONE).page

    assert page.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.table'))")


def test_a_wide_table_scrolls_with_its_first_column_in_view(browser: Any, page_file: Path) -> None:
    page = Visit(browser, page_file, width=PHONE).page
    table = page.locator(".table").nth(2)
    name = table.locator("tbody th").first
    before = name.bounding_box()["x"]

    table.evaluate("e => e.scrollBy(300, 0)")

    assert table.evaluate("e => e.scrollLeft") > 0
    assert name.bounding_box()["x"] == pytest.approx(before, abs=1)


def test_charts_follow_when_the_scheme_changes(browser: Any, page_file: Path) -> None:
    page = Visit(browser, page_file, width=PHONE).page
    light = page.evaluate(PAINTED, "tools")

    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => ({PAINTED})('tools').includes(({COLOUR})('with'))")  # or fails after 30 s

    assert page.evaluate(COLOUR, "with") not in light


def test_the_tables_are_complete_without_scripts(browser: Any, page_file: Path) -> None:
    page = Visit(browser, page_file, width=PHONE, scripts=False).page

    assert "saves most" in page.locator(".result").inner_text()
    assert page.locator("tbody tr").count() > 3 * len(NAMES)
