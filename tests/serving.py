"""Servers on loopback that tests start as programs and stop at the end."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ("CLIENT_SECONDS", "free_ports", "listens", "running")

START_SECONDS, STOP_SECONDS = 60.0, 20.0

CLIENT_SECONDS = 60.0
"""Seconds that clients wait for a server on loopback. Most connect within 5 s or fail, even if their process stalls."""


def free_ports(count: int) -> list[int]:
    """Return distinct loopback ports that are free now."""
    with ExitStack() as open_until_all_are_known:
        sockets = [open_until_all_are_known.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@contextmanager
def running(command: Sequence[str], folder: Path, *, port: int, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a server in ``folder`` until the end of the block.

    Raises:
        RuntimeError: it did not start; the message holds the end of its output.

    """
    said = folder / "server.log"
    with said.open("wb") as log, subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    msg = f"{command[0]} did not start:\n" + said.read_text(errors="replace")[-2_000:]
                    raise RuntimeError(msg)
                time.sleep(0.05)
            yield
        finally:
            process.terminate()  # some write their data every few seconds and at this signal
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def listens(port: int) -> bool:
    """Return whether a server listens at ``port``."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
