"""Runs tests of a contract without pytest around them, so that a failure is a value that a test can inspect.

Only running belongs here. The suites that subclass a contract show that pytest itself collects and runs it.
"""

from __future__ import annotations

import inspect
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("contract_tests", "failures")


def failures(suite: type, name: str, make_storage: type) -> list[str]:
    """Run every case of one contract test, each on a new storage; return the messages of the failed ones."""
    run = (
        failure(partial(getattr(suite(), name), make_storage(), **arguments))
        for arguments in cases(getattr(suite, name))
    )
    return [said for said in run if said is not None]


def failure(test: Callable[[], object]) -> str | None:
    """Run a test; return its message if it failed."""
    try:
        test()
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever it is, pytest would show it
        return f"{type(error).__name__}: {error}"
    return None


def cases(test: object) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each case of a parametrized test."""
    columns = []
    for mark in getattr(test, "pytestmark", []):
        names = [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])
        rows = ([row] if len(names) == 1 else row for row in mark.args[1])
        columns.append([dict(zip(names, row, strict=True)) for row in rows])
    for combination in itertools.product(*columns):
        yield {name: value for part in combination for name, value in part.items()}


def contract_tests(suite: type) -> list[str]:
    """Return the names of a contract's tests that take a storage."""
    return [
        name
        for name, test in inspect.getmembers(suite, inspect.isfunction)
        if name.startswith("test_") and "storage" in inspect.signature(test).parameters
    ]
