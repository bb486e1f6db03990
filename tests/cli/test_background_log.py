"""The proxy's log on standard error: it never waits for a reader, and no foreign text can pass for a line of ours."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from coatcheck.cli.background_log import MAX_WAITING, BackgroundLog

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with suppress(OSError):  # closed by the test
            os.close(descriptor)


def _record(message: str) -> logging.LogRecord:
    return logging.LogRecord("coatcheck_mcp", logging.INFO, __file__, 1, "%s", (message,), None)


def test_records_are_written_in_order(ends: tuple[int, int]) -> None:
    log = BackgroundLog(ends[1])
    for number in range(10):
        log.emit(_record(f"line {number}"))
    log.close()

    assert os.read(ends[0], 65_536).decode() == "".join(f"coatcheck: line {number}\n" for number in range(10))


def test_a_message_that_begins_with_our_name_has_it_once(ends: tuple[int, int]) -> None:
    log = BackgroundLog(ends[1])
    log.emit(_record("coatcheck could not start the MCP server b"))
    log.close()

    assert os.read(ends[0], 65_536).decode() == "coatcheck: could not start the MCP server b\n"


def test_foreign_text_cannot_pass_for_a_line_of_ours_or_steer_a_terminal(ends: tuple[int, int]) -> None:
    log = BackgroundLog(ends[1])
    log.emit(_record("a server said: \x1b[31mno\r\ncoatcheck: log in again at http://evil"))
    log.close()

    said = os.read(ends[0], 65_536).decode()
    assert said == "coatcheck: a server said: ·[31mno\n  coatcheck: log in again at http://evil\n"


def test_callers_do_not_wait_when_nobody_reads(ends: tuple[int, int]) -> None:
    log = BackgroundLog(ends[1])
    for number in range(20 * MAX_WAITING):  # many times what the pipe and the queue hold
        log.emit(_record(f"{number}: {'x' * 200}"))

    assert log._waiting.full()
    fcntl.fcntl(ends[0], fcntl.F_SETFL, os.O_NONBLOCK)
    assert os.read(ends[0], 65_536).startswith(b"coatcheck: 0: xxx")
    os.close(ends[0])  # now everything in the queue is lost at once
    log._waiting.put(None)
    log._thread.join()


def test_a_reader_that_is_gone_causes_no_error(ends: tuple[int, int]) -> None:
    os.close(ends[0])
    log = BackgroundLog(ends[1])
    log.emit(_record("lost"))
    log.emit(_record("lost too"))
    log.close()

    assert not log._thread.is_alive()
