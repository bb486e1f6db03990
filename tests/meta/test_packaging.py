"""The project's own conventions: folders, extras, reasons, commands and prose that must agree with each other."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.meta.source_tree import ROOT, SHARED_PACKAGES, Module, adapter_packages, modules, pyproject

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = 'pip install "nox[uv]" && nox -s tests'
"""The command that README.md gives to newcomers and that .ci/run runs."""

DEMO_COMMAND = 'pip install "nox[uv]" && nox -s demo'

MAX_TEST_LINES = 800
HEAD_LINES = 10
HEAD_CHARACTERS = 80
MIN_FILES = 20

# Each pattern has a character class of one character, so that this file does not match its own patterns.
UNWANTED = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:[r]oot|[w]ork|[h]ome/\w+|[U]sers/\w+)/"),
    "a note to self": re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX)\b"),
    "the address of a package index": re.compile(r"https?://\S*/[s]imple\b|[i]ndex-url"),
}

SOURCE = modules("src")
ADAPTERS = modules("adapters")
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
QUICK_STARTS = sorted((ROOT / "docs/quickstart").glob("*.md"))


def table(*keys: str) -> dict[str, object]:
    found: object = pyproject()
    for key in keys:
        assert isinstance(found, dict)
        found = found[key]
    assert isinstance(found, dict)
    return found


def repository_files() -> list[Path]:
    """Return every text file that is, or would be, under version control."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no git repository: this is an unpacked source distribution")
    listed = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file() and not name.endswith(".gz")]


EXTRA_OF = {"coatcheck_adk": "google_adk", "coatcheck_openai": "openai_agents"}
"""The extra, spelled as a Python package, of adapters that are not named after it."""


OF_THE_CORE = {"all", "cli", "otel"}
"""Extras that the tests of the core or the command line cover."""


def test_every_adapter_is_in_the_wheel() -> None:
    packages = table("tool", "hatch", "build", "targets", "wheel")["packages"]

    assert packages == [
        "src/coatcheck",
        *(f"adapters/{package}" for package in [*adapter_packages(), *SHARED_PACKAGES]),
    ], "`packages` in pyproject.toml, in the order of the alphabet"


def test_a_shared_package_holds_only_our_own_modules() -> None:
    for package in SHARED_PACKAGES:
        files = [path for path in (ROOT / "adapters" / package).rglob("*") if path.is_file() and path.suffix != ".pyc"]

        assert files
        assert all("coatcheck" in path.relative_to(ROOT / "adapters").parts for path in files)


def test_every_adapter_has_tests_and_every_adapter_test_folder_has_an_extra() -> None:
    extras = {extra.replace("-", "_") for extra in table("project", "optional-dependencies")}
    tested = {path.name for path in (ROOT / "tests/adapters").iterdir() if path.is_dir() and path.name != "__pycache__"}
    of_adapters = {EXTRA_OF.get(package, package.removeprefix("coatcheck_")) for package in adapter_packages()}

    assert not of_adapters - tested, "a folder below tests/adapters"
    assert not tested - extras, "an extra in pyproject.toml"


def test_every_extra_has_tests_of_its_own() -> None:
    extras = {extra.replace("-", "_") for extra in table("project", "optional-dependencies")} - OF_THE_CORE
    tested = {path.name for folder in ("adapters", "storage") for path in (ROOT / "tests" / folder).iterdir()}

    assert not extras - tested, "a folder below tests/adapters or tests/storage, or `nox -s tests` does not run them"


def test_the_extra_all_has_every_extra_but_those_that_install_apart() -> None:
    extras = table("project", "optional-dependencies")
    # FastMCP and Strands need different versions of the mcp package, and an environment has only one. The Claude Agent
    # SDK brings a program of 380 MB.
    apart = {"claude", "mcp"}
    others = ",".join(sorted(extras.keys() - {"all"} - apart))

    assert extras["all"] == [f"coatcheck[{others}]"], "`all` in pyproject.toml"


def test_every_dependency_has_a_reason() -> None:
    section = ""
    without: list[str] = []
    seen = 0
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        section = line if line.startswith("[") else section
        if re.match(r' +"[\w.-]+(\[[\w,-]+\])?[^"]*",', line) and re.match(r"\[(project|dependency-groups)", section):
            if section == "[project]" and "::" in line:
                continue
            seen += 1
            without += [] if re.search(r'",\s+# \w+', line) else [line.strip()]

    assert seen >= len(table("project")["dependencies"])  # type: ignore[arg-type]
    assert without == []


@pytest.mark.parametrize("page", QUICK_STARTS, ids=lambda page: page.stem)
def test_a_quick_start_names_the_versions_that_pip_would_upgrade(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    extra = {"langchain": "langgraph"}.get(page.stem, page.stem)
    requirements = table("project", "optional-dependencies")[extra]
    assert isinstance(requirements, list)
    floors = [requirement.split(">=") for requirement in requirements]
    said = " and ".join(f"`{name}` {version}" for name, version in floors if name != "boto3")

    assert f"It needs {said} or newer; pip upgrades" in text


def test_readme_and_ci_run_the_same_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")

    assert COMMAND in readme
    assert DEMO_COMMAND in readme
    assert COMMAND in script.splitlines()
    assert script.rstrip().endswith(COMMAND), "the script's exit code is that command's"


@pytest.mark.parametrize("kind", UNWANTED)
def test_no_file_holds(kind: str) -> None:
    files = repository_files()
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNWANTED[kind].search(line)
    ]

    assert len(files) >= MIN_FILES
    assert found == []


@pytest.mark.parametrize("module", [*SOURCE, *ADAPTERS], ids=lambda module: module.name)
def test_a_module_begins_by_saying_what_belongs_in_it(module: Module) -> None:
    head = "\n".join(module.path.read_text(encoding="utf-8").splitlines()[:HEAD_LINES])
    docstring = ast.get_docstring(module.tree) or ""
    shown = [line for line in docstring.splitlines() if line and line.strip() in head]

    assert len(" ".join(shown)) >= HEAD_CHARACTERS, "open the file with what belongs here, and what does not"


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_test_file_begins_with_a_docstring_and_is_not_too_long(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    # Checked as text: parsing every test file takes as long as all other rules together.
    assert re.match(r'(#.*\n|\n)*r?"""\S', text), "say in the first line what is tested here"
    assert len(text.splitlines()) < MAX_TEST_LINES, "split it by subject"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_it_needs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text.startswith("# /// script\n"), "begin with a PEP 723 header, so that `uv run` installs what it needs"
    assert re.search(r'^# +"coatcheck(\[[\w,-]+\])?",?$|^# dependencies = \["coatcheck[\["]', text, re.MULTILINE)
    # Until the first release, anybody could register the name on the package index.
    assert '\n# [tool.uv.sources]\n# coatcheck = { path = ".." }' in text


def test_there_is_an_example_for_each_adapter() -> None:
    imported = "\n".join(path.read_text(encoding="utf-8") for path in EXAMPLES)

    assert not [package for package in adapter_packages() if package not in imported], "examples/"
