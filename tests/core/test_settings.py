"""The settings as one value: equal however they are passed, checked when made, and known to type checkers."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from coatcheck import (
    ByteCounter,
    InMemoryStorage,
    InvalidRequest,
    Never,
    Offloaded,
    Offloader,
    OffloaderOptions,
    OverTokens,
    Policy,
    Settings,
    TextBlock,
    policy_of,
)

BESIDE_SETTINGS = {"settings", "on_event"}


def _result(tokens: int) -> list[TextBlock]:
    return [TextBlock("abcd" * tokens)]


def test_type_checkers_see_each_setting_with_its_type() -> None:
    options = {name: hint.__forward_arg__ for name, hint in OffloaderOptions.__annotations__.items()}
    settings = {each.name: each.type for each in fields(Settings) if each.init}

    assert {name: hint for name, hint in options.items() if name not in BESIDE_SETTINGS} == settings
    assert options.keys() - settings.keys() == BESIDE_SETTINGS
    assert not OffloaderOptions.__required_keys__


def test_settings_and_keywords_are_equivalent() -> None:
    policies: dict[str | tuple[str, ...], Policy] = {"export": Never()}

    by_keyword = Offloader(max_result_tokens=700, policies=policies)
    by_value = Offloader(settings=Settings(max_result_tokens=700, policies=policies))

    assert by_keyword.settings == by_value.settings
    assert by_value.settings.max_result_tokens == 700


def test_settings_decide_what_is_offloaded() -> None:
    offloader = Offloader(InMemoryStorage(), settings=Settings(max_result_tokens=600, token_counter=ByteCounter()))

    assert isinstance(offloader.offload(_result(601), tool_name="t"), Offloaded)


def test_a_keyword_replaces_a_field_of_settings() -> None:
    shared = Settings(max_result_tokens=700, show_path=True)

    settings = Offloader(settings=shared, max_result_tokens=900).settings

    assert settings == Settings(max_result_tokens=900, show_path=True)
    assert shared.max_result_tokens == 700


def test_a_replaced_threshold_changes_the_values_that_follow_from_it() -> None:
    settings = replace(Settings(), max_result_tokens=900)

    assert settings.retrieval_limit == 900
    assert policy_of("t", settings) == OverTokens(900)


def test_settings_are_checked_when_they_are_made() -> None:
    with pytest.raises(InvalidRequest, match="preview_tokens must be less than max_result_tokens"):
        replace(Settings(preview_tokens=600), max_result_tokens=500)


def test_a_threshold_above_the_default_hard_limit_is_refused_with_what_to_set() -> None:
    words = r"max_inline_tokens must be at least max_result_tokens \(60,000\), not 50,000, its default: set both"
    with pytest.raises(InvalidRequest, match=words):
        Settings(max_result_tokens=60_000)


def test_settings_cannot_change() -> None:
    policies: dict[str | tuple[str, ...], Policy] = {"t": Never()}
    settings = Settings(policies=policies)
    policies.clear()

    with pytest.raises(FrozenInstanceError):
        settings.max_result_tokens = 5  # type: ignore[misc]
    assert policy_of("t", settings) == Never()
    assert settings == Settings(policies={"t": Never()})


def test_settings_survive_copies() -> None:
    settings = Settings(max_result_tokens=700, policies={"t": Never()})

    for copied in (copy.deepcopy(settings), pickle.loads(pickle.dumps(settings))):  # noqa: S301 - made right here
        assert copied == settings
        assert policy_of("t", copied) == Never()


@pytest.mark.parametrize("given", [{"max_result_tokens": 5}, 5, Settings])
def test_an_object_that_is_not_settings_is_refused(given: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"settings must be a coatcheck\.Settings, not "):
        Offloader(settings=given)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("max_tokens", "max_result_tokens"),
        ("preview", "preview_tokens"),
        ("counter", "token_counter"),
        ("max_result_token", "max_result_tokens"),
        ("policy", "policies"),
    ],
)
def test_an_unknown_keyword_is_refused_with_the_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(TypeError, match=rf"^Offloader has no argument '{name}'\. Did you mean '{nearest}'"):
        Offloader(**{name: 5})  # type: ignore[arg-type]


def test_an_unknown_keyword_is_refused_with_all_known_ones() -> None:
    with pytest.raises(TypeError) as refused:
        Offloader(colour="red")  # type: ignore[call-arg]

    assert str(refused.value).startswith("Offloader has no argument 'colour'. The options of an Offloader are: ")
    assert all(name in str(refused.value) for name in OffloaderOptions.__annotations__)


def test_the_error_for_an_unknown_keyword_names_the_called_class() -> None:
    class OurOffloader(Offloader):
        pass

    with pytest.raises(TypeError, match=r"^OurOffloader has no argument"):
        OurOffloader(max_tokens=5)  # type: ignore[call-arg]
