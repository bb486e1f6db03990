"""The public signatures: few positional arguments, immutable values, and async twins that match."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING

import pytest

import coatcheck
from tests.meta.source_tree import adapter_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BY_POSITION = 2
"""The most arguments that may be positional, not counting self. A call names the third and all later ones."""

LIKE_THEIRS = {
    "coatcheck_strands.ContextOffloader.__init__",
    "coatcheck_strands.S3Storage.__init__",
    "coatcheck_strands.FileStorage.store",
    "coatcheck_strands.S3Storage.store",
    "coatcheck_strands.Storage.store",
}
"""Replacements for a framework's own objects by one changed import: they take their arguments as the original does."""

PAIRS = {("offload", "aoffload"), ("retrieve", "aretrieve"), ("load", "aload")}
"""Pairs that must exist. The same rule holds for any other method with such a twin."""

LEAST = 40
"""Fewer public callables than this mean that the walk is broken."""


OURS = ("coatcheck", "coatcheck.adapting", "coatcheck.testing")


def public_objects() -> Iterator[tuple[str, object]]:
    for module_name in (*OURS, *adapter_packages()):
        try:
            module = importlib.import_module(module_name)
            found = {name: getattr(module, name) for name in module.__all__}
        except ImportError:
            if module_name in OURS:
                raise
            continue  # an adapter whose extra is not installed; the session of that extra runs this file too
        yield from ((f"{module_name}.{name}", thing) for name, thing in found.items())


def is_ours(found: type) -> bool:
    return "coatcheck" in found.__module__


def public_classes() -> list[tuple[str, type]]:
    """Return our own classes. An adapter may also export some of its framework's."""
    return [(name, found) for name, found in public_objects() if isinstance(found, type) and is_ours(found)]


def own_methods(owner: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the public methods, and ``__init__``, that a class of ours defines itself."""
    foreign = [base for base in owner.__mro__[1:] if base is not object and not is_ours(base)]
    for name, raw in vars(owner).items():
        function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
        if not inspect.isfunction(function) or (name != "__init__" and name.startswith("_")):
            continue
        if name != "__init__" and any(name in vars(base) for base in foreign):
            continue  # a framework's protocol defines this signature
        yield name, function


def public_callables() -> list[tuple[str, Callable[..., object]]]:
    found: list[tuple[str, Callable[..., object]]] = []
    for name, thing in public_objects():
        if inspect.isfunction(thing):
            found.append((name, inspect.unwrap(thing)))
    for name, owner in public_classes():
        found += [(f"{name}.{method}", function) for method, function in own_methods(owner)]
    return found


CALLABLES = public_callables()
CLASSES = public_classes()
DATACLASSES = [(name, found) for name, found in CLASSES if "__dataclass_params__" in vars(found)]


def test_the_walk_finds_the_public_names() -> None:
    assert len(CALLABLES) >= LEAST
    assert DATACLASSES


@pytest.mark.parametrize(("name", "function"), CALLABLES, ids=[name for name, _ in CALLABLES])
def test_arguments_after_the_second_are_keyword_only(name: str, function: Callable[..., object]) -> None:
    positional = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
        and parameter.name not in {"self", "cls"}
    ]

    assert len(positional) <= BY_POSITION or name in LIKE_THEIRS, f"{name}: put a * before {positional[BY_POSITION]}"


@pytest.mark.parametrize(("name", "value"), DATACLASSES, ids=[name for name, _ in DATACLASSES])
def test_public_values_are_frozen_and_slotted(name: str, value: type) -> None:
    assert value.__dataclass_params__.frozen, name  # type: ignore[attr-defined]
    assert "__slots__" in vars(value), name


def twins() -> list[tuple[type, str, str]]:
    return [
        (owner, name, f"a{name}")
        for _, owner in CLASSES
        for name, _ in own_methods(owner)
        # In an adapter, the framework defines the signatures of a pair of hooks.
        if owner.__module__.startswith("coatcheck.") and inspect.isfunction(vars(owner).get(f"a{name}"))
    ]


TWINS = twins()


def test_the_engine_has_its_async_twins() -> None:
    assert {(name, twin) for owner, name, twin in TWINS if owner is coatcheck.Offloader} >= PAIRS


@pytest.mark.parametrize(("owner", "name", "twin"), TWINS, ids=[f"{owner.__name__}.{name}" for owner, name, _ in TWINS])
def test_async_twins_have_the_same_signature(owner: type, name: str, twin: str) -> None:
    blocking, awaited = vars(owner)[name], vars(owner)[twin]

    assert inspect.iscoroutinefunction(awaited)
    assert not inspect.iscoroutinefunction(blocking)
    assert inspect.signature(awaited) == inspect.signature(blocking)
