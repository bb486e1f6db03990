"""``import coatcheck`` costs next to nothing: it is quick, loads no heavy library, and opens no connection."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.meta.source_tree import FRAMEWORKS

if TYPE_CHECKING:
    from pathlib import Path

_LIBRARIES = {"boto3", "fsspec", "jmespath", "opentelemetry", "re2", "rich", "tiktoken", "typer"}
HEAVY = _LIBRARIES.union(*FRAMEWORKS.values())
"""Modules that only their users should pay for."""

_LATER = """
    asyncio coatcheck.core.preview coatcheck.core.reading coatcheck.engine.cleanup coatcheck.engine.offloading
    gzip hashlib importlib.resources json orjson ssl subprocess tempfile uuid
"""
LATER = frozenset(_LATER.split())
"""Modules that the first offloader loads, or the first offloaded result."""

ROUNDS = 7


def run(code: str) -> str:
    """Run ``code`` in a new interpreter without coverage, which must not count as import time."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_", "PYTHON"))}
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout


def loaded_by(code: str) -> set[str]:
    """Return the modules that ``code`` loads, without those that every interpreter of this environment loads."""
    listing = "\nimport sys; print(*sys.modules)"
    return set(run(code + listing).split()) - set(run(listing).split())


def test_import_loads_nothing_heavy() -> None:
    loaded = loaded_by("from coatcheck import FileStorage, Offloader")

    assert "coatcheck.offloader" in loaded
    assert loaded.isdisjoint(HEAVY | LATER)


def test_an_offloader_loads_no_preview_or_reading_code_before_it_is_needed() -> None:
    loaded = loaded_by(
        "from coatcheck import FileStorage, Kept, Offloader, TextBlock\n"
        "offloader = Offloader(FileStorage('unused'))\n"
        "assert isinstance(offloader.offload([TextBlock('small')], tool_name='t'), Kept)"
    )

    assert "coatcheck.engine.offloading" in loaded
    assert loaded.isdisjoint(
        HEAVY | {f"coatcheck.core.{lazy}" for lazy in ("preview.text", "reading.search", "reading.query")}
    )


def test_offloading_loads_every_module_that_the_import_defers(tmp_path: Path) -> None:
    loaded = loaded_by(
        "import asyncio\n"
        "from coatcheck import FileStorage, Offloader, TextBlock\n"
        f"offloader = Offloader(FileStorage({os.fspath(tmp_path)!r}))\n"
        "asyncio.run(offloader.aoffload([TextBlock('word ' * 10_000)], tool_name='t'))\n"
    )

    assert loaded >= LATER


def test_import_takes_no_longer_than_asyncio_which_every_agent_loads() -> None:
    # Measured: 13 ms and 35 ms. They are compared with each other because a slow or busy machine triples both.
    assert _seconds_of_import("coatcheck") <= _seconds_of_import("asyncio")


def _seconds_of_import(module: str) -> float:
    """Return the CPU seconds of an import, the minimum of several runs."""
    code = f"import time; began = time.process_time(); import {module}; print(time.process_time() - began)"
    return min(float(run(code)) for _ in range(ROUNDS))


def test_import_opens_no_connection() -> None:
    code = (
        "import sys\n"
        "sys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit(f'{event} at import'))\n"
        "import coatcheck\n"
        "for name in coatcheck.__all__: getattr(coatcheck, name)\n"
    )

    run(code)
