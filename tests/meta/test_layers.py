"""Which modules may import which. To add a module, put it on the right side of the line; do not move the line.

The pure modules hold every decision and every word that the model reads. They take only values, so all of it can be
tested with values alone, and is the same in every framework.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import pytest

from tests.meta.source_tree import (
    FRAMEWORKS,
    ROOT,
    SHARED_PACKAGES,
    Import,
    Module,
    adapter_packages,
    declared_all,
    modules,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PURE = "coatcheck.core"
"""The package that does no I/O and reads no clock, random source or environment."""

PURE_NEEDS = frozenset({"coatcheck.core.forks", "coatcheck.core.lazy", "coatcheck.core.vocabulary"})
"""Impure modules that pure ones need. ``vocabulary`` gives ``tokens`` the ranks that ship with the package, read from
disk at the first count. ``lazy`` imports inside functions, and ``forks`` makes a fork wait for such imports."""

_PURE_STANDARD_LIBRARY = """
    __future__ abc base64 binascii bisect codecs collections contextlib copy csv dataclasses decimal difflib enum
    errno fractions functools hashlib heapq html io itertools json math operator re string struct textwrap types typing
    unicodedata urllib.parse
"""
PURE_STANDARD_LIBRARY = frozenset(_PURE_STANDARD_LIBRARY.split())
PURE_LIBRARIES = frozenset({"jmespath", "orjson", "re2"})

LEAST = 8
"""Fewer modules than this mean that the walk is broken, not that the rules hold."""

ADAPTER_OF = {"haystack_integrations": "coatcheck_haystack"}
"""The adapter that our modules in a framework's own namespace package may import."""

PROGRAM = "coatcheck.cli"
"""The one part of ``src`` that may import an adapter, inside a function or for types: ``coatcheck demo`` runs a real
agent, and ``coatcheck mcp`` is the adapter's command."""

EXAMPLE = "coatcheck.testing.toy"
"""An adapter to copy: it obeys the rules of adapters, not those of the library's own modules."""

SOURCE = modules("src")
ADAPTERS = modules("adapters")
EXAMPLES = [module for module in SOURCE if module.name == EXAMPLE]


PUBLIC = ("coatcheck", "coatcheck.adapting", "coatcheck.hook", "coatcheck.testing")
"""The packages whose declared names an adapter may import."""


def public_names(package: str) -> set[str]:
    declared = declared_all(next(module for module in SOURCE if module.name == package))
    return set(declared[1]) if declared else set()


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


PURE_MODULES = [
    module for module in SOURCE if within(module.name, PURE) and not any(within(module.name, own) for own in PURE_NEEDS)
]


def running(module: Module) -> list[Import]:
    return [found for found in module.imports() if not found.for_types]


def places(module: Module, wrong: list[Import]) -> list[str]:
    path = module.path.relative_to(ROOT)
    return [f"{path}:{found.line}: {found.module}" + (f".{found.name}" if found.name else "") for found in wrong]


def by_name(module: Module) -> str:
    return module.name


def test_the_walk_finds_the_modules() -> None:
    assert len(PURE_MODULES) >= LEAST
    assert len(ADAPTERS) >= len(FRAMEWORKS)
    assert len(EXAMPLES) == 1


@pytest.mark.parametrize("module", PURE_MODULES, ids=by_name)
def test_a_pure_module_imports_pure_modules_only(module: Module) -> None:
    allowed = PURE_STANDARD_LIBRARY | PURE_LIBRARIES
    wrong = [
        found
        for found in running(module)
        if not (within(found.module, PURE) if found.package == "coatcheck" else allowed & {found.package, found.module})
    ]

    assert not places(module, wrong), "keep I/O, clocks and randomness in the engine and the storages"


LAYERS = {"coatcheck.storage": {PURE}, "coatcheck.engine": {PURE, "coatcheck.storage"}}
"""Our packages that each package may import besides itself, even for types."""


@pytest.mark.parametrize(
    "module", [module for module in SOURCE if any(within(module.name, layer) for layer in LAYERS)], ids=by_name
)
def test_a_layer_imports_only_those_below_it(module: Module) -> None:
    layer = next(layer for layer in LAYERS if within(module.name, layer))
    wrong = [
        found
        for found in module.imports()
        if found.package == "coatcheck" and not any(within(found.module, below) for below in {layer, *LAYERS[layer]})
    ]

    assert not places(module, wrong), f"{layer} may import {sorted(LAYERS[layer])} only"


def test_modules_of_the_core_form_no_import_cycle_even_for_types() -> None:
    names = {module.name for module in SOURCE if within(module.name, PURE)}
    imported = {
        module.name: {
            submodule if (submodule := f"{found.module}.{found.name}") in names else found.module
            for found in module.imports()
        }
        for module in SOURCE
        if module.name in names
    }
    while leaves := [name for name, targets in imported.items() if not targets & imported.keys()]:
        for name in leaves:
            del imported[name]

    assert not imported, f"move the values that both need below them: {sorted(imported)}"


@pytest.mark.parametrize("module", [*SOURCE, *ADAPTERS], ids=by_name)
def test_imports_are_absolute(module: Module) -> None:
    assert not places(module, [found for found in module.imports() if found.module.startswith(".")])


@pytest.mark.parametrize("module", SOURCE, ids=by_name)
def test_the_library_imports_no_adapter(module: Module) -> None:
    wrong = [
        found
        for found in module.imports()
        if found.package in adapter_packages()
        and not (within(module.name, PROGRAM) and (found.for_types or not found.at_top))
    ]

    assert not places(module, wrong), "an adapter may import the library, never the other way round"


@pytest.mark.parametrize("module", [module for module in SOURCE if module.name != EXAMPLE], ids=by_name)
def test_a_leaf_does_not_import_the_root(module: Module) -> None:
    wrong = [found for found in module.imports() if found.module == "coatcheck"]

    assert not places(module, wrong), "import the module that defines the name; the root imports the leaves"


@pytest.mark.parametrize("module", SOURCE, ids=by_name)
def test_only_the_vocabulary_loads_tiktoken_and_only_when_it_is_needed(module: Module) -> None:
    wrong = [
        found
        for found in running(module)
        if found.package == "tiktoken" and (found.at_top or not within(module.name, "coatcheck.core.vocabulary"))
    ]

    assert not places(module, wrong), "tiktoken takes 150 ms to import, and small results never need it"


def test_every_adapter_has_its_framework_listed() -> None:
    assert sorted(FRAMEWORKS) == adapter_packages(), "FRAMEWORKS in tests/meta/source_tree.py"
    assert sorted(ADAPTER_OF) == sorted(SHARED_PACKAGES), "ADAPTER_OF in tests/meta/source_tree.py"


@pytest.mark.parametrize("module", [*ADAPTERS, *EXAMPLES], ids=by_name)
def test_an_adapter_imports_public_names_and_its_own_framework(module: Module) -> None:
    package = module.name.partition(".")[0]
    adapter = ADAPTER_OF.get(package, package)
    public = {name: public_names(name) for name in PUBLIC}

    def allowed(found: Import) -> bool:
        if found.package == "coatcheck":
            return found.name in public.get(found.module, ())
        if found.for_types and found.package == "typing_extensions":
            return True  # only type checkers load it, and they bring it: ``Unpack`` is not in Python 3.10's typing
        return found.package in {adapter, *FRAMEWORKS.get(adapter, ()), *sys.stdlib_module_names}

    wrong = [found for found in module.imports() if not allowed(found)]

    assert not places(module, wrong), "an adapter is two conversions and a hook; what it needs of the core is public"


@pytest.mark.parametrize("module", [module for module in SOURCE if not within(module.name, PROGRAM)], ids=by_name)
def test_a_fork_waits_for_modules_that_are_loaded_on_demand(module: Module) -> None:
    """A child forked while another thread loads a module hangs when it needs that module."""
    unguarded = [
        found.lineno
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for found in _imports_without_loading(function)
        # Code that awaits anything has loaded asyncio already.
        if not (isinstance(function, ast.AsyncFunctionDef) and ast.unparse(found) == "import asyncio")
    ]

    assert not unguarded, f"put these lines into `with loading:`: {unguarded}"


def _imports_without_loading(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports in a function, except those in nested functions and those that a fork waits for."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.With) and any("loading" in ast.unparse(item) for item in child.items):
            continue
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _imports_without_loading(child)
