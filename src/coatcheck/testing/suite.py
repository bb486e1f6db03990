"""What the contracts share: a guard against overridden tests, one way to call sync and async code, failure messages.

A contract is a plain class of tests. Never make one an abstract base class: pytest silently collects no test of such a
class. Only what storage and adapter contracts share belongs here.
"""

# ruff: noqa: S101 - assert is how pytest asks

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    import pytest

    from coatcheck.storage.protocol import MaybeAwaitable


__all__ = ("Contract", "require_same", "wait_for", "words_of")

Result = TypeVar("Result")

_PACKAGE = __name__.rpartition(".")[0]


class Contract:
    """Base of the contracts: a plain class, so that pytest collects what inherits from it."""

    def test_no_test_of_the_contract_was_changed(self) -> None:
        """The suite runs every inherited test unchanged. Do not override this one.

        If this fails, check that your class neither defines a test of the same name nor sets one to None. If your
        storage or adapter cannot keep a promise, say so where everybody sees it::

            @pytest.mark.xfail(reason="why", strict=True)
            def test_of_the_contract(self, storage):
                super().test_of_the_contract(storage)
        """
        changed = [name for name in _inherited_tests(type(self)) if not _is_untouched(type(self), name)]
        assert not changed, (
            f"tests of the contract overridden or removed without a strict xfail and a reason: {changed}"
        )


@overload
def wait_for(value: Awaitable[Result]) -> Result: ...
@overload
def wait_for(value: MaybeAwaitable[Result]) -> Result: ...
def wait_for(value: MaybeAwaitable[Result]) -> Result:
    """Return ``value``, awaited if it is awaitable, so that one suite tests sync and async alike.

    Each call has its own event loop, as in frameworks that start one for each run: nothing that you keep may belong to
    a loop.
    """
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


def require_same(found: object, expected: bytes, what: str) -> None:
    """Fail, naming the first difference, if two byte strings differ: pytest's own message would print megabytes."""
    if found == expected:
        return
    if not isinstance(found, (bytes, bytearray, memoryview)):
        message = f"{what}: a value of type {type(found).__name__} instead of {len(expected):,} bytes"
        raise AssertionError(message)  # noqa: TRY004 - a failed test, without what pytest adds to an assert
    same = next((at for at, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other), None)
    first = min(len(found), len(expected)) if same is None else same
    near = slice(max(0, first - 8), first + 24)
    message = (
        f"{what}: {len(found):,} bytes instead of {len(expected):,}, first difference at byte {first:,}:"
        f" {found[near]!r} instead of {expected[near]!r}"
    )
    raise AssertionError(message)


def words_of(error: BaseException) -> str:
    """Return an error's message, even if its ``__str__`` raises."""
    try:
        return str(error)
    except Exception as again:  # noqa: BLE001 - the error is an adapter's, or its framework's
        return f"(its __str__ raises {type(again).__name__})"


async def _awaited(value: Awaitable[Result]) -> Result:
    return await value


def _inherited_tests(suite: type) -> Iterator[str]:
    for owner in suite.__mro__:
        if _is_contract(owner):
            yield from (name for name in vars(owner) if name.startswith("test_"))


def _is_untouched(suite: type, name: str) -> bool:
    owner = next(owner for owner in suite.__mro__ if name in vars(owner))
    return _is_contract(owner) or any(_excuses(mark) for mark in _marks(vars(owner)[name]))


def _is_contract(owner: type) -> bool:
    return owner.__module__.startswith(f"{_PACKAGE}.")


def _marks(test: object) -> list[pytest.Mark]:
    marks = getattr(test, "pytestmark", [])
    return marks if isinstance(marks, list) else [marks]


def _excuses(mark: pytest.Mark) -> bool:
    return mark.name == "xfail" and bool(mark.kwargs.get("reason")) and mark.kwargs.get("strict") is True
