"""Lazy exports: public names load their module on first use, so that importing the package is cheap.

Nothing else belongs here.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("lazily",)


def lazily(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that exports the names listed for each of its ``modules``.

    Raises:
        AttributeError: from ``__getattr__``, if there is no such name.

    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        if name not in module_of:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        with loading:
            module = importlib.import_module(f"{package}.{module_of[name]}")
        value = getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        namespace = vars(sys.modules[package])
        return sorted({*namespace, *namespace["__all__"]})

    return load, list_names
