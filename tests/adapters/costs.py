"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.hops import our_file, walk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("functions_passed", "modules_loaded")


def functions_passed(call: Callable[[], Awaitable[object]]) -> list[tuple[str, str]]:
    """Return our functions that a call runs through, the first or the second time."""

    async def twice() -> None:
        for _ in range(2):
            await call()

    return [*walk(lambda: asyncio.run(twice()), our_file).functions]


def modules_loaded(statement: str, *, after: str) -> set[str]:
    """Return the modules that ``statement`` loads on top of those of ``after``, in a new process."""
    script = f"import sys\n{after}\nbefore = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
