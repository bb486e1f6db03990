"""The ``__init__`` of an adapter's package: its public names, loaded on first use, and what to install.

This must load next to nothing: ``import coatcheck_langchain`` runs it, in programs that may never offload anything.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from coatcheck.core.forks import loading
from coatcheck.core.lazy import lazily

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("front_door",)


def front_door(
    package: str,
    modules: Mapping[str, tuple[str, ...]],
    *,
    needs: str,
    install: str,
    more: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for an adapter's package.

    Call it under ``if not TYPE_CHECKING:``, and import the names under ``if TYPE_CHECKING:``. A type checker that sees
    a ``__getattr__`` accepts any name as one of the package's.

    Args:
        package: the package's ``__name__``.
        modules: for each module of the package, its public names.
        needs: the framework's module that the whole package needs, such as ``langchain_core``.
        install: what to pass to ``pip install`` for it, such as ``coatcheck[langchain]``.
        more: for single names that need another module, that module, and what to pass to ``pip install`` for it.

    Raises:
        ImportError: the framework is not installed, or lacks what the adapter uses; the message says what to install.
            ``__getattr__`` raises it too. If a user's file has the name of a package, so that it imports itself, the
            message is Python's.
        AttributeError: ``__getattr__`` raises it if there is no such name.

    """
    _require(needs, by=package, install=install)
    load, list_names = lazily(package, modules)

    def load_public(name: str) -> object:
        module, install_with = needs, install
        if more is not None and name in more:
            module, install_with = more[name]
            _require(module, by=name, install=install_with)
        try:
            return load(name)
        except ImportError as error:  # a version of the framework that lacks what the adapter uses
            if error.name is None or "partially initialized" in str(error):
                raise  # raised in our code, or by a user's file with the name of a package: no command helps
            msg = (
                f"{name} does not work with the {module} that is installed: {error}. Install one that it works with:"
                f" {_command(install_with)}"
            )
            raise ImportError(msg) from error

    return load_public, list_names


def _require(module: str, *, by: str, install: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        what = "which is not installed" if is_missing else f"which cannot be imported: {error}"
        msg = f"{by} needs {module}, {what}. Install it with: {_command(install)}"
        raise ImportError(msg) from error


def _command(install: str) -> str:
    with loading:
        from coatcheck.core.errors import install_command  # noqa: PLC0415 - only for the message

    return install_command(install)
