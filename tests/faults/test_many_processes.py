"""8 processes write, read, delete and sweep one folder for 20 seconds: nothing is wrong, lost or half-written."""

from __future__ import annotations

import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING

from coatcheck import FileStorage
from coatcheck.testing.storage import save
from tests.storage.writing import entry_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROCESSES = 8
SECONDS = 20.0
KEPT = 500
"""Entries that every process saves and reads and none deletes: once saved, none may ever be missing."""

DELETED = 50
"""Further entries that every process saves and deletes: they may be missing, but never half-written or wrong."""

HOUR = 3_600.0


@dataclass
class Counts:
    """The actions and findings of one process."""

    saves: int = 0
    loads: int = 0
    deletions: int = 0
    sweeps: int = 0
    lost: int = 0
    wrong: int = 0


def work(root: str, seed: int) -> Counts:
    """Do what agents and clean-up jobs do, at random, until time is up."""
    storage, chance, counts = FileStorage(root), random.Random(seed), Counts()  # noqa: S311 - no secret
    mine: set[int] = set()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        number = chance.randrange(KEPT + DELETED)
        entry = entry_of(number, size=1_000 + 37 * number)
        action = chance.random()
        if action < 0.45:
            save(storage, entry)
            mine.add(number)
            counts.saves += 1
        elif action < 0.9:
            found = storage.load(entry.key)
            counts.loads += 1
            counts.lost += found is None and number in mine and number < KEPT
            counts.wrong += found is not None and found.content != entry.content
        elif action < 0.99:
            gone = entry_of(KEPT + number % DELETED, size=1_000 + 37 * (KEPT + number % DELETED))
            storage.delete(gone.key)
            counts.deletions += 1
        else:
            keys = [listed.key for listed in storage.entries("")]
            storage.sweep(keys, before=time.time() - HOUR)
            counts.sweeps += 1
    return counts


def test_eight_processes_share_one_folder(tmp_path: Path, figure: Callable[[str], None]) -> None:
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as processes:
        done = [running.result() for running in [processes.submit(work, str(tmp_path), n) for n in range(PROCESSES)]]

    total = {name: sum(getattr(counts, name) for counts in done) for name in vars(Counts())}
    storage = FileStorage(tmp_path)
    half = sum(storage.load(listed.key) is None for listed in storage.entries(""))
    left = len(list(tmp_path.rglob("*.tmp")))
    figure(
        f"{PROCESSES} processes on one folder for {SECONDS:.0f} s: {total['saves']:,} saves, {total['loads']:,} loads,"
        f" {total['deletions']:,} deletions, {total['sweeps']:,} sweeps; {total['lost']} lost, {total['wrong']} wrong,"
        f" {half} half, {left} temporary files left"
    )
    assert min(counts.saves for counts in done) > 0
    assert (total["lost"], total["wrong"], half, left) == (0, 0, 0, 0)
