"""What a framework may say before a result is offloaded: ``measured_tokens``, its own count, and ``confirm``."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from coatcheck import (
    Always,
    ByteCounter,
    InvalidRequest,
    Kept,
    MediaBlock,
    Never,
    Offloaded,
    Offloader,
    OverChars,
    OverTokens,
    TextBlock,
    TiktokenCounter,
    TokenCounter,
)

LIMIT = 600
BIG = TextBlock("".join(f"row {number}\n" for number in range(5_000)))
SMALL = TextBlock("x" * LIMIT)


def offloader(**knobs: Any) -> Offloader:  # noqa: ANN401 - those of Offloader
    return Offloader(max_result_tokens=LIMIT, preview_tokens=200, token_counter=ByteCounter(), **knobs)


class Asked:
    """A callable, sync or async, that always gives the same answer and records the arguments of each call."""

    def __init__(self, answer: object, *, is_async: bool) -> None:
        self.answer = answer
        self.is_async = is_async
        self.calls: list[tuple[object, ...]] = []

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401 - whatever it was given
        self.calls.append(arguments)
        return self._later() if self.is_async else self._now()

    async def _later(self) -> object:
        return self._now()

    def _now(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


both_colours = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@both_colours
@pytest.mark.parametrize(("count", "outcome"), [(LIMIT, Kept), (LIMIT + 1, Offloaded)])
def test_the_frameworks_own_count_decides(*, is_async: bool, count: int, outcome: type) -> None:
    measure = Asked(count, is_async=is_async)

    assert isinstance(offloader().offload([BIG], tool_name="t", measured_tokens=measure), outcome)
    assert isinstance(asyncio.run(offloader().aoffload([BIG], tool_name="t", measured_tokens=measure)), outcome)
    assert measure.calls == [(), ()]


def test_a_result_that_certainly_fits_is_not_counted() -> None:
    measure = Asked(1_000_000, is_async=False)

    outcome = offloader().offload([SMALL], tool_name="t", measured_tokens=measure)

    assert isinstance(outcome, Kept)
    assert measure.calls == []


def test_the_framework_is_asked_when_the_outcome_is_not_certain() -> None:
    measure = Asked(1, is_async=False)

    outcome = offloader().offload([MediaBlock(b"x" * 10, "image/png")], tool_name="t", measured_tokens=measure)

    assert isinstance(outcome, Kept)
    assert measure.calls == [()]


@pytest.mark.parametrize("answer", [RuntimeError("no network"), "many", None, -1, True, 1.5])
def test_a_failing_count_leaves_the_decision_to_the_counter(answer: object) -> None:
    measure = Asked(answer, is_async=False)

    assert isinstance(offloader().offload([BIG], tool_name="t", measured_tokens=measure), Offloaded)


def test_a_failing_count_is_reported() -> None:
    events: list[Any] = []
    measure = Asked(RuntimeError("no network"), is_async=False)

    offloader(on_event=events.append).offload([BIG], tool_name="t", measured_tokens=measure)

    assert [event.kind for event in events] == ["failed", "offloaded"]
    assert "measured_tokens of 't'" in events[0].reason


@both_colours
async def test_confirm_keeps_a_result_of_any_size(*, is_async: bool) -> None:
    confirm = Asked(answer=False, is_async=is_async)

    outcome = await offloader(max_inline_tokens=LIMIT).aoffload([BIG], tool_name="t", confirm=confirm)

    assert isinstance(outcome, Kept)
    assert outcome.reason == "policy"
    assert len(confirm.calls) == 1


def test_confirm_is_asked_with_the_tokens_of_the_result() -> None:
    confirm = Asked(answer=True, is_async=False)

    outcome = offloader().offload([BIG], tool_name="t", measured_tokens=4_321, confirm=confirm)

    assert isinstance(outcome, Offloaded)
    assert confirm.calls == [(4_321,)]


@pytest.mark.parametrize("policy", [None, Never()])
def test_confirm_is_not_asked_about_a_result_that_stays(policy: Any) -> None:  # noqa: ANN401 - a policy or None
    confirm = Asked(answer=True, is_async=False)
    block = BIG if policy is not None else TextBlock("é" * LIMIT)

    assert isinstance(offloader().offload([block], tool_name="t", policy=policy, confirm=confirm), Kept)
    assert confirm.calls == []


def test_confirm_is_asked_whichever_policy_fired() -> None:
    outcome = offloader().offload([SMALL], tool_name="t", policy=Always(), confirm=Asked(answer=False, is_async=False))

    assert isinstance(outcome, Kept)


# Decisions that are certain at almost no cost.


@pytest.mark.parametrize(
    "policy",
    [None, OverTokens(300), OverChars(100), Never(), Always(), lambda _: True],
    ids=["none", "tokens", "characters", "never", "always", "function"],
)
@pytest.mark.parametrize("is_error", [False, True])
@pytest.mark.parametrize("character", ["x", "é", "漢", "\ud800"], ids=ascii)
def test_offload_keeps_everything_that_keep_if_small_keeps(*, policy: Any, is_error: bool, character: str) -> None:  # noqa: ANN401
    for length in (0, 1, 299, 300, 301, 600, 601, 50_000, 50_001, 300_000):
        subject = offloader(policies={} if policy is None else {"t": policy})
        texts = [character * (length // 2), character * (length - length // 2)]

        if subject.keep_if_small(texts, tool_name="t", is_error=is_error):
            kept = subject.offload([*map(TextBlock, texts)], tool_name="t", is_error=is_error)
            assert isinstance(kept, Kept), length
            assert subject.stats().results == 2, length


def test_a_small_result_is_kept_at_once_and_counted() -> None:
    subject = offloader()

    assert subject.keep_if_small(["x" * 300, "x" * 300], tool_name="t")
    assert not subject.keep_if_small(["x" * 300, "x" * 301], tool_name="t")
    assert subject.keep_if_small(["x" * 5_000], tool_name="t", is_error=True)
    assert subject.stats().results == 2


def test_nothing_is_certain_if_a_listener_or_a_policy_must_be_called() -> None:
    assert not offloader(on_event=print).keep_if_small(["x"], tool_name="t")
    assert not offloader(policies={"*": lambda _: False}).keep_if_small(["x"], tool_name="t")
    assert not offloader(policies={"*": Always()}).keep_if_small(["x"], tool_name="t")


def test_a_failing_confirm_is_ignored() -> None:
    confirm = Asked(RuntimeError("broken"), is_async=False)

    assert isinstance(offloader().offload([BIG], tool_name="t", confirm=confirm), Offloaded)


@pytest.mark.parametrize("odd", [-1, 1.5, math.nan, True, "9", [9]])
def test_an_invalid_count_from_the_framework_is_refused(odd: Any) -> None:  # noqa: ANN401 - whatever a host may pass
    with pytest.raises(InvalidRequest, match="measured_tokens must be a whole number of at least 0"):
        offloader().offload([BIG], tool_name="t", measured_tokens=odd)


@pytest.mark.parametrize("odd", [-1, math.nan, math.inf, None, "9", True])
def test_a_counter_that_returns_no_valid_count_is_named(odd: Any) -> None:  # noqa: ANN401 - whatever a counter may return
    class Odd(TokenCounter):
        def count(self, text: str) -> int:
            del text
            return odd  # type: ignore[no-any-return]

    with pytest.raises(InvalidRequest, match=r"Odd\.count must return a whole number of at least 0, not "):
        Offloader(token_counter=Odd()).offload([BIG], tool_name="t")


class CharactersCounted(TiktokenCounter):
    """Counts as its base class does, and adds up the characters it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = 0

    def _encode(self, window: str) -> list[int]:
        self.characters += len(window)
        return super()._encode(window)


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        # Takes 18,316: 2,500 tokens to decide, six windows of 256 characters to estimate, and 1,000 tokens to choose,
        # join and price. Asking again whether the result exceeds its preview, or its placeholder, takes 28,637.
        pytest.param(2_200, 20_000, id="100 KB"),
        # Takes 12,253: no token is long enough for this much text to fit the threshold.
        pytest.param(100_000, 14_000, id="5 MB"),
    ],
)
def test_an_offloaded_result_is_counted_once_and_no_further_than_needed(lines: int, most: int) -> None:
    counter = CharactersCounted()
    text = "".join(f"2026-03-01 12:00:{number % 60:02} INFO request {number} served\n" for number in range(lines))
    outcome = Offloader(token_counter=counter).offload([TextBlock(text)], tool_name="read_log", scope="s")

    assert isinstance(outcome, Offloaded)
    assert counter.characters < most
