"""Writes log records to standard error on a separate thread, so that an event loop never waits for a reader.

A client may pass a pipe that it never reads, or the reader may be gone. Then lines are lost, and nothing else.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from queue import Full, Queue

from coatcheck.cli.printing import printable

__all__ = ("BackgroundLog", "log_in_background")

MAX_WAITING = 1_000
"""The most records that wait to be written. A reader that is only slow catches up."""

_LAST_SECONDS = 1.0
"""Seconds that the process waits for the last lines when it ends."""

_STANDARD_ERROR = 2
"""The file descriptor. ``sys.stderr`` is None if it was closed at the start."""


class BackgroundLog(logging.Handler):
    """Writes each record to a file. Indents all its lines but the first, so that none passes for one of ours."""

    def __init__(self, descriptor: int) -> None:
        """Write to an open file, such as ``sys.stderr.fileno()``."""
        super().__init__()
        self._descriptor = descriptor
        self._waiting: Queue[str | None] = Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._write_all, name="coatcheck-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record to be written, or drop it if too many wait."""
        try:
            text = f"coatcheck: {self.format(record).removeprefix('coatcheck ')}"  # as in a message for clients too
        except Exception:  # noqa: BLE001 - whoever logged it must not get this error
            text = f"coatcheck: {record.name} logged something that cannot be printed"
        with suppress(Full):
            self._waiting.put_nowait(text)

    def close(self) -> None:
        """Wait a moment for the last lines."""
        with suppress(Full):
            self._waiting.put_nowait(None)
            self._thread.join(_LAST_SECONDS)
        super().close()

    def _write_all(self) -> None:
        for text in iter(self._waiting.get, None):
            lines = printable(text).replace("\n", "\n  ")
            data = memoryview(f"{lines}\n".encode("utf-8", "replace"))
            with suppress(OSError):
                while data:  # not through ``sys.stderr``: its lock would keep the interpreter from ending
                    data = data[os.write(self._descriptor, data) :]


def log_in_background() -> None:
    """Log what left the conversation, and what failed, for people to see.

    Records of other packages go the same way: Python would write them on the event loop, and wait for the reader.
    """
    handler = BackgroundLog(_STANDARD_ERROR)
    handler.addFilter(_without_traceback)
    for name, level in (("coatcheck", logging.WARNING), ("coatcheck_mcp", logging.INFO), (None, logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False


def _without_traceback(record: logging.LogRecord) -> bool:
    """Replace tracebacks in the ``mcp`` package's records with the error, or with nothing if a line is not a message.

    Servers may print many such lines, and the error would repeat each of them.
    """
    if (record.name.startswith("mcp.") or record.name == "client") and record.exc_info:  # "client": its sessions
        with suppress(Exception):  # a record that cannot be formatted stays as it is: ``mcp`` must not get our errors
            error, said = record.exc_info[1], record.getMessage()
            is_whole = error is None or said.startswith(("Failed to parse", "Error parsing"))
            record.msg = said if is_whole else f"{said}: {type(error).__name__}: {error}"
            record.args, record.exc_info = None, None
    return True
