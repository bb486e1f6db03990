"""A thread and an event loop for sync runners that set their thread's loop and never close it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("on_a_loop",)

Answer = TypeVar("Answer")


def on_a_loop(run: Callable[[], Answer]) -> Answer:
    """Call a framework's sync runner on a thread of its own, and close the loop that it used.

    The loop of the calling thread belongs to other tests: replacing it here would leave it unclosed.
    """

    def run_and_close() -> Answer:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return run()
        finally:
            loop.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, run_and_close).result()
