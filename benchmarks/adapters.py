"""What an adapter costs beside its framework's own offloader, in one run on one machine.

    python benchmarks/adapters.py --framework haystack            prints both figures and their ratio
    python benchmarks/adapters.py --framework haystack --check    exits with 1 where ours is slower

One step of an agent with one tool result of 1 KB, which stays. Both are given the same thing, in turns, and the least
of many rounds counts: what else the machine does must not. To add a framework, add a function that returns the two.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import timeit
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

KILOBYTE = "a tool result of 1 KB that stays\n" * 31
CALLS = 2_000
ROUNDS = 40
SLACK = 1.05
"""Two runs of the very same code differ by as much."""


def haystack(folder: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a step through Haystack's own hook, and one through ours: same store, same strategy."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    from haystack.components.agents.state import State  # noqa: PLC0415 - only this framework is installed
    from haystack.dataclasses import ChatMessage, ToolCall  # noqa: PLC0415
    from haystack.hooks import tool_result_offloading as upstream  # noqa: PLC0415

    import coatcheck_haystack as ours  # noqa: PLC0415

    call = ToolCall("search", {}, id="1")
    messages = [
        ChatMessage.from_user("Search."),
        ChatMessage.from_assistant(tool_calls=[call]),
        ChatMessage.from_tool(KILOBYTE, origin=call),
    ]
    state = State(schema={"messages": {"type": list[ChatMessage]}}, data={"messages": messages})

    def step(library: object) -> Callable[[], object]:
        store = library.FileSystemToolResultStore(folder)  # type: ignore[attr-defined]
        hook = library.ToolResultOffloadHook(store, {"*": upstream.OffloadOverChars(4_000)})  # type: ignore[attr-defined]
        return lambda: hook.run(state)

    return step(upstream), step(ours)


def strands(folder: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a step through the hook of Strands' own plugin, and one through ours, both in memory."""
    from strands import Agent, tool  # noqa: PLC0415 - only this framework is installed
    from strands.hooks import AfterToolCallEvent  # noqa: PLC0415
    from strands.models import Model  # noqa: PLC0415
    from strands.vended_plugins import context_offloader as upstream  # noqa: PLC0415

    import coatcheck_strands as ours  # noqa: PLC0415

    del folder

    class NeverAsked(Model):
        """Counts tokens as all of Strands' models do that have no counter of their own, and does nothing else."""

        update_config = get_config = structured_output = stream = NotImplemented

    @tool
    def search() -> str:
        """Return a result that stays."""
        return KILOBYTE

    def step(library: object) -> Callable[[], object]:
        plugin = library.ContextOffloader(library.InMemoryStorage())  # type: ignore[attr-defined]
        agent = Agent(NeverAsked(), tools=[search], plugins=[plugin], callback_handler=None)
        hook = next(found for found in plugin.hooks if "AfterToolCallEvent" in str(found.__annotations__))
        event = AfterToolCallEvent(
            agent=agent,
            selected_tool=search,
            tool_use={"name": "search", "toolUseId": "1", "input": {}},
            invocation_state={"event_loop_cycle_id": "1"},
            result={"toolUseId": "1", "status": "success", "content": [{"text": KILOBYTE}]},
        )

        def run() -> None:
            with suppress(StopIteration):  # neither waits for anything, so no loop is needed
                hook(event).send(None)

        return run

    return step(upstream), step(ours)


FRAMEWORKS = {"haystack": haystack, "strands": strands}


def least(step: Callable[[], object]) -> float:
    """Return the time of one step in microseconds, in one round."""
    return timeit.timeit(step, number=CALLS) / CALLS * 1e6


def main() -> int:
    """Measure, print, and say whether ours is slower."""
    parser = argparse.ArgumentParser(description="What an adapter costs beside its framework's own offloader.")
    parser.add_argument("--framework", choices=sorted(FRAMEWORKS), required=True)
    parser.add_argument("--check", action="store_true", help="exit with 1 where ours is slower")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = FRAMEWORKS[options.framework](folder)
        rounds = [(least(theirs), least(ours)) for _ in range(ROUNDS)]
    fastest = min(one for one, _ in rounds), min(other for _, other in rounds)
    ratio = fastest[1] / fastest[0]
    print(f"{options.framework}: 1 KB that stays: its own {fastest[0]:.2f} µs, ours {fastest[1]:.2f} µs, {ratio:.2f} x")
    return 1 if options.check and ratio > SLACK else 0


if __name__ == "__main__":
    sys.exit(main())
