"""A forked child offloads and reads, even if another thread of its parent was in the middle of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PATIENCE = 60
"""Seconds until a hanging child is ended. None waits that long if the code is right."""

PROGRAM = """
import os, signal, sys, threading
from coatcheck_strands import ContextOffloader, InMemoryStorage
from coatcheck_strands.compat.cycles import used_by

reached, never, main = threading.Event(), threading.Event(), threading.current_thread()

def wait():
    if threading.current_thread() is not main:
        reached.set()
        never.wait()

class SlowAgent:
    event_loop_metrics = property(lambda self: wait())

class SlowScope(str):
    def __hash__(self):
        wait()
        return super().__hash__()

class SlowToBind(InMemoryStorage):
    def for_sandbox(self, sandbox):
        wait()
        return self

class AgentInASandbox:
    sandbox = None

storage = SlowToBind()
plugin, agent = ContextOffloader(storage), AgentInASandbox()

def note_use():
    with used_by(SlowAgent()):
        storage.cycles.note("a key")

first, in_the_child = {
    "uses": (note_use, lambda: storage.cycles.note("a key")),
    "scopes": (lambda: storage.known_scopes.note(SlowScope("s1")), storage.known_scopes.names),
    "offloaders": (lambda: plugin.offloader_of(agent), lambda: plugin.offloader_of(agent)),
}[sys.argv[1]]
threading.Thread(target=first, daemon=True).start()
reached.wait()
child = os.fork()
if not child:
    signal.alarm(int(sys.argv[2]))
    in_the_child()
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.parametrize("what", ["uses", "scopes", "offloaders"])
def test_a_child_does_not_wait_for_a_lock_that_another_thread_held_at_the_fork(what: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, what, str(PATIENCE)], check=False, timeout=4 * PATIENCE)
    assert done.returncode == 0
