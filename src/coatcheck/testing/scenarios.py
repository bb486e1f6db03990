"""All scenarios: the same for every framework, sync and async, on every storage.

Add a scenario to the list that it belongs to. For a new kind, add a module like the others, and its list here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.testing.call_scenarios import CALL_SCENARIOS
from coatcheck.testing.guard_scenarios import GUARD_SCENARIOS
from coatcheck.testing.reading_scenarios import READING_SCENARIOS
from coatcheck.testing.result_scenarios import RESULT_SCENARIOS

if TYPE_CHECKING:
    from coatcheck.testing.scenario import Scenario

__all__ = ("SCENARIOS",)

SCENARIOS: tuple[Scenario, ...] = (*RESULT_SCENARIOS, *CALL_SCENARIOS, *READING_SCENARIOS, *GUARD_SCENARIOS)
"""In no particular order: no scenario depends on another."""
