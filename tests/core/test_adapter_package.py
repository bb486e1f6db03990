"""What ``import coatcheck_langchain`` says when its framework is missing or broken."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from coatcheck.adapting.package import front_door

if TYPE_CHECKING:
    from pathlib import Path


def test_a_missing_framework_is_named_with_the_command_that_installs_it() -> None:
    said = r"^coatcheck_x needs no_such_framework, which is not installed\. Install it with: pip install .*\[x\]"

    with pytest.raises(ImportError, match=said):
        front_door("coatcheck_x", {}, needs="no_such_framework", install="coatcheck[x]")


@pytest.mark.parametrize(
    "broken",
    ["import no_such_module", "from sys import no_such_name", "from framework_of_mine import no_such_name"],
)
def test_a_framework_that_cannot_be_imported_is_reported_with_the_cause(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own script may have the framework's name."""
    (tmp_path / "framework_of_mine.py").write_text(f"{broken}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "framework_of_mine", raising=False)

    with pytest.raises(ImportError, match=r"needs framework_of_mine, which cannot be imported: .*no_such_"):
        front_door("coatcheck_x", {}, needs="framework_of_mine", install="coatcheck[x]")


@pytest.mark.parametrize("lacking", ["import no_such_part", "from sys import no_such_name"])
def test_a_framework_that_lacks_what_an_adapter_uses_is_reported_with_the_command_too(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of the framework may be installed."""
    package = tmp_path / "coatcheck_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text(f"{lacking}\n")
    monkeypatch.syspath_prepend(tmp_path)
    load, _ = front_door("coatcheck_of_mine", {"part": ("Name",)}, needs="sys", install="coatcheck[x]")

    said = r"^Name does not work with the sys that is installed: .*no_such_.*: pip install .*\[x\]"
    with pytest.raises(ImportError, match=said):
        load("Name")


def test_a_file_named_like_a_package_gets_pythons_own_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No install command would help users who name a script ``mcp.py`` or ``agents.py``."""
    package = tmp_path / "coatcheck_of_yours"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("import named_like_a_package\n")
    (tmp_path / "named_like_a_package.py").write_text("from named_like_a_package import Other\n")
    monkeypatch.syspath_prepend(tmp_path)
    load, _ = front_door("coatcheck_of_yours", {"part": ("Name",)}, needs="sys", install="coatcheck[x]")

    with pytest.raises(ImportError, match=r"^cannot import name 'Other' from partially initialized"):
        load("Name")


def test_a_missing_part_behind_another_part_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "coatcheck_of_theirs"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from coatcheck.adapting import front_door\n"
        "__getattr__, _ = front_door(__name__, {'outer': ('Outer',), 'inner': ('Inner',)}, needs='sys', install='x')\n"
    )
    (package / "outer.py").write_text("from coatcheck_of_theirs import Inner\n")
    (package / "inner.py").write_text("import no_such_part\n")
    monkeypatch.syspath_prepend(tmp_path)
    theirs = importlib.import_module("coatcheck_of_theirs")

    with pytest.raises(ImportError) as raised:
        _ = theirs.Outer

    assert str(raised.value).count("does not work with") == 1
