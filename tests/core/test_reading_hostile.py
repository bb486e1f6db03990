"""Any pattern or query a model writes is answered within the budget, or refused."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from coatcheck import Always, ByteCounter, InvalidRequest, Offloader, TextBlock
from tests.core.preview_samples import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

_PATTERNS: list[Callable[[random.Random], str]] = [
    lambda chance: "(" * chance.randint(1, 60) + "a+" + ")+" * chance.randint(1, 60),
    lambda chance: "".join(f"(a{{0,{chance.randint(1, 1_500)}}}" for _ in range(chance.randint(1, 5))) + "x",
    lambda chance: "(?:" + "|".join("a" * n for n in range(1, chance.randint(2, 60))) + ")*$",
    lambda chance: "".join(chance.choices("()[]{}*+?|\\.^$a0-,:=!<\n\ud800é", k=chance.randint(1, 120))),
    lambda chance: r"(\w+\s?)*" * chance.randint(1, 20) + "!",
    lambda chance: f"a{{{chance.randint(0, 10 ** chance.randint(1, 12))},}}",
]
_QUERIES: list[Callable[[random.Random], str]] = [
    lambda chance: "[*]" * chance.randint(1, 400),
    lambda chance: "[" * chance.randint(1, 900) + "@" + "]" * chance.randint(1, 900),
    lambda chance: "map(&" * chance.randint(1, 90) + "@" + ", @)" * chance.randint(1, 90),
    lambda chance: "".join(chance.choices("[]{}()@.*&|!'`\"?<>=,:a0\n\ud800é", k=chance.randint(1, 120))),
    lambda chance: "!" * chance.randint(1, 90) + "a",
]


@pytest.mark.no_cover
def test_hostile_patterns_and_queries_are_answered_or_refused() -> None:
    chance = random.Random(20_260_101)  # noqa: S311 - reproducible, not secret
    contents = [SAMPLES["list of objects"][1](60), "[" * 200 + "]" * 200, "a" * 3_000, SAMPLES["log"][1](60)]
    offloader = Offloader(token_counter=ByteCounter(), max_retrieval_tokens=400)
    references = [
        str(offloader.offload([TextBlock(text)], tool_name="t", scope="s", policy=Always()).references[0])
        for text in contents
    ]
    for turn in range(25 * settings().max_examples):  # 10,000 in a thorough run
        reference = references[turn % len(references)]
        name, makers = chance.choice((("pattern", _PATTERNS), ("query", _QUERIES)))
        try:
            answer = offloader.retrieve(reference, scope="s", **{name: chance.choice(makers)(chance)}).text  # type: ignore[arg-type]
        except InvalidRequest as refusal:
            answer = str(refusal)
        assert 10 < len(answer) <= 400 * 4


@pytest.mark.no_cover
def test_a_query_that_doubles_its_result_at_every_step_is_refused() -> None:
    offloader = Offloader(token_counter=ByteCounter(), max_retrieval_tokens=400)
    outcome = offloader.offload([TextBlock("[1, 2, 3]")], tool_name="t", scope="s", policy=Always())

    with pytest.raises(InvalidRequest, match=r"too much work|too deep"):
        offloader.retrieve(str(outcome.references[0]), scope="s", query="[@,@]" + "|[@,@]" * 120)


@pytest.mark.parametrize(
    ("reference", "line_range"),
    [("a." * 10_000_000, None), ("a-0123456789abcdef-0123", "9" * 20_000_000)],
    ids=["reference", "line_range"],
)
def test_an_argument_of_many_megabytes_is_refused_without_parsing_it(reference: str, line_range: str | None) -> None:
    offloader = Offloader(token_counter=ByteCounter())
    started = time.process_time()

    with pytest.raises(InvalidRequest):
        offloader.retrieve(reference, scope="s", line_range=line_range)

    assert time.process_time() - started < 1  # parsing each takes several seconds, in which no other thread can run
