"""Pydantic AI on DBOS, with SQLite and a real PostgreSQL: a workflow that crashed resumes in another process.

``nox -s durable`` installs DBOS. Without DBOS this test is skipped, and says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage
from coatcheck.testing import ScriptedServer
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.meta.source_tree import ROOT
from tests.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("dbos", reason="needs DBOS: nox -s durable")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the address of the database in which DBOS records its workflows."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'dbos.sqlite'}"
    else:
        with running_postgres() as address:
            yield address


def test_a_crashed_workflow_resumes_with_the_same_placeholder_and_reads_it_back(tmp_path: Path, database: str) -> None:
    script = Script(call(), call("crash"), reading(pattern="^line 1,000 "))
    with ScriptedServer().serving() as server, server.conversation(script) as conversation:
        source = str(ROOT / "tests/durable/dbos_program.py")
        program = [sys.executable, source, str(tmp_path), conversation.base_url, database]
        crashed, recovered = (
            subprocess.run(program, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, check=False)
            for _ in range(2)
        )

    assert crashed.returncode == 3, crashed.stderr
    assert recovered.returncode == 0, recovered.stderr
    assert (tmp_path / "answer").read_text() == "done"
    assert (tmp_path / "fetched").read_text() == "fetched\n" * 2  # a tool that ran before the crash runs again
    _, before, after, last = script.shown
    assert before[0].startswith("Tool result offloaded.")
    assert before[0] == after[0] == last[0]
    assert MIDDLE in last[2]
    (stored,) = (listed for listed in FileStorage(tmp_path / "artifacts").entries("") if listed.size >= len(BIG))
    assert stored.size < 2 * len(BIG)
