"""Invariant 9, measured: the event loop goes on while results are offloaded, searched and counted for the first time.

Times are processor time of this process, not wall-clock time, so other programs do not count.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage, InvalidRequest, Offloaded, Offloader, TextBlock, TiktokenCounter
from coatcheck.adapting import Arrival, Batch, Delivery, asettle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

REPOSITORY = Path(__file__).parents[2]

RESULTS = 32
LINES = 25_000
"""Lines of each result, which make a megabyte."""

LONGEST = 0.5
"""The longest that the loop may wait for its turn, as a share of all processor time. Measured: 0.1. On the loop itself,
the work of all results would be one wait: 1.0."""

OWN = 0.25
"""The most that may run on the loop's own thread, as a share of all processor time. Measured: 0.1, most of it hops to
threads and back."""

FIRST_USE = """
import asyncio, json, sys, time
from tests.core.test_stall import measured
from coatcheck import FileStorage, Offloader, TextBlock

async def first_use():
    call = Offloader(FileStorage(sys.argv[1])).aoffload([TextBlock("some words " * 20_000)], tool_name="t")
    return await measured(call)

spent = asyncio.run(first_use())
import tiktoken
from coatcheck.core.vocabulary import _bundled_ranks, load_vocabulary
ready = load_vocabulary("o200k_base").encoding
ranks = _bundled_ranks()
started = time.process_time()
tiktoken.Encoding("again", pat_str=ready._pat_str, mergeable_ranks=ranks, special_tokens=ready._special_tokens)
print(json.dumps({"bare": time.process_time() - started, "longest": spent.longest, "own": spent.own}))
"""


LOADING = """
import asyncio, json, sys, threading
from coatcheck import FileStorage, JsonBlock, Offloader, TextBlock, ToolResult

loading = {"on the loop": [], "elsewhere": []}
thread = threading.get_ident()

def note(event, arguments):
    if event == "import":
        loading["on the loop" if threading.get_ident() == thread else "elsewhere"].append(arguments[0])

async def use_everything():
    offloader = Offloader(FileStorage(sys.argv[1]))
    sys.addaudithook(note)
    await offloader.aoffload([JsonBlock({"small": True})], tool_name="t")
    blocks = (TextBlock("some words" * 20_000), JsonBlock([{"number": n} for n in range(20_000)]))
    text, records = (await offloader.aoffload(blocks, tool_name="t")).references
    await offloader.aoffload_step([ToolResult(blocks=blocks, tool_name="t")])
    await offloader.aretrieve(text, pattern="w.rds")
    await offloader.aretrieve(records, query="[0]")
    await offloader.aload(text)
    await offloader.aexpand(text.id)
    await offloader.asweep(max_age_seconds=0)
    await offloader.adelete_scope("default")

asyncio.run(use_everything())
print(json.dumps(loading))
"""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Seconds of processor time."""

    total: float
    longest: float  # between two turns of the loop
    own: float  # on the thread of the loop


async def measured(work: Awaitable[object]) -> Spent:
    """Return what ``work`` cost, and how long the loop went without a turn in the meantime."""
    gc.collect()
    gc.freeze()  # else a collection might scan what other tests left, on the loop's thread: 0.14 s once
    gaps = [0.0]
    started, own = time.process_time(), time.thread_time()

    async def tick() -> None:
        last = started  # the wait for the first turn counts too
        while True:
            await asyncio.sleep(0.005)  # turns are work on the loop's thread too: half of it at a thousand per second
            now = time.process_time()
            gaps.append(now - last)
            last = now

    ticking = asyncio.create_task(tick())
    await work
    await asyncio.sleep(0.006)  # one more turn, so that the last gap counts
    spent = Spent(total=time.process_time() - started, longest=max(gaps), own=time.thread_time() - own)
    ticking.cancel()
    gc.unfreeze()
    return spent


@pytest.mark.no_cover  # tracing slows only Python code, which is most of what runs on the loop
async def test_the_loop_gets_its_turn_while_many_results_are_offloaded_and_searched(tmp_path: Path) -> None:
    TiktokenCounter().warm_up()
    offloader = Offloader(FileStorage(tmp_path))
    texts = ["".join(f"{line} of {number}, with some words\n" for line in range(LINES)) for number in range(RESULTS)]
    outcomes: list[Offloaded] = []

    async def offload(text: str) -> None:
        outcome = await offloader.aoffload([TextBlock(text)], tool_name="search")
        assert isinstance(outcome, Offloaded)
        outcomes.append(outcome)

    async def search(outcome: Offloaded) -> None:
        found = await offloader.aretrieve(str(outcome.references[0]), pattern=f"^{LINES - 1} of")
        assert found.matches == 1

    offloading = await measured(asyncio.gather(*map(offload, texts)))
    searching = await measured(asyncio.gather(*map(search, outcomes)))

    assert len(outcomes) == RESULTS
    for spent in (offloading, searching):
        assert spent.longest < LONGEST * spent.total
        assert spent.own < OWN * spent.total


def test_the_first_use_holds_the_loop_no_longer_than_tiktoken_needs_to_build_its_table(tmp_path: Path) -> None:
    # Measured: at most the same for the longest wait, and a tenth for the loop's own thread. Other programs may slow
    # one of the two runs, but hardly three times in a row.
    assert any(_is_short(run(FIRST_USE, tmp_path / str(number))) for number in range(3))


def _is_short(spent: dict[str, float]) -> bool:
    return spent["longest"] < 1.6 * spent["bare"] and spent["own"] < spent["bare"] / 2


def test_no_module_is_loaded_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    loading = run(LOADING, tmp_path)

    assert loading["on the loop"] == []
    assert {"coatcheck.core.preview.text", "coatcheck.core.reading.search", "tiktoken"} <= set(loading["elsewhere"])


def run(script: str, folder: Path) -> Any:  # noqa: ANN401 - what the script prints as JSON
    """Run ``script`` in a new interpreter that imports what this one can: the tests may run from a wheel."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    command = [sys.executable, "-c", script, str(folder)]
    return json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


@dataclass(frozen=True, kw_only=True)
class Texts(Delivery[list[str]]):
    """A result of strings only, whose adapter records the threads on which it converts."""

    raw: list[str]
    threads: set[threading.Thread] = field(default_factory=set)

    def look(self) -> Sequence[Batch]:
        arrival = Arrival(content=self.raw, convert=self.blocks_of, tool_name="t")
        return [Batch(arrivals=[arrival], offloader=Offloader(), scope="s")]

    def blocks_of(self, content: list[str]) -> list[TextBlock]:
        self.threads.add(threading.current_thread())
        return list(map(TextBlock, content))

    def put_back(self, changed: Sequence[Any]) -> list[str]:
        self.threads.add(threading.current_thread())
        return [] if changed else self.raw


async def test_many_strings_are_converted_off_the_loop_and_few_on_it() -> None:
    many, few = Texts(raw=["some words"] * 20_000), Texts(raw=["some words " * 20_000])

    for texts in (many, few):
        assert await asettle(texts, logger=logging.getLogger("stall")) == []

    assert threading.current_thread() not in many.threads
    assert few.threads == {threading.current_thread()}


async def test_a_query_of_large_text_that_is_not_json_holds_the_loop_only_for_moments() -> None:
    """In one call, the search for objects over many lines would hold the interpreter's lock for 0.5 s."""
    offloader = Offloader()
    text = "src/a.py:12: some words\n" * 300_000
    outcome = await offloader.aoffload([TextBlock(text)], tool_name="grep")
    assert isinstance(outcome, Offloaded)

    async def query() -> None:
        with pytest.raises(InvalidRequest, match="neither JSON nor JSON Lines"):
            await offloader.aretrieve(outcome.references[0], query="[0]")

    spents = [await measured(query()) for _ in range(3)]  # share of all processor time: 0.05; in one call it was 0.5

    assert min(spent.longest / spent.total for spent in spents) < 0.25
