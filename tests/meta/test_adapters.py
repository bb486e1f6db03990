"""Adapters stay two conversions and one hook: they are short, and no function is written twice."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from benchmarks.alike import code_lines, find_alike, functions_in
from benchmarks.hops import hook_lines
from tests.meta.source_tree import ROOT, adapter_packages

if TYPE_CHECKING:
    from pathlib import Path

MAX_LINES = 250
"""The most lines of code, not counting blank lines, comments and docstrings."""

MIN_FUNCTIONS = 150
"""Fewer functions than this mean that the walk is broken."""

SUM = """
def add_up(numbers, least):
    total = 0
    for number in numbers:
        if number > least:
            total += number
    if not total:
        raise ValueError(numbers, least)
    return total
"""
PRODUCT = """
def multiply(factors, limit):
    '''Return the product.'''
    product = 1
    for factor in factors:
        if factor > limit:
            product += factor
    if not product:
        raise TypeError(limit, factors)
    return product
"""
LONGEST = """
def longest(words, least):
    found = [word for word in words if len(word) > least]
    shown = {word: len(word) for word in sorted(found, key=len, reverse=True)}
    return max(found, key=shown.get, default=None)
"""


def written(folder: Path, *functions: str) -> Path:
    for number, function in enumerate(functions):
        (folder / f"module_{number}.py").write_text(textwrap.dedent(function), encoding="utf-8")
    return folder


def test_no_function_of_an_adapter_is_written_twice() -> None:
    functions = functions_in(ROOT / "adapters")

    assert len(functions) >= MIN_FUNCTIONS
    assert not [str(pair) for pair in find_alike(functions)], (
        "move what adapters have in common into coatcheck.adapting"
    )


@pytest.mark.parametrize("package", adapter_packages())
def test_the_conversions_and_the_hook_are_short(package: str) -> None:
    assert 0 < hook_lines()[package] <= MAX_LINES


APART = {"coatcheck_mcp"}
"""Adapters whose framework cannot be installed with the others, so their types are checked elsewhere."""


@pytest.mark.parametrize("package", sorted({*adapter_packages()} - APART))
def test_a_type_checker_checks_how_users_configure_each_adapter(package: str) -> None:
    path = "tests/typing/adapters.py"

    assert f"from {package} import " in (ROOT / path).read_text(encoding="utf-8"), path


@pytest.mark.parametrize("package", sorted({*adapter_packages()} - {"coatcheck_claude"}))  # no agent of ours runs it
def test_every_adapter_runs_through_the_contract(package: str) -> None:
    harnesses = [path for path in (ROOT / "tests/contract").glob("*_harness.py") if package in path.read_text("utf-8")]

    assert harnesses, f"no tests/contract/*_harness.py imports {package}"
    for harness in harnesses:
        assert harness.with_name(f"test_{harness.stem.removesuffix('_harness')}.py").is_file()


@pytest.mark.parametrize("path", sorted((ROOT / "tests/contract").glob("test_*.py")), ids=lambda path: path.stem)
def test_every_contract_plays_the_golden_conversation(path: Path) -> None:
    assert "from tests.contract.golden import Contract" in path.read_text(encoding="utf-8")


FRAMEWORK_PAGES = {
    package: [
        path.name for path in sorted((ROOT / "docs/frameworks").glob("*.md")) if package in path.read_text("utf-8")
    ]
    for package in adapter_packages()
}
NAMING_ALL = {
    "README.md": "\n## ",
    "docs/api/adapters.md": "\n## ",
    "docs/comparison.md": None,
    "docs/contract.md": None,
    "docs/guarantees.md": None,
    "docs/never-run.md": None,
    "docs/observability.md": None,
    "docs/storages.md": None,
    "src/coatcheck/adapting/compaction.py": None,
    "src/coatcheck/scopes.py": None,
}
"""Files that name every framework, and the string that ends the part that names them; None if it is the whole file."""


def page_of(package: str) -> str:
    pages = FRAMEWORK_PAGES[package]
    assert len(pages) == 1, f"one page in docs/frameworks/ has to be about {package}, not {pages}"
    return pages[0]


OF_CLIENTS = {"coatcheck_claude", "coatcheck_mcp"}
"""Adapters for programs and protocols, which have other pages."""


@pytest.mark.parametrize("package", sorted(FRAMEWORK_PAGES.keys() - OF_CLIENTS))
def test_every_list_of_frameworks_links_to_the_pages_of_each_adapter(package: str) -> None:
    page = page_of(package)
    listed = {
        list_: [f"{folder}/{page}" for folder in folders if f"{folder}/{page}" not in (ROOT / list_).read_text("utf-8")]
        for list_, folders in {
            "README.md": ("docs/quickstart", "docs/frameworks"),
            "docs/index.md": ("quickstart", "frameworks"),
            "mkdocs.yml": ("quickstart", "frameworks"),
        }.items()
    }

    assert not any(listed.values()), listed
    assert package in (ROOT / "docs/quickstart" / page).read_text("utf-8")
    assert any(package in path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")), "examples/"


@pytest.mark.parametrize("page", NAMING_ALL)
@pytest.mark.parametrize("package", sorted(FRAMEWORK_PAGES.keys() - OF_CLIENTS))
def test_a_file_about_all_frameworks_names_the_framework_of_each_adapter(package: str, page: str) -> None:
    title = (ROOT / "docs/frameworks" / page_of(package)).read_text("utf-8").partition("\n")[0].removeprefix("# ")

    words = (ROOT / page).read_text("utf-8").split(NAMING_ALL[page] or "\0")[0].replace('"', " ").split()

    assert any(name in " ".join(words) for name in title.split(" and ")), f"{page} does not name {title}"


TESTS_OF_ALL = {f"test_{of}.py" for of in ("convert", "costs", "formats", "front_door", "last_resort", "mcp", "scopes")}
ELSEWHERE = {
    "coatcheck_haystack": {"test_convert.py", "test_costs.py", "test_mcp.py"},
    "coatcheck_langchain": {"test_costs.py"},
    "coatcheck_strands": {"test_costs.py"},
}
"""The shared tests that the first three adapters lack: ``nox -s bench`` has their costs, the contract has Haystack's
conversions. No test runs Haystack's tools of MCP servers."""


@pytest.mark.parametrize("package", sorted(FRAMEWORK_PAGES.keys() - OF_CLIENTS))
def test_every_adapter_has_the_tests_that_all_adapters_share(package: str) -> None:
    found = {path.name for path in (ROOT / "tests/adapters").glob("*/test_*.py") if package in path.read_text("utf-8")}

    missing = TESTS_OF_ALL - found - ELSEWHERE.get(package, set())
    assert not missing, f"{missing} in the folder of {package} below tests/adapters"


def test_functions_are_alike_whatever_their_names_and_constants(tmp_path: Path) -> None:
    (pair,) = find_alike(functions_in(written(tmp_path, SUM, PRODUCT, LONGEST)))

    assert pair.share == 1
    assert {pair.first.name, pair.second.name} == {"module_0.py:2:add_up", "module_1.py:2:multiply"}


def test_a_function_and_its_async_twin_are_not_alike(tmp_path: Path) -> None:
    assert not find_alike(functions_in(written(tmp_path, SUM, SUM.replace("def ", "async def "))))


def test_blank_lines_comments_and_docstrings_are_not_code(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""What it is\n\nfor."""\n\n# Why.\nlimit = 5  # a number\n"""Of lines."""\n', encoding="utf-8")

    assert code_lines(path) == 1
