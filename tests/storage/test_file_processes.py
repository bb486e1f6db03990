"""FileStorage between processes: they write the same keys, read each other's entries, and are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from coatcheck import FileStorage, Offloader, StorageError
from coatcheck.storage import folder
from coatcheck.testing.samples import make_entry
from coatcheck.testing.storage import check_holds, save
from tests.storage.writing import entry_of, write_and_read

ENTRIES = 150
KILLS = 4
SIZE = 400_000
"""Bytes. Large enough that most kills happen while an entry is being written."""

SAVE_SECONDS = 0.004
"""The approximate time to make and save one such entry."""

REPOSITORY = Path(__file__).parents[2]


def test_two_processes_write_the_same_keys(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        running = [processes.submit(write_and_read, str(tmp_path), ENTRIES) for _ in range(2)]
        assert [process.result() for process in running] == [ENTRIES, ENTRIES]

    storage = FileStorage(tmp_path)  # this process has never seen that folder
    assert len(storage.entries("")) == ENTRIES
    for number in range(ENTRIES):
        check_holds(storage, entry_of(number, size=1_000 + number), "after two processes wrote it")
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_writer_leaves_whole_entries_only(tmp_path: Path, kill: int) -> None:
    # The tests may run from a wheel: the writer must find all modules that this process imports.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "tests.storage.writing", str(tmp_path), str(SIZE)]
    with subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(1 + kill)]
        time.sleep(kill * SAVE_SECONDS / KILLS)  # waits for nothing: each kill hits another moment of a save
        writer.kill()
        said += writer.stdout.readlines()

    storage = FileStorage(tmp_path)
    acknowledged = [int(line) for line in said if line.endswith("\n")]
    assert len(acknowledged) > kill, "the writer died by itself"
    for number in acknowledged:
        check_holds(storage, entry_of(number, size=SIZE), "although its writer was killed")
    for listed in storage.entries(""):
        assert listed.size == SIZE, "half an entry is listed"
        assert storage.load(listed.key) is not None
    unfinished = entry_of(len(acknowledged), size=SIZE)
    storage.save(unfinished.key, unfinished.content, content_type=unfinished.content_type, metadata=unfinished.metadata)
    check_holds(storage, unfinished, "after the save that the kill broke off was made again")


def test_a_save_does_not_wait_for_ever_for_a_lock_that_another_process_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")  # not on Windows
    monkeypatch.setattr(folder, "LOCK_SECONDS", 0.01)
    storage = FileStorage(tmp_path)
    entry = make_entry(b"content")
    save(storage, entry)
    holding = os.open(storage.local_path(entry.key, content_type="text/plain").parent, os.O_RDONLY)
    try:
        fcntl.flock(holding, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another process keeps it locked"):
            save(storage, entry)
        with pytest.raises(StorageError, match=r"failed: TimeoutError: .* another process keeps it locked"):
            Offloader(storage).delete_scope("contract")
        assert storage.load(entry.key) is not None, "reading needs no lock"
    finally:
        os.close(holding)

    save(storage, entry)
