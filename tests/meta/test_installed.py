"""What an installed coatcheck must contain, whether it is installed from the sources or from the wheel.

`nox -s wheel` runs this against the built wheel. It sets ``COATCHECK_EXPECT_WHEEL`` to the folder of the sources, which
is reachable in no other way. The tests check what packaging can break: missing files, names that do not load, the
command. The other tests prove, on the sources, what the installed code does.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from importlib import import_module, metadata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

import pytest
import tomli

import coatcheck

_PROJECT = tomli.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = sorted(
    package
    for path in _PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    if (package := Path(path).name).startswith("coatcheck")
)


SOURCES = os.environ.get("COATCHECK_EXPECT_WHEEL")
FOLDERS = ("src", "adapters")

OF_EXTRAS = {
    "langchain",
    "langchain_core",
    "langgraph",
    "opentelemetry",
    "rich",
    "typer",
}
"""Packages of extras that modules of ``coatcheck`` import at the top. Storage clients are imported later."""


@pytest.mark.skipif(SOURCES is None, reason="runs from the sources; `nox -s wheel` sets COATCHECK_EXPECT_WHEEL")
def test_the_wheel_is_tested_and_not_the_sources() -> None:
    assert "site-packages" in Path(coatcheck.__file__).parts


@pytest.mark.skipif(SOURCES is None, reason="runs from the sources; `nox -s wheel` sets COATCHECK_EXPECT_WHEEL")
def test_every_source_file_is_in_the_wheel() -> None:
    installed = {file.as_posix() for file in metadata.files("coatcheck") or ()}
    sources = {
        path.relative_to(Path(SOURCES or "", folder)).as_posix()
        for folder in FOLDERS
        for path in Path(SOURCES or "", folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert len(sources) > 100
    assert sources <= installed


def test_every_module_loads_or_lacks_an_extra() -> None:
    names = [found.name for found in walk_packages(coatcheck.__path__, "coatcheck.", onerror=lambda _: None)]

    lacking = {name: _lacking(name) for name in names if not name.endswith(".__main__")}  # the program itself
    assert {module for module in lacking.values() if module} <= OF_EXTRAS
    assert len(names) > 80


def _lacking(name: str) -> str | None:
    """Load a module; return the package that it lacks, if any."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        return str(error.name).partition(".")[0]
    return None


def test_every_public_name_loads() -> None:
    assert all(hasattr(coatcheck, name) for name in coatcheck.__all__)


def test_a_result_is_offloaded_and_read_back(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    offloader = coatcheck.Offloader(coatcheck.FileStorage(tmp_path))

    outcome = offloader.offload([coatcheck.TextBlock(text)], tool_name="search", scope="a")

    assert isinstance(outcome, coatcheck.Offloaded)
    reference = outcome.references[0].id
    assert offloader.load(reference, scope="a").data == text.encode()
    assert "line 19999" in offloader.retrieve(reference, scope="a", pattern="line 19999").text


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_installed_and_typed(package: str) -> None:
    spec = find_spec(package)

    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).with_name("py.typed").is_file()


def test_the_vocabulary_is_installed() -> None:
    folder = files("coatcheck.core").joinpath("vocabulary")

    assert len(gzip.decompress(folder.joinpath("o200k_base.tiktoken.gz").read_bytes()).splitlines()) > 199_000
    assert "MIT License" in folder.joinpath("LICENSE-o200k_base").read_text(encoding="utf-8")


def test_the_licences_of_bundled_files_are_installed() -> None:
    declared = metadata.metadata("coatcheck").get_all("License-File") or []

    assert sorted(declared) == [
        "LICENSE",
        "src/coatcheck/core/vocabulary/LICENSE-o200k_base",
        "src/coatcheck/replay/assets/LICENSE-chart.js",
    ]


def test_the_version_is_the_installed_one() -> None:
    assert coatcheck.__version__ == metadata.version("coatcheck")


@pytest.mark.skipif(find_spec("langchain_core") is not None, reason="the extra is installed")
def test_an_adapter_without_its_extra_names_it() -> None:
    with pytest.raises(ImportError, match=r"checkout\[langgraph\]"):
        import_module("coatcheck_langchain")


@pytest.mark.skipif(find_spec("typer") is not None, reason="the extra is installed")
def test_the_command_without_its_extra_names_it() -> None:
    program = Path(sys.executable).with_name("coatcheck")
    ran = subprocess.run([program, "demo"], check=False, capture_output=True, text=True)

    assert ran.returncode != 0
    assert "/path/to/checkout[cli" in ran.stderr
    assert "Traceback" not in ran.stderr
