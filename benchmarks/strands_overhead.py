"""What the Strands adapter costs beside Strands' own offloader, in one run on one machine.

    python benchmarks/strands_overhead.py            prints both figures and their ratio
    python benchmarks/strands_overhead.py --check    exits with 1 where ours is slower

The hook of each plugin gets one result of 1 KB, which stays, as an agent's event loop hands it over. Both are given the
same event, in turns, and the least of many rounds counts: what else the machine does must not.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from strands import Agent, tool
from strands.hooks import AfterToolCallEvent
from strands.models.openai import OpenAIModel
from strands.vended_plugins import context_offloader as upstream

import coatcheck_strands as ours

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KILOBYTE = "a tool result of 1 KB that stays\n" * 31
CALLS = 2_000
ROUNDS = 40
SLACK = 1.05
"""Two runs of the very same code differ by as much."""


@tool
def search() -> str:
    """Return a result that stays."""
    return KILOBYTE


def step(library: Any) -> Callable[[], Awaitable[object]]:  # noqa: ANN401 - the two have the same names
    """Return what hands one result to the hooks of an agent with the plugin of ``library``."""
    plugin = library.ContextOffloader(library.InMemoryStorage())
    agent = Agent(OpenAIModel(model_id="never asked"), tools=[search], plugins=[plugin], callback_handler=None)
    hook = next(found for found in plugin.hooks if "AfterToolCallEvent" in str(found.__annotations__))
    event = AfterToolCallEvent(
        agent=agent,
        selected_tool=search,
        tool_use={"name": "search", "toolUseId": "1", "input": {}},
        invocation_state={"event_loop_cycle_id": "1"},
        result={"toolUseId": "1", "status": "success", "content": [{"text": KILOBYTE}]},
    )
    return lambda: hook(event)


async def least(hand_over: Callable[[], Awaitable[object]]) -> float:
    """Return the time of one hand-over in microseconds, in one round."""
    started = time.perf_counter()
    for _ in range(CALLS):
        await hand_over()
    return (time.perf_counter() - started) / CALLS * 1e6


async def main() -> int:
    """Measure, print, and say whether ours is slower."""
    parser = argparse.ArgumentParser(description="What the adapter costs beside Strands' own offloader.")
    parser.add_argument("--check", action="store_true", help="exit with 1 where ours is slower")
    options = parser.parse_args()
    theirs, own = step(upstream), step(ours)
    rounds = [(await least(theirs), await least(own)) for _ in range(ROUNDS)]
    fastest = min(one for one, _ in rounds), min(other for _, other in rounds)
    ratio = fastest[1] / fastest[0]
    print(f"strands: 1 KB that stays: its own {fastest[0]:.2f} µs, ours {fastest[1]:.2f} µs, {ratio:.2f} x")
    return 1 if options.check and ratio > SLACK else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
