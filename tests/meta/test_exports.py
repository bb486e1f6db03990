"""The exports of each module: a sorted ``__all__`` of names that exist, the same at run time and for type checkers."""

from __future__ import annotations

import ast
import importlib

import pytest

import coatcheck
from tests.meta.source_tree import ROOT, Module, declared_all, modules

MIN_PUBLIC_NAMES = 30
"""The root exports more names than this. Fewer mean that the test reads the wrong thing."""

SOURCE = modules("src")
ADAPTERS = modules("adapters")
OFFERING = [module for module in (*SOURCE, *ADAPTERS) if not module.name.endswith("__main__")]
WITHOUT_EXTRAS = [module for module in SOURCE if not module.name.startswith(("coatcheck.cli", "coatcheck.__main__"))]
INIT = ROOT / "src/coatcheck/__init__.py"


def order(name: str) -> tuple[int, str]:
    """Return the sort key of ruff's RUF022: CONSTANTS, then Classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def names_for_type_checkers() -> set[str]:
    """Return the names that the root imports only for type checkers."""
    imported: set[str] = set()
    tree = ast.parse(INIT.read_text(encoding="utf-8"))
    guarded = (inner for node in tree.body if isinstance(node, ast.If) for inner in node.body)
    for node in guarded:
        if isinstance(node, ast.ImportFrom):
            imported.update(alias.asname or alias.name for alias in node.names)
    return imported


@pytest.mark.parametrize("module", OFFERING, ids=lambda module: module.name)
def test_all_is_a_sorted_tuple(module: Module) -> None:
    declared = declared_all(module)

    assert declared is not None, "say what the module offers: __all__ = (...)"
    expression, names = declared
    assert isinstance(expression, ast.Tuple)
    assert names == sorted(names, key=order)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("module", WITHOUT_EXTRAS, ids=lambda module: module.name)
def test_every_name_in_all_exists(module: Module) -> None:
    loaded = importlib.import_module(module.name)

    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


def test_a_module_exports_every_name_that_others_import_from_it() -> None:
    offered = {module.name: declared_all(module) for module in SOURCE}
    taken = {
        f"{found.module}.{found.name}"
        for module in (*SOURCE, *ADAPTERS)
        for found in module.imports()
        if found.name and not found.for_types
        if (declared := offered.get(found.module)) and found.name not in declared[1]
    }

    missing = sorted(taken - offered.keys())
    assert missing == [], "put it into __all__, or import it from where it is made"


def test_the_root_exports_its_names() -> None:
    assert len(coatcheck.__all__) >= MIN_PUBLIC_NAMES


def test_type_checkers_see_what_the_root_exports() -> None:
    assert names_for_type_checkers() == set(coatcheck.__all__) - {"__version__"}


def test_dir_shows_what_the_root_exports() -> None:
    assert set(coatcheck.__all__) <= set(dir(coatcheck))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(coatcheck, "no_such_name")
