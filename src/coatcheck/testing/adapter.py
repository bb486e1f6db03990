"""The adapter contract: every scenario through a real agent of the framework, sync and async, in memory and on files.

    class TestMyAdapter(AdapterContract):
        @pytest.fixture
        def harness(self):
            return MyHarness(...)

This module only turns the scenarios into tests. The scenarios are data, and ``trial`` runs them.
"""

# ruff: noqa: S101 - assert is how pytest asks

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pytest

from coatcheck.storage.file import FileStorage
from coatcheck.storage.memory import InMemoryStorage
from coatcheck.testing.places import naming_needs
from coatcheck.testing.scenario import CAPABILITIES
from coatcheck.testing.scenarios import SCENARIOS
from coatcheck.testing.suite import Contract
from coatcheck.testing.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from coatcheck.testing.harness import Harness
    from coatcheck.testing.scenario import Capability, Scenario

__all__ = ("DELIVERIES", "AdapterContract", "reason_to_skip")

MAX_LEFT_OUT = 0.1
"""The largest share of a framework's non-essential scenarios that ``cannot`` may name."""

DELIVERIES = ("sync, memory", "async, memory", "sync, files", "async, files")
"""The ways to run each scenario."""


class AdapterContract(Contract):
    """What every adapter promises: in each scenario the model gets what the core says, and can read all of it back."""

    lacks: ClassVar[Mapping[Capability, str]] = {}
    """What the framework does not have, with the reason, as ``{"images": "tools return text only"}``. Scenarios that
    need it are skipped with that reason, and do not count."""

    cannot: ClassVar[Mapping[str, str]] = {}
    """Other scenarios that the framework cannot express, by name, with the reason: at most a tenth of those that count,
    and never one about scopes, guards, bounds or reading back (``Scenario.is_essential``)."""

    deliveries: ClassVar[tuple[str, ...]] = DELIVERIES
    """Override to run fewer of ``"sync, memory"``, ``"async, memory"``, ``"sync, files"`` and ``"async, files"``, if
    another suite of the same framework runs all of them."""

    @pytest.fixture
    def harness(self) -> Harness:
        """Override: return the harness of your framework; see ``coatcheck.testing.Harness``."""
        message = (
            f"{type(self).__name__} does not say which adapter to test: give it a fixture\n\n"
            "    @pytest.fixture\n"
            "    def harness(self):\n"
            "        return MyHarness(...)\n"
        )
        raise NotImplementedError(message)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per scenario and delivery."""
        if {"scenario", "delivery"} <= set(metafunc.fixturenames):
            metafunc.parametrize("scenario", [self._parameter(scenario) for scenario in SCENARIOS])
            metafunc.parametrize("delivery", self._run_deliveries())

    def test_scenario(self, harness: Harness, *, scenario: Scenario, delivery: str, tmp_path: Path) -> None:
        """The model receives what the core makes of each result, the storage holds it, and each read is answered.

        If this fails, read the scenario's ``promise``, and look at the place in the adapter that the message ends with.
        A message without a place is not about the adapter: the harness, the scenario or the core is wrong.
        """
        path, storage = delivery.split(", ")
        with naming_needs(scenario):
            Trial(harness, scenario, is_async=path == "async", open_storage=_opener(storage, tmp_path)).check()

    def test_what_cannot_be_expressed_has_a_reason(self) -> None:
        """Each name in ``cannot`` is a scenario, each in ``lacks`` a capability, and each has a reason.

        If this fails, check the spelling, and that the scenario still exists.
        """
        assert self.cannot.keys() <= {scenario.name for scenario in SCENARIOS}, "cannot names unknown scenarios"
        assert all(reason.strip() for reason in self.cannot.values()), "an entry of cannot has no reason"
        assert self.lacks.keys() <= CAPABILITIES, f"lacks names unknown capabilities; there are {sorted(CAPABILITIES)}"
        assert all(reason.strip() for reason in self.lacks.values()), "an entry of lacks has no reason"

    def test_little_is_left_out(self) -> None:
        """All essential scenarios run, sync or async, and ``cannot`` names at most a tenth of the others.

        If this fails, say what the framework does not have in ``lacks``, or make the harness express more. If it is
        about ``deliveries``, check the spelling.
        """
        assert not {"sync", "async"} <= self.lacks.keys(), "a framework runs sync or async"
        unknown = set(self.deliveries).difference(DELIVERIES)
        assert not unknown, f"deliveries names {sorted(unknown)}; there are {list(DELIVERIES)}"
        assert self._run_deliveries(), "no scenario runs: deliveries is empty, or names only what lacks names"
        essential = {scenario.name for scenario in SCENARIOS if scenario.is_essential}
        assert not essential & self.cannot.keys(), f"no adapter may leave out {sorted(essential & self.cannot.keys())}"
        rest = {scenario.name for scenario in SCENARIOS if not scenario.needs & self.lacks.keys()} - essential
        counted = rest & self.cannot.keys()
        assert len(counted) <= len(rest) * MAX_LEFT_OUT, (
            f"cannot names {len(counted)} of {len(rest)} scenarios; {int(len(rest) * MAX_LEFT_OUT)} may be left out"
        )

    def _run_deliveries(self) -> list[str]:
        return [name for name in self.deliveries if name in DELIVERIES and name.split(",")[0] not in self.lacks]

    def _parameter(self, scenario: Scenario) -> object:
        reason = reason_to_skip(scenario, lacks=self.lacks, cannot=self.cannot)
        marks = () if reason is None else (pytest.mark.skip(reason=f"cannot be expressed: {reason}"),)
        return pytest.param(scenario, id=scenario.name, marks=marks)


def reason_to_skip(scenario: Scenario, *, lacks: Mapping[Capability, str], cannot: Mapping[str, str]) -> str | None:
    """Return why a framework cannot express a scenario; None if it can."""
    missing = [lacks[capability] for capability in sorted(scenario.needs) if capability in lacks]
    return missing[0] if missing else cannot.get(scenario.name)


def _opener(storage: str, folder: Path) -> Callable[[], FileStorage | InMemoryStorage]:
    """Return a function that opens the same storage at every call."""
    if storage == "files":
        return partial(FileStorage, folder / "artifacts")
    memory = InMemoryStorage()
    return lambda: memory
