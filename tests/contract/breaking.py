"""Patches that break our own adapters on purpose: the contract must fail for every one of them.

Only breaks belong here. A break that is the same for all adapters patches the library; any other patches its adapter.
``tests/testing/test_leaking_adapters.py`` does the same to the toy adapter.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import pytest

from coatcheck import Offloader
from coatcheck.adapting import Arrival, Batch, answers, guards
from coatcheck.testing import SCENARIOS, AdapterContract, Harness
from coatcheck.testing.faults import BrokenOnPurpose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ("EVERYWHERE", "Break", "check_killed", "nothing", "raising", "silent", "without_arguments")

Break: TypeAlias = "tuple[Callable[[pytest.MonkeyPatch], None], str]"
"""A function that breaks an adapter, and the scenario that must then fail."""

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def check_killed(broken: Break, harness: Harness, *, patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Break an adapter, and fail if the contract still passes."""
    breaks, name = broken
    breaks(patch)
    with pytest.raises(Exception) as raised:  # noqa: PT011 - frameworks wrap our exceptions in theirs
        AdapterContract().test_scenario(harness, scenario=BY_NAME[name], delivery="async, memory", tmp_path=folder)
    assert any(map(_is_finding, _chain(raised.value)))


def _is_finding(error: BaseException) -> bool:
    """Return whether the contract found something. A run that raised does not count: the break itself may be faulty."""
    is_about_a_run = str(error).startswith("the agent run raised")
    return isinstance(error, BrokenOnPurpose) or (isinstance(error, AssertionError) and not is_about_a_run)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def nothing(*_: object, **__: object) -> None:
    """Do nothing. The returned None also serves as a false answer."""


def raising(*_: object, error: Exception | None = None, **__: object) -> NoReturn:
    """Raise the error that an adapter should have logged or turned into words for the model."""
    raise error or BrokenOnPurpose


def silent(logger: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a break that keeps the adapter from logging warnings."""
    return lambda patch: patch.setattr(logging.getLogger(logger), "disabled", True)


def _retrieves_on_the_loop(patch: pytest.MonkeyPatch) -> None:
    async def aretrieve(self: Offloader, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as they came
        return self.retrieve(*args, **kwargs)

    patch.setattr(Offloader, "aretrieve", aretrieve)


def _offloads_on_the_loop(patch: pytest.MonkeyPatch) -> None:
    async def aoffload(self: Offloader, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as they came
        return self.offload(*args, **kwargs)

    async def aoffload_step(self: Offloader, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as they came
        return self.offload_step(*args, **kwargs)

    patch.setattr(Offloader, "aoffload", aoffload)
    patch.setattr(Offloader, "aoffload_step", aoffload_step)


def _resorts_on_the_loop(patch: pytest.MonkeyPatch) -> None:
    async def alast_resort(self: Offloader, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as they came
        return self.last_resort(*args, **kwargs)

    patch.setattr(Offloader, "alast_resort", alast_resort)


def _knows_no_last_resort(patch: pytest.MonkeyPatch) -> None:
    async def anothing(*_: object, **__: object) -> None:
        return None

    patch.setattr(Offloader, "alast_resort", anothing)


def _remembers_the_first_scope(patch: pytest.MonkeyPatch) -> None:
    first: dict[Offloader, dict[str, Any]] = {}
    common_arguments = Batch.common_arguments
    patch.setattr(Batch, "common_arguments", lambda self: first.setdefault(self.offloader, common_arguments(self)))


def without_arguments(**given: Any) -> Arrival:  # noqa: ANN401 - as they came
    """Make a call's ``Arrival`` without its arguments."""
    return Arrival(**{**given, "tool_args": {}})


EVERYWHERE: Mapping[str, Break] = {
    "has no guard": (lambda patch: patch.setattr(guards, "log_failure", raising), "offloading fails"),
    "fails silently": (lambda patch: patch.setattr(guards, "log_failure", nothing), "offloading fails"),
    "has no guard for reads": (
        lambda patch: patch.setattr(answers, "failure_for_model", raising),
        "reading back fails",
    ),
    "retrieves on the loop": (_retrieves_on_the_loop, "the event loop"),
    "offloads on the loop": (_offloads_on_the_loop, "the event loop"),
    "resorts on the loop": (_resorts_on_the_loop, "the event loop where offloading fails"),
    "remembers the first scope": (
        _remembers_the_first_scope,
        "two conversations of the framework through one adapter",
    ),
    "knows no last resort": (_knows_no_last_resort, "offloading a huge result fails"),
}
"""Breaks that are the same in every adapter."""
