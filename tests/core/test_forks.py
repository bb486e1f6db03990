"""A child works even if it is forked while another thread uses this package for the first time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coatcheck.core import forks

REPOSITORY = Path(__file__).parents[2]

PATIENCE = 60
"""Seconds until a hanging child is ended. None waits that long if the code is right."""

FIRST_NEEDED = (
    "coatcheck.engine.offloading",
    "coatcheck.core.preview.delimited",
    "coatcheck.core.reading.search",
    "hashlib",
    "orjson",
    "tiktoken",
    "tiktoken.core",
    "gzip",
    "importlib.resources",
    "re2",
    "jmespath",
)
"""Modules loaded by the first offload and the first reads of a process. Some of them load others in this list."""

SERVER = """
import os, signal, sys, threading
from coatcheck import ByteCounter, FileStorage, JsonBlock, Offloader, TextBlock, TiktokenCounter
from coatcheck.core import forks

PATIENCE = forks.LOADING_SECONDS = int(sys.argv[1])  # a slow machine may load for longer than a fork waits
OF_THE_VOCABULARY = {"tiktoken", "tiktoken.core", "gzip", "importlib.resources"}

def use(folder, counter):
    offloader = Offloader(FileStorage(folder), token_counter=counter)
    blocks = [TextBlock("more lines\\n" * 20_000 + "some words"), JsonBlock([{"number": n} for n in range(5_000)])]
    text, records = offloader.offload(blocks, tool_name="t", scope="s").references
    assert offloader.retrieve(text, scope="s", pattern="w.rds").matches
    assert offloader.retrieve(records, scope="s", query="[0]").text

class Watch:
    # Asked while the module's lock is held; it lets the loading go on once the process is forking.
    def __init__(self, name):
        self.name, self.met = name, False
        self.reached, self.forking = threading.Event(), threading.Event()

    def find_spec(self, name, path=None, target=None):
        if name == self.name and threading.current_thread() is not threading.main_thread() and not self.met:
            self.met = True
            self.reached.set()
            self.forking.wait(PATIENCE)

def serve(name, folder):
    # The vocabulary takes most of the time, and is no part of the other modules.
    counter = TiktokenCounter() if name in OF_THE_VOCABULARY else ByteCounter()
    # The exit code tells what became of the child of a server whose other thread was loading a module.
    watch = Watch(name)
    sys.meta_path.insert(0, watch)
    os.register_at_fork(before=watch.forking.set)  # the last that is registered is called first
    def first_use():
        try:
            use(folder, counter)
        finally:
            watch.reached.set()
    threading.Thread(target=first_use, daemon=True).start()
    watch.reached.wait(PATIENCE)
    if not watch.met:
        os._exit(3)
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE)
        code = 1
        try:
            use(folder, counter)
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(0 if status == 0 else 2)

for name in sys.argv[3:]:
    server = os.fork()
    if not server:
        serve(name, sys.argv[2])
    print(name, os.waitstatus_to_exitcode(os.waitpid(server, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_a_child_forked_while_another_thread_loads_a_module_works(tmp_path: Path) -> None:
    # The tests may run from a wheel, so the script must find whatever this process imports.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "ignore", "-c", SERVER, str(PATIENCE), str(tmp_path), *FIRST_NEEDED]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    ended = dict(line.split() for line in done.stdout.splitlines())
    assert ended == dict.fromkeys(FIRST_NEEDED, "0"), done.stderr
    assert not done.stderr


def test_threads_load_concurrently_and_only_a_fork_waits_for_the_loads_of_other_threads() -> None:
    loading = forks._Loading()
    together = threading.Barrier(3)
    leave, held = threading.Event(), threading.Event()

    def load() -> None:
        with loading:
            together.wait(PATIENCE)  # until both threads are loading
            leave.wait(PATIENCE)

    def hold() -> None:
        with loading:  # a fork need not wait for loads on its own thread
            loading.hold()
        held.set()
        loading.let_go()

    threads = [threading.Thread(target=load, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    holding = threading.Thread(target=hold, daemon=True)
    together.wait(PATIENCE)
    holding.start()
    was_held = held.is_set()
    leave.set()
    assert held.wait(PATIENCE)
    for thread in (*threads, holding):
        thread.join(PATIENCE)

    assert not was_held
    assert not any(thread.is_alive() for thread in threads)


def test_a_fork_waits_no_longer_than_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "LOADING_SECONDS", 0.01)
    loading, leave, inside = forks._Loading(), threading.Event(), threading.Event()

    def load() -> None:
        with loading:
            inside.set()
            leave.wait(PATIENCE)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    inside.wait(PATIENCE)
    loading.hold()
    is_loading = thread.is_alive()
    loading.let_go()
    leave.set()
    thread.join(PATIENCE)

    assert is_loading
    assert not thread.is_alive()
