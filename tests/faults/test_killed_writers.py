"""200 writers killed with SIGKILL at random moments: everything that they acknowledged is read back, byte for byte."""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage
from coatcheck.testing.storage import check_holds
from tests.storage.writing import entry_of, write_into

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLS = 200
SIZE = 400_000
"""Bytes. Large enough that most kills happen while an entry is being written."""

LONGEST_SECONDS = 0.05
"""The longest life of a writer after its first save: about ten saves."""

PROCESSES = get_context("forkserver")
"""Forks each writer from a server, so that the interpreter does not start 200 times."""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("fsync", [False, True], ids=["without fsync", "with fsync"])
def test_nothing_that_a_killed_writer_acknowledged_is_lost(
    tmp_path: Path, figure: Callable[[str], None], *, fsync: bool
) -> None:
    PROCESSES.set_forkserver_preload(["tests.storage.writing"])
    moments = random.Random(4)  # noqa: S311 - no secret
    acknowledged = lost = wrong = left = 0
    for kill in range(KILLS):
        root = tmp_path / str(kill)
        numbers = kill_a_writer(root, moments.uniform(0, LONGEST_SECONDS), fsync=fsync)
        acknowledged += len(numbers)
        storage = FileStorage(root)
        for number in numbers:
            entry = entry_of(number, size=SIZE)
            found = storage.load(entry.key)
            lost += found is None
            wrong += found is not None and found.content != entry.content
        left += len(list(root.rglob("*.tmp")))
        storage.sweep((), before=time.time() + 60)
        assert not list(root.rglob("*.tmp"))
        for listed in storage.entries(""):
            found = storage.load(listed.key)
            wrong += found is None or len(found.content) != SIZE
        unfinished = entry_of(len(numbers), size=SIZE)
        storage.save(unfinished.key, unfinished.content, content_type="text/plain", metadata=unfinished.metadata)
        check_holds(storage, unfinished, "after the save that the kill broke off was made again")

    figure(
        f"{KILLS} writers killed, fsync={fsync}: {acknowledged:,} saves of 400 KB acknowledged, {lost} lost,"
        f" {wrong} wrong or half; {left} were killed amid a save, and a sweep cleared what they left"
    )
    assert acknowledged >= KILLS
    assert left > 0, "no kill came amid a save: make the contents larger"
    assert (lost, wrong) == (0, 0)


def kill_a_writer(root: Path, seconds: float, *, fsync: bool) -> list[int]:
    """Start a writer, kill it ``seconds`` after its first save, and return what it acknowledged."""
    ours, its = PROCESSES.Pipe(duplex=False)
    writer = PROCESSES.Process(target=write_into, args=(str(root), its), kwargs={"size": SIZE, "fsync": fsync})
    writer.start()
    its.close()
    with ours:
        acknowledged = [ours.recv()]
        time.sleep(seconds)  # waits for nothing: it picks the moment of the kill
        writer.kill()
        with suppress(EOFError):
            while True:
                acknowledged.append(ours.recv())
    writer.join()
    return acknowledged
