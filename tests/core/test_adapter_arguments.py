"""What users pass to an adapter: checked in one place for all adapters."""

from __future__ import annotations

import pytest

from coatcheck import InMemoryStorage, InvalidRequest, Offloader, Settings
from coatcheck.adapting import make_offloader

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
