"""Which policy governs which tool, and what a policy may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import (
    Always,
    InvalidRequest,
    Never,
    Offloaded,
    Offloader,
    OverChars,
    OverShare,
    OverTokens,
    Settings,
    TextBlock,
    policy_of,
)
from coatcheck.core.plan import rule_of

if TYPE_CHECKING:
    from coatcheck.core.policy import Policy

DEFAULT = OverTokens(2_500)


@pytest.mark.parametrize(
    ("tool_name", "expected"),
    [
        ("get_time", Never()),
        ("read_file", OverTokens(10)),
        ("list_dir", OverTokens(10)),
        ("anything", OverChars(7)),
        ("", OverChars(7)),
    ],
)
def test_an_exact_name_wins_over_a_tuple_and_a_tuple_over_a_star(tool_name: str, expected: Policy) -> None:
    settings = Settings(
        policies={"*": OverChars(7), ("read_file", "list_dir", "get_time"): OverTokens(10), "get_time": Never()}
    )

    assert policy_of(tool_name, settings) == expected


def test_part_of_a_name_is_not_a_match() -> None:
    assert policy_of("search", Settings(policies={"search_orders": Never()})) == DEFAULT
    assert policy_of("search", Settings(policies={("search_orders",): Never()})) == DEFAULT


def test_without_a_match_the_default_applies() -> None:
    assert policy_of("search", Settings(policies={"get_time": Never()})) == DEFAULT
    assert policy_of("search", Settings(policies={})) == DEFAULT


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (True, Always()),
        (False, Never()),
        (None, DEFAULT),
        (OverTokens(9), OverTokens(9)),
        ("yes", DEFAULT),
        (1, DEFAULT),
    ],
)
def test_a_verdict_becomes_a_rule_and_nonsense_the_default(verdict: Any, expected: Policy) -> None:  # noqa: ANN401
    assert rule_of(verdict, Settings()) == expected


@pytest.mark.parametrize(
    ("returned", "kind"), [(500, "int"), ("never", "str"), (Never, "the class Never")], ids=["int", "str", "class"]
)
def test_a_policy_that_returns_nonsense_is_named_in_the_log(
    returned: Any,  # noqa: ANN401 - anything but a policy
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    offloader = Offloader(policies={"t": lambda _: returned})

    assert isinstance(offloader.offload([TextBlock("word " * 5_000)], tool_name="t"), Offloaded)
    assert f"the policy of 't' returned {kind}, not a rule, True, False or None" in caplog.text
    assert offloader.stats().failed == 1


def test_a_policy_without_a_verdict_is_not_reported_as_a_mistake(caplog: pytest.LogCaptureFixture) -> None:
    offloader = Offloader(policies={"t": lambda _: None})

    assert isinstance(offloader.offload([TextBlock("word " * 5_000)], tool_name="t"), Offloaded)
    assert not caplog.records


def test_a_share_of_the_window_is_a_number_of_tokens() -> None:
    assert OverShare(0.02, context_window=200_000).threshold == 4_000
    assert OverShare(0.000001, context_window=10).threshold == 1


@pytest.mark.parametrize("number", [0, -1, 1.5, "10", None, True])
@pytest.mark.parametrize("rule", [OverTokens, OverChars])
def test_a_threshold_must_be_a_whole_number_above_zero(rule: Any, number: object) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match="whole number above 0"):
        rule(number)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, "0.1", True, None])
def test_a_share_must_be_above_zero_and_at_most_one(share: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match="share"):
        OverShare(share, context_window=1_000)


@pytest.mark.parametrize("policies", [{"t": 5}, {"t": "always"}, {"t": Always}, {7: Always()}, {("a", 1): Always()}])
def test_an_object_that_is_not_a_policy_is_refused_by_name(policies: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match="polic"):
        Settings(policies=policies)


@pytest.mark.parametrize("names", ["b*", "*_log", "**", ("search", "read_*"), ("*",)])
def test_a_name_with_a_wildcard_is_refused_because_it_matches_nothing(names: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"'\*' works only alone, .*name each tool, or several in a tuple"):
        Settings(policies={names: Never()})
