"""The proxy as a process with its client on pipes, and helpers for processes that are not our children."""

# ruff: noqa: ANN401 - lines are any JSON

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Self

TINY = (sys.executable, str(Path(__file__).parent / "tiny_server.py"))
PATIENCE = 240.0
"""Seconds. Far more than anything here takes, even on a slow machine, so only what hangs fails."""


class Process:
    """The client of a proxy in another process. It writes and reads lines. ``with`` releases everything."""

    def __init__(
        self,
        folder: Path,
        *command: str,
        options: Sequence[str] = (),
        storage: str | None = "store",
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = ("-m", "coatcheck.cli"),
    ) -> None:
        where = [] if storage is None else [f"--storage={folder / storage}"]
        server = ["--", *command] if command else []
        arguments = [sys.executable, *program, "mcp", *where, *options, *server]
        pipe, environment = subprocess.PIPE, {**os.environ, **(env or {})}
        with NamedTemporaryFile(dir=folder, prefix="stderr-", delete=False) as file:
            self._stderr = Path(file.name)
            self.popen = subprocess.Popen(
                arguments, stdin=pipe, stdout=pipe, stderr=stderr or file, env=environment, cwd=folder
            )
        self.folder = folder
        self._lines: Queue[bytes] = Queue()
        self._id = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, method: str, **params: Any) -> int:
        self._id += 1
        self._write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    def notify(self, method: str, **params: Any) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _write(self, message: object) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps(message).encode() + b"\n")
        self.popen.stdin.flush()

    def read(self) -> Any:
        """Return the next line, or None at the end. It must be JSON: nothing else may be on standard output."""
        line = self._lines.get(timeout=PATIENCE)
        return json.loads(line) if line else None

    def ask(self, method: str, **params: Any) -> Any:
        sent = self.send(method, **params)
        answer = self.read()
        assert answer["id"] == sent
        return answer

    def shake_hands(self) -> Any:
        info = {"name": "test", "version": "1"}
        answer = self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        self.notify("notifications/initialized")
        return answer

    def call(self, tool: str, /, **arguments: Any) -> Any:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def said(self, answer: Any) -> str:
        return str(answer["result"]["content"][0]["text"])

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def wait_for_stderr(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while words not in self.stderr:
            assert time.monotonic() < deadline, self.stderr
            os.sched_yield()

    def leave(self) -> int:
        """Let it end by itself, so that its stderr thread can write everything, and return its exit code."""
        assert self.popen.stdin is not None
        self.popen.stdin.close()
        return self.popen.wait(PATIENCE)

    def __exit__(self, *_: object) -> None:
        """Release everything, whatever state the process is in."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.kill()
        self.popen.wait(PATIENCE)
        with suppress(BrokenPipeError):
            self.popen.stdin.close()
        self._reader.join(PATIENCE)
        self.popen.stdout.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return False


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a process that is not our child, such as a grandchild."""
    gone = threading.Event()
    deadline = threading.Timer(PATIENCE, gone.set)
    deadline.start()
    while is_alive(pid):
        assert not gone.is_set(), f"process {pid} is still there"
        os.sched_yield()
    deadline.cancel()


@contextmanager
def handled(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    """Set how processes that start meanwhile handle a signal. Some shells start them with it ignored."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
