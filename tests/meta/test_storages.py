"""Every place to which a new storage must be added: the checklist in CONTRIBUTING.md, as far as a test can check it.

The files are read, not imported, because no environment has the libraries of all storages.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.meta.source_tree import ROOT, declared_all, modules

if TYPE_CHECKING:
    from collections.abc import Iterator

FORGETFUL = frozenset({"InMemoryStorage"})
"""Storages whose entries vanish with the process, so that no later version can find them."""


def methods_of(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def public_storages() -> Iterator[tuple[str, bool]]:
    """Yield the name of each storage, and whether it chooses its references itself."""
    for module in modules("src"):
        _, names = declared_all(module) or (None, [])
        if module.name.startswith("coatcheck.storage.") and not module.name.endswith(".protocol"):
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and node.name in names and "load" in methods_of(node):
                    yield node.name, "save_named" in methods_of(node)


STORAGES = dict(public_storages())
EVERY_STORAGE = pytest.mark.parametrize("storage", sorted(STORAGES))


def tree_of(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def made_in(tree: ast.AST) -> set[str]:
    """Return the names that the code calls."""
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def reached_from(table: str, path: str) -> set[str]:
    """Return the names called in the value of ``table`` and in the functions of the file that it refers to."""
    tree = tree_of(path)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    (value,) = (
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == table
    )
    assert value is not None
    found: set[str] = set()
    led_to: list[ast.AST] = [value]
    for node in led_to:
        found |= made_in(node)
        named = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
        led_to += [functions.pop(name) for name in named if name in functions]
    return found


def under_contract() -> set[str]:
    """Return the names called in test classes that inherit the storage contract."""
    made: set[str] = set()
    for path in sorted((ROOT / "tests").glob("**/test_*.py")):
        bound = {"StorageContract"}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and bound & {
                base.id for base in node.bases if isinstance(base, ast.Name)
            }:
                bound.add(node.name)
                made |= made_in(node)
    return made


MIN_TABLES = 2
"""The number of tables on docs/storages.md that list every storage."""


def test_the_storages_are_found() -> None:
    assert {"FileStorage", "InMemoryStorage", "S3Storage", "FsspecBridge", "StrandsStorageBridge"} <= STORAGES.keys()
    assert any(STORAGES.values())


@EVERY_STORAGE
def test_a_storage_can_be_imported_from_coatcheck_storage_or_from_the_root(storage: str) -> None:
    exported = {
        name
        for module in modules("src")
        if module.name in {"coatcheck", "coatcheck.storage"}
        for name in (declared_all(module) or (None, []))[1]
    }

    assert storage in exported, "src/coatcheck/storage/__init__.py"


@EVERY_STORAGE
def test_a_storage_is_on_the_pages(storage: str) -> None:
    api, page = ((ROOT / path).read_text(encoding="utf-8") for path in ("docs/api/storages.md", "docs/storages.md"))

    assert f".{storage}\n" in api, (
        "docs/api/storages.md needs a ::: line; `python -m tests.docs.rewrite` writes the table"
    )
    rows = [line for line in page.splitlines() if line.startswith("| `") and f"`{storage}" in line]
    assert len(rows) >= MIN_TABLES, "docs/storages.md has a table of what each keeps, and one of what its list costs"


@pytest.mark.parametrize("storage", sorted(name for name, names_references in STORAGES.items() if not names_references))
def test_a_storage_with_keys_passes_the_contract(storage: str) -> None:
    assert storage in under_contract(), "no test class inherits StorageContract and makes one: tests/storage/"


@EVERY_STORAGE
def test_a_storage_is_tested_with_made_up_references(storage: str) -> None:
    path = "tests/faults/test_fuzzed_references.py"

    assert storage in reached_from("MAKE", path), f"MAKE in {path}"


@pytest.mark.parametrize("storage", sorted(STORAGES.keys() - FORGETFUL))
def test_entries_of_a_storage_are_kept_for_the_tests_of_later_versions(storage: str) -> None:
    path = "tests/formats/make.py"

    assert storage in reached_from("WRITERS", path), f"a function in {path} that fills one, and its name in WRITERS"
