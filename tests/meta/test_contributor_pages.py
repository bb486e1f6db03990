"""Everything that ARCHITECTURE.md and CONTRIBUTING.md name exists: files, and the names that they point people to."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
BASES = ("", "src/coatcheck", "src/coatcheck/core", "adapters/coatcheck_langchain")
"""The folders that file names are relative to. The last is the adapter in "The path of one tool result"."""

ANYWHERE = ("src", "adapters", "tests")
"""The folders where a file that is named without its folder may be."""

OTHERS = frozenset({"PYENV_VERSION", "text/", "yield"})
"""Names that others define: pyenv, a MIME type, Python."""

_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PATH = re.compile(r"[\w.<>*-]+(/[\w.<>*-]*)+|[\w<>*-]+\.(py|md|toml|typed|yml|json)")
_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_NAME_IN_FILE = re.compile(r"[Ii]n `([^`\n]+\.py)`, `(\w+)`|`(\w+)` \(`([^`\n]+\.py)`\)")


def code_in(page: str) -> Iterator[str]:
    yield from _CODE.findall((ROOT / page).read_text(encoding="utf-8"))


def paths_in(page: str) -> list[str]:
    return sorted({code for code in code_in(page) if _PATH.fullmatch(code)} - OTHERS)


def names_in(page: str) -> list[str]:
    return sorted({code for code in code_in(page) if _NAME.fullmatch(code) and not _PATH.fullmatch(code)} - OTHERS)


def placed_names_in(page: str) -> list[tuple[str, str]]:
    """Return each name that a page places in a file, with that file."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return sorted({(found[2] or found[3], found[1] or found[4]) for found in _NAME_IN_FILE.finditer(text)})


def is_there(path: str) -> bool:
    return next(files_of(path), None) is not None


def files_of(path: str) -> Iterator[Path]:
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    places = (
        [f"{base}/{pattern}" for base in BASES] if "/" in pattern else [f"{base}/**/{pattern}" for base in ANYWHERE]
    )
    return (file for place in [pattern, *places] for file in ROOT.glob(place.lstrip("/")))


@cache
def known() -> frozenset[str]:
    """Return every name that our code defines or holds as a string; members also as ``Owner.name``."""
    found = set(
        re.findall(r"\w+", "".join((ROOT / name).read_text("utf-8") for name in ("mkdocs.yml", "pyproject.toml")))
    )
    folders = ("src", "adapters", "tests", "benchmarks")
    for path in (ROOT / "noxfile.py", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {path.stem, path.parent.name, f"{path.parent.parent.name}.{path.parent.name}"}
        found |= {f"{path.stem}.{name}" for node in tree.body for name in defined_by(node)}
        for node in ast.walk(tree):
            found |= set(defined_by(node))
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{name}" for each in node.body for name in defined_by(each)}
                found |= {f"{node.name}.{name}" for each in ast.walk(node) for name in set_on_self(each)}
    return frozenset(found)


def defined_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.arg(arg=name) | ast.alias(name=name):
            yield name
        case ast.Constant(value=str(value)) if value.isidentifier():
            yield value
        case _:
            pass


def set_on_self(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
            yield name
        case _:
            pass


def test_the_pages_are_read() -> None:
    assert "engine/offloading.py" in paths_in("ARCHITECTURE.md")
    assert "Contents.save" in names_in("ARCHITECTURE.md")
    assert "ARGUMENTS" in names_in("CONTRIBUTING.md")
    assert ("SAMPLES", "tests/core/preview_samples.py") in placed_names_in("CONTRIBUTING.md")
    assert not is_there("engine/nothing.py")
    assert not {"Contents.forget", "Arrival.offload"} & known()


@pytest.mark.parametrize(("page", "path"), [(page, path) for page in PAGES for path in paths_in(page)])
def test_a_file_that_a_page_names_exists(page: str, path: str) -> None:
    assert is_there(path), f"{page} names it"


@pytest.mark.parametrize(("page", "name"), [(page, name) for page in PAGES for name in names_in(page)])
def test_a_name_on_a_page_exists_in_the_code(page: str, name: str) -> None:
    assert name in known(), f"{page} names it"


@pytest.mark.parametrize(
    ("page", "name", "path"), [(page, *placed) for page in PAGES for placed in placed_names_in(page)]
)
def test_a_name_is_in_the_file_that_a_page_names(page: str, name: str, path: str) -> None:
    assert any(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) for file in files_of(path)), (
        f"{page} says so"
    )
