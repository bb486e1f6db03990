"""What must be there once coatcheck is installed, from the sources or from the wheel.

`nox -s wheel` runs this against the built wheel with ``COATCHECK_EXPECT_WHEEL=1``, no source in reach.
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

import pytest

import coatcheck

PACKAGES = ("coatcheck", "coatcheck_langchain")


@pytest.mark.skipif("COATCHECK_EXPECT_WHEEL" not in os.environ, reason="runs from the sources; `nox -s wheel` sets it")
def test_the_wheel_is_what_is_tested() -> None:
    assert "site-packages" in Path(coatcheck.__file__).parts


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_installed_and_typed(package: str) -> None:
    spec = find_spec(package)

    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).with_name("py.typed").is_file()


def test_the_vocabulary_came_along() -> None:
    folder = files("coatcheck.core").joinpath("vocabulary")

    assert len(gzip.decompress(folder.joinpath("o200k_base.tiktoken.gz").read_bytes()).splitlines()) > 199_000
    assert "MIT License" in folder.joinpath("LICENSE-o200k_base").read_text(encoding="utf-8")


def test_the_licences_of_what_ships_with_us_came_along() -> None:
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
    with pytest.raises(ImportError, match=r"coatcheck\[langchain\]"):
        import_module("coatcheck_langchain")


@pytest.mark.skipif(find_spec("typer") is not None, reason="the extra is installed")
def test_the_command_without_its_extra_names_it() -> None:
    program = Path(sys.executable).with_name("coatcheck")
    ran = subprocess.run([program, "demo"], check=False, capture_output=True, text=True)

    assert ran.returncode != 0
    assert "coatcheck[cli" in ran.stderr
    assert "Traceback" not in ran.stderr
