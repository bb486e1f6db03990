"""Pydantic AI on Prefect, whose server runs for the test: a flow that failed midway is run again.

``nox -s durable`` installs Prefect. Without Prefect this test is skipped, and says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import ScriptedServer
from tests.adapters.scripts import MIDDLE, Script, call, reading
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("prefect", reason="needs Prefect: nox -s durable")


def test_a_flow_that_runs_again_has_the_same_placeholder_and_reads_it_back(tmp_path: Path) -> None:
    script = Script(call(), call("crash"), call(), call("crash"), reading(pattern="^line 1,000 "))
    env = {
        **os.environ,
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PYTHONPATH": str(ROOT),
    }
    with ScriptedServer().serving() as server, server.conversation(script) as conversation:
        program = [sys.executable, str(ROOT / "tests/durable/prefect_program.py"), str(tmp_path), conversation.base_url]
        done = subprocess.run(program, env=env, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "answer").read_text() == "done"
    _, failed, _, again, _, last = script.shown
    assert failed[0].startswith("Tool result offloaded.")
    assert failed[0] == again[0] == last[0]
    assert MIDDLE in last[2]
