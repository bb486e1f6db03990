"""The page about sessions outside `nox -s tests`: its rows name sessions and summarise their output."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.docs import sessions
from tests.docs.sessions import HEAD, PAGE, result_of, rows, with_row
from tests.meta.source_tree import ROOT

TWO_PARTS = """\
nox > Running session lowest(core)
===== 7,000 things ====
120 passed, 3 skipped in 80.01s (0:01:20)
nox > Session lowest(core) was successful in 1 minute.
1 failed, 20 passed in 2.00s
nox > Session lowest(mcp) failed.
nox > Ran multiple sessions:
nox > * lowest(core): success
nox > * lowest(mcp): failed
"""


def test_the_result_counts_all_parts_and_names_those_that_failed() -> None:
    assert result_of(TWO_PARTS) == "140 passed, 3 skipped, 1 failed; lowest(mcp) failed"


def test_the_result_of_a_session_without_tests_is_its_last_line() -> None:
    of_nox = "nox > python -m tests.mutations\n", "nox > Session mutations was successful in 9 minutes.\n"
    assert result_of("67 of 67 edits noticed\n".join(of_nox)) == "67 of 67 edits noticed"
    assert result_of("67 of 67 edits noticed\n" + "".join(of_nox)) == "67 of 67 edits noticed"  # from two streams


def test_a_row_replaces_the_older_one() -> None:
    page = f"words\n\n{HEAD}\nmore\n"
    old, new, other = (
        f"| `nox -s {name}` | {said} | 1.0 | today |\n" for name, said in [("b", "x"), ("b", "y"), ("a", "z")]
    )

    for name, row in (("b", old), ("b", new), ("a", other)):
        page = with_row(page, name, row)

    assert page == f"words\n\n{HEAD}{other}{new}\nmore\n"


def test_a_row_names_the_commit_at_the_start_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "before"

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        nonlocal head
        if command[0] == "git":
            return subprocess.CompletedProcess(command, 0, f"{head}\n", "")
        head = "after"
        return subprocess.CompletedProcess(command, 0, "1 passed in 1.00s\n", "")

    monkeypatch.setattr(subprocess, "run", run)

    assert sessions.run("lowest").endswith(", before |\n")


@pytest.mark.parametrize("name", sorted(rows(PAGE.read_text(encoding="utf-8"))))
def test_each_row_names_a_session(name: str) -> None:
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")

    assert re.search(rf"^def {name}\(session", noxfile, re.MULTILINE)
