"""The page of ``coatcheck replay``: it is self-contained, loads nothing, and runs nothing from a recording as code."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck.replay.wording import share_text
from tests.cli.running import run
from tests.replay.samples import BIG, openai, saved

if TYPE_CHECKING:
    from pathlib import Path

CHART_JS_SHA256 = "87364cc2b2a76a6684929e7d6b80b18a897794db38400caff1fcf1791c6925d2"
"""The hash of ``dist/chart.umd.min.js`` in version 4.6.1, as published on npm."""

EMPTY_PAGE_BYTES = 240_000
"""The largest size of a page with little content. Chart.js takes 210,082 of it."""

HOSTILE = "</script><script>alert(1)</script><b>&{{script}}\ud800"


def page_of(path: Path, messages: list[Any], *arguments: str) -> str:
    ran = run("replay", saved(path / "a.json", messages), "--html", path / "page.html", *arguments)
    assert ran.exit_code == 0, ran.output
    return (path / "page.html").read_text(encoding="utf-8")


def charts_of(page: str) -> dict[str, dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return {chart["id"]: chart for chart in json.loads(found[1])}


@pytest.fixture
def page(tmp_path: Path) -> str:
    return page_of(tmp_path, openai(BIG), "--price", "3")


def test_chart_js_is_the_published_file() -> None:
    packed = (files("coatcheck.replay") / "assets/chart.umd.min.js.gz").read_bytes()

    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == CHART_JS_SHA256


def test_the_page_includes_chart_js_with_its_licence_and_no_other_address(page: str) -> None:
    assert "Chart.js v4.6.1" in page
    assert "Permission is hereby granted" in page
    # The library itself contains these: addresses in two notices.
    held = set(re.findall(r"https?://[^\s\"'`)]+", page))
    assert held <= {"https://www.chartjs.org", "https://github.com/kurkle/color#readme"}
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"(?!data:)", page)
    assert "default-src 'none'" in page


def test_a_page_is_little_larger_than_its_library(page: str) -> None:
    assert len(page.encode()) < EMPTY_PAGE_BYTES


def test_tables_and_charts_show_the_numbers_of_the_report(page: str, tmp_path: Path) -> None:
    report = json.loads(run("replay", tmp_path / "a.json", "--json", "--price", "3").stdout)
    total, charts = report["total"], charts_of(page)

    billed = [total["without"]["tokens"], *(one["tokens"] for one in total["thresholds"])]
    assert charts["thresholds"]["series"][0]["values"] == billed
    assert (
        charts["thresholds"]["series"][0]["colours"][
            1 + [one["threshold"] for one in total["thresholds"]].index(total["best_threshold"])
        ]
        == "best"
    )
    assert charts["tools"]["labels"] == ["search"]
    assert charts["tools"]["series"][0]["values"] == [report["tools"][0]["without"]["tokens"]]
    assert charts["conversations"]["labels"] == ["a.json"]
    for number in (*billed, *(tool["without"]["tokens"] for tool in report["tools"])):
        assert f">{number:,}" in page
    assert (
        "If the model reads back what it later used and the preview lacks,"
        f" max_result_tokens={total['best_threshold']} with preview_tokens=250 saves most" in page
    )
    line = f"max_result_tokens={total['best_threshold']}, preview_tokens=250"
    assert f"<code>{line}</code>" in page
    assert f"by the size of a preview, above {total['best_threshold']:,} tokens</h2>" in page
    assert "in the unit of --price, which is " in page
    shares = [
        one[case] for one in total["thresholds"] for case in ("saved", "saved_if_never_read", "saved_if_each_read")
    ]
    for share in (*shares, *(one["saved"] for one in report["previews"])):
        assert all(f">{share_text(part)}<" in page for part in share.values())
    assert f">{total['without']['cost']:,.2f}<" in page
    for sentence in report["assumptions"]["not_known"]:
        assert sentence in page


@pytest.mark.parametrize(
    ("lengths", "shares"),
    [([1, 128, 129, 256], {0: 50.0, 1: 50.0}), ([257, 32_768, 32_769, 500_000], {2: 25.0, 8: 25.0, 9: 50.0})],
)
def test_results_are_counted_by_size(lengths: list[int], shares: dict[int, float], tmp_path: Path) -> None:
    messages = [message for length in lengths for message in openai(" a" * length)]

    chart = charts_of(page_of(tmp_path, messages))["sizes"]

    assert chart["labels"][0] == "≤ 128"
    assert chart["labels"][-2:] == ["≤ 32,768", "> 32,768"]
    assert {place: share for place, share in enumerate(chart["series"][0]["values"]) if share} == shares
    assert sum(chart["series"][1]["values"]) == pytest.approx(100, abs=0.1)


def test_a_recording_without_results_gets_a_page_too(tmp_path: Path) -> None:
    page = page_of(tmp_path, [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}])

    assert charts_of(page)["sizes"]["series"][0]["values"] == [0.0] * 10
    assert 'class="result none"' in page


def test_nothing_in_a_recording_becomes_markup_or_code_of_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, [{"id": HOSTILE, "messages": openai(BIG, name=HOSTILE)}])

    charts = charts_of(page)
    assert "<script>alert" not in page
    assert "<b>&" not in page
    assert charts["tools"]["labels"] == charts["conversations"]["labels"] == [HOSTILE]
    assert page.count('"use strict";') == page_of(tmp_path, openai(BIG)).count('"use strict";')
    assert "&lt;b&gt;&amp;{{script}}\ufffd" in page


def test_every_chart_has_a_canvas_and_a_description(page: str) -> None:
    for name in charts_of(page):
        assert re.search(rf'<canvas id="{name}" role="img" aria-label="[^"]+"></canvas>', page)
