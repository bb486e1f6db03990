"""``import coatcheck`` costs next to nothing: it is quick, loads no heavy library, and reaches for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time

_HEAVY = """
    boto3 fsspec haystack jmespath langchain langchain_core langgraph opentelemetry pydantic re2 rich strands tiktoken
    typer
"""
HEAVY = frozenset(_HEAVY.split())
"""What only those pay for who use it."""

BUDGET_SECONDS = 0.040
ROUNDS = 7


def run(code: str) -> str:
    """Run ``code`` in a new interpreter that nothing watches: coverage, if it is on, must not count as import time."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_", "PYTHON"))}
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout


def seconds(code: str) -> float:
    started = time.perf_counter()
    run(code)
    return time.perf_counter() - started


def test_import_loads_nothing_heavy() -> None:
    loaded = set(run("import sys, coatcheck; print(*sys.modules)").split())

    assert "coatcheck" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_import_is_quick() -> None:
    # The least of several runs, taken in turns: whatever else the machine does only ever adds time.
    runs = [(seconds("pass"), seconds("import coatcheck")) for _ in range(ROUNDS)]
    without, with_import = (min(column) for column in zip(*runs, strict=True))

    assert with_import - without <= BUDGET_SECONDS


def test_import_opens_no_connection() -> None:
    code = (
        "import sys\n"
        "sys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit(f'{event} at import'))\n"
        "import coatcheck\n"
        "for name in coatcheck.__all__: getattr(coatcheck, name)\n"
    )

    run(code)
