"""What users pass to an adapter: checked in one place for all adapters."""

from __future__ import annotations

from typing import Any

import pytest

from coatcheck import InMemoryStorage, InvalidRequest, Offloader, Settings
from coatcheck.adapting import Arrival, Batch, make_offloader, plain_blocks
from coatcheck.adapting.guards import _step_of

NO_STEPS = "this adapter sees one call at a time"


@pytest.mark.parametrize("options", [{"max_step_tokens": 9_000}, {"settings": Settings(max_step_tokens=9_000)}])
def test_a_budget_of_a_step_is_refused_where_steps_are_not_seen(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match=f"max_step_tokens would do nothing here: {NO_STEPS}"):
        make_offloader(InMemoryStorage(), options, no_steps=NO_STEPS)

    assert make_offloader(InMemoryStorage(), options).settings.max_step_tokens == 9_000


def test_a_ready_offloader_keeps_such_a_budget_and_a_warning_says_what_it_does_not_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shared = Offloader(max_step_tokens=9_000)

    assert make_offloader(shared, {}) is shared
    assert not caplog.records
    assert make_offloader(shared, {}, no_steps=NO_STEPS) is shared
    assert f"max_step_tokens of this Offloader does nothing here: {NO_STEPS}" in caplog.text


@pytest.mark.parametrize("given", [{"confirm": lambda _: True}, {"measured_tokens": lambda: 9}])
def test_what_is_asked_about_one_result_is_refused_where_a_whole_step_is_decided_about(given: dict[str, Any]) -> None:
    arrival = Arrival(content="text", convert=plain_blocks, tool_name="t", **given)
    calls = Batch(arrivals=[arrival], offloader=Offloader()).convert()

    with pytest.raises(InvalidRequest, match="measured_tokens and confirm are about one result"):
        _step_of(calls)
