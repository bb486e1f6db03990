"""Arguments that users pass to an adapter, checked in one place for all adapters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import InMemoryStorage, InvalidRequest, NamesReferences, Offloader, Settings, Storage
from coatcheck.adapting import (
    Arrival,
    Batch,
    StorageOrOffloader,
    check_names,
    check_scope,
    make_offloader,
    plain_blocks,
)
from coatcheck.adapting.guards import _step_of

if TYPE_CHECKING:
    from collections.abc import Callable

NO_STEPS = "this adapter sees one call at a time"


@pytest.mark.parametrize("options", [{"max_step_tokens": 9_000}, {"settings": Settings(max_step_tokens=9_000)}])
def test_a_step_budget_is_refused_where_the_framework_shows_no_steps(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match=f"max_step_tokens would do nothing here: {NO_STEPS}"):
        make_offloader(InMemoryStorage(), options, no_steps=NO_STEPS)

    assert make_offloader(InMemoryStorage(), options).settings.max_step_tokens == 9_000


def test_a_ready_offloader_keeps_its_step_budget_and_a_warning_says_that_it_does_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shared = Offloader(max_step_tokens=9_000)

    assert make_offloader(shared, {}) is shared
    assert not caplog.records
    assert make_offloader(shared, {}, no_steps=NO_STEPS) is shared
    assert f"max_step_tokens of this Offloader does nothing here: {NO_STEPS}" in caplog.text


@pytest.mark.parametrize("given", [{"confirm": lambda _: True}, {"measured_tokens": lambda: 9}])
def test_callables_about_one_result_are_refused_where_a_whole_step_is_decided(given: dict[str, Any]) -> None:
    arrival = Arrival(content="text", convert=plain_blocks, tool_name="t", **given)
    calls = Batch(arrivals=[arrival], offloader=Offloader()).convert()

    with pytest.raises(InvalidRequest, match="measured_tokens and confirm are about one result"):
        _step_of(calls)


class Adapter:
    """Takes its own arguments as well as the options of an ``Offloader``."""

    def __init__(
        self, storage: object = None, *, exempt: object = (), native_media: bool = False, **options: object
    ) -> None:
        make_offloader(storage, options, owner=Adapter, is_whole=True)  # type: ignore[arg-type]


def adapter(tool: object, *, scope: object = None, **options: object) -> Offloader:
    return make_offloader(InMemoryStorage(), options, owner=adapter)


@pytest.mark.parametrize(
    ("make", "name", "nearest"),
    [
        (Adapter, "exemptt", "exempt"),
        (Adapter, "native_medai", "native_media"),
        (Adapter, "sstorage", "storage"),
        (Adapter, "max_tokens", "max_result_tokens"),
        (partial(adapter, "tool"), "scop", "scope"),
        (Offloader, "sstorage", "storage"),
    ],
)
def test_a_misspelled_argument_of_an_adapter_is_answered_with_the_right_one(
    make: Callable[..., object], name: str, nearest: str
) -> None:
    with pytest.raises(TypeError, match=rf"^(A|a|Offl)\w+ has no argument '{name}'\. Did you mean '{nearest}'\? "):
        make(**{name: 5})


def test_an_unknown_argument_is_not_taken_for_the_catch_all() -> None:
    with pytest.raises(TypeError, match=r"^Adapter has no argument 'option'\. The options of an Offloader are: "):
        Adapter(option=5)


def test_checked_names_are_a_set() -> None:
    assert check_names("exempt", ["grep", "read_file", "grep"]) == {"grep", "read_file"}


def test_a_wrong_scope_is_refused_with_both_ways_to_give_one() -> None:
    with pytest.raises(InvalidRequest, match=r"scope must be .* A callable that returns the scope of a call, or None"):
        check_scope(7)  # type: ignore[arg-type]


def test_what_users_pass_to_store_content_has_a_type_that_exists_at_runtime() -> None:
    """A framework may look up the annotations of an adapter's function."""
    assert StorageOrOffloader == Offloader | Storage | NamesReferences
