"""``import coatcheck`` costs next to nothing: it is quick, loads no heavy library, and reaches for nothing."""

from __future__ import annotations

import os
import subprocess
import sys

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


def test_import_loads_nothing_heavy() -> None:
    loaded = set(run("import sys, coatcheck; print(*sys.modules)").split())

    assert "coatcheck" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_an_offloader_loads_no_way_to_preview_or_read_before_it_is_needed() -> None:
    code = (
        "import sys, coatcheck\n"
        "offloader = coatcheck.Offloader(coatcheck.FileStorage('unused'))\n"
        "assert isinstance(offloader.offload([coatcheck.TextBlock('small')], tool_name='t'), coatcheck.Kept)\n"
        "print(*sys.modules)"
    )
    loaded = set(run(code).split())

    assert "coatcheck.engine" in loaded
    assert loaded.isdisjoint(HEAVY | {"coatcheck.preview.text", "coatcheck.reading.search", "coatcheck.reading.query"})


def test_import_is_quick() -> None:
    code = "import time; began = time.process_time(); import coatcheck; print(time.process_time() - began)"
    # Processor time, and the least of several runs: what else the machine does must not count.
    seconds = min(float(run(code)) for _ in range(ROUNDS))

    assert seconds <= BUDGET_SECONDS


def test_import_opens_no_connection() -> None:
    code = (
        "import sys\n"
        "sys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit(f'{event} at import'))\n"
        "import coatcheck\n"
        "for name in coatcheck.__all__: getattr(coatcheck, name)\n"
    )

    run(code)
