"""A server that accepts connections and never answers: an agent with many large results waits for it only once."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING

from coatcheck import Kept, Offloader, S3Storage, TextBlock
from coatcheck.engine.loops import CLEAN_UP_SECONDS, TIME_LIMIT_SECONDS
from coatcheck.testing.samples import numbered_lines
from tests.storage.seaweed import BUCKET, session

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 5
TOGETHER = 10


def test_a_server_that_never_answers_delays_an_agent_only_once(figure: Callable[[str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:  # the kernel connects, and nobody accepts
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        offloader = Offloader(S3Storage(BUCKET, boto_session=session(), endpoint_url=endpoint))
        waited = [asyncio.run(_step(offloader, number)) for number in range(STEPS)]

    figure(
        f"S3 that never answers: {STEPS} x {TOGETHER} results stayed whole in the conversation, after"
        f" {', '.join(f'{seconds:.1f}' for seconds in waited)} s"
    )
    assert waited[0] < TIME_LIMIT_SECONDS + CLEAN_UP_SECONDS + 10
    assert sum(waited[1:]) < TIME_LIMIT_SECONDS / 2


async def _step(offloader: Offloader, number: int) -> float:
    """Offload the results of one step concurrently; return the seconds until the agent continued."""
    blocks = [TextBlock(numbered_lines(1_500, first=1 + number * TOGETHER + each)) for each in range(TOGETHER)]
    began = time.perf_counter()
    outcomes = await asyncio.gather(*(offloader.aoffload([block], tool_name="t") for block in blocks))
    assert [outcome.blocks for outcome in outcomes if isinstance(outcome, Kept)] == [(block,) for block in blocks]
    return time.perf_counter() - began
