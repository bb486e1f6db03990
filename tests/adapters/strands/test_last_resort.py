"""If rewriting a result fails, the hard limit still holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coatcheck import InMemoryStorage, Offloader
from coatcheck_strands import ContextOffloader, offloaded_references
from coatcheck_strands import hook as module
from tests.adapters.failing import ERRORS, HUGE, LARGE, FailingOffloader, FullStorage, is_cut
from tests.adapters.odd import LIMIT, MAX_TOKENS, odd_forms
from tests.adapters.strands.agents import agent, reading, results, returning, run, text_of


@ERRORS
def test_a_result_above_the_hard_limit_is_stored_raw_and_can_be_read_back(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)
    tools = [returning(HUGE, name="huge"), returning(LARGE, name="large")]
    turns: Any = ([("huge", {}), ("large", {})], reading(offset=-10))
    subject = agent(ContextOffloader(offloader, scope="mine"), tools=tools, turns=turns)

    answer = subject("go")

    huge, large, found = results(subject)
    assert text_of(large) == LARGE
    assert len(text_of(huge)) < 6_000
    assert offloader.load(offloaded_references(huge)[0], scope="mine").text == HUGE
    assert "huge  END\n" in text_of(found)
    assert str(answer).strip() == "done"
    assert sum("could not offload" in record.message for record in caplog.records) == 2


@ERRORS
def test_a_huge_result_that_cannot_be_stored_is_cut(error: Exception) -> None:
    plugin = ContextOffloader(FailingOffloader(error, storage=FullStorage()))

    assert is_cut(text_of(run(plugin, tools=[returning(HUGE)])))


def test_media_stay_unless_one_alone_is_too_large() -> None:
    small = {"image": {"format": "png", "source": {"bytes": b"q" * 3_000}}}
    large = {"image": {"format": "png", "source": {"bytes": b"q" * 30_000}}}
    plugin = ContextOffloader(FailingOffloader(RuntimeError()))

    result = run(plugin, tools=[returning("a caption", small, large)])

    assert [next(iter(block)) for block in result["content"]] == ["text", "image"]
    assert result["content"][1] == small
    assert "a caption" in text_of(result)
    assert "bytes is not shown]" in text_of(result)


def test_a_failed_conversion_does_not_bypass_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "blocks_of", broken)

    assert offloaded_references(run(ContextOffloader(Offloader(max_inline_tokens=5_000)), tools=[returning(HUGE)]))


def test_nothing_is_stored_if_the_scope_cannot_be_found() -> None:
    def broken(_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()

    result = run(ContextOffloader(Offloader(storage, max_inline_tokens=5_000), scope=broken), tools=[returning(HUGE)])

    assert is_cut(text_of(result))
    assert list(storage.entries("")) == []


MEDIUM = b"a medium"


@pytest.mark.parametrize(
    "shape",
    [
        {"text": "a"},
        {"json": {"a": 1}},
        {"image": {"format": "png", "source": {"bytes": MEDIUM}}},
        {"document": {"format": "pdf", "name": "a", "source": {"bytes": MEDIUM}}},
    ],
    ids=repr,
)
def test_no_odd_part_raises_or_exceeds_the_limit(shape: object) -> None:
    plugin = ContextOffloader(scope="mine", max_inline_tokens=MAX_TOKENS)
    # Fields next to the bytes of a medium are not measured.
    parts = [form for form in odd_forms(shape) if isinstance(form, dict) and repr(MEDIUM) not in repr(form)]
    tools = [returning(part, "and a text", name=f"fetch_{number}") for number, part in enumerate(parts)]
    turns: Any = ([(f"fetch_{number}", {}) for number in range(len(parts))],)
    subject = agent(plugin, tools=tools, turns=turns)

    subject("go")

    assert len(results(subject)) == len(parts)
    assert max(len(json.dumps(result["content"], default=repr)) for result in results(subject)) <= LIMIT
