"""What the model is told if a sync method meets an async storage on a loop, or an async method runs without asyncio."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, InMemoryStorage, InvalidRequest, Offloader, TextBlock, Truncated, failure_for_model
from tests.core.storages import AsyncDictStorage

if TYPE_CHECKING:
    from collections.abc import Coroutine

LARGE = "a line of a large result\n" * 40_000


def without_asyncio(call: Coroutine[object, object, object]) -> object:
    """Start a coroutine like an event loop other than asyncio's."""
    with pytest.raises(StopIteration) as end:
        call.send(None)
    return end.value.value


async def test_a_sync_read_back_on_a_loop_tells_the_host_but_not_the_model_what_to_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    offloader = Offloader(AsyncDictStorage(), policies={"*": Always()})
    outcome = await offloader.aoffload([TextBlock("a result\n")], tool_name="t", scope="s")

    with pytest.raises(InvalidRequest, match="use the async method") as refused:
        offloader.retrieve(outcome.references[0], scope="s")
    with caplog.at_level(logging.WARNING, logger="coatcheck"):
        told = failure_for_model(refused.value)

    assert "async" not in told
    assert "use the async method" in caplog.text


def test_without_an_asyncio_loop_the_model_is_not_told_of_the_given_scope() -> None:
    outcome = without_asyncio(Offloader(InMemoryStorage()).alast_resort([TextBlock(LARGE)], tool_name="t", scope="s"))

    assert isinstance(outcome, Truncated)
    assert "could not be stored (the host's settings refused it)" in outcome.text
