"""Runs sessions that are not part of ``nox -s tests``, and writes their results into docs/tests.md.

    python -m tests.docs.sessions mutations lowest

Needs nox and tomli. Only a run of its session replaces a row, so each row names the date and commit of that run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("PAGE", "result_of", "rows", "with_row")

PAGE = ROOT / "docs/tests.md"
HEAD = "| session | last result | minutes | when |\n|---|---|---|---|\n"

_COUNTS = re.compile(r"(\d+) (passed|failed|error|skipped|killed|survived)")
_SUMMARY = re.compile(r"^(?:=+ )?\d+ (?:passed|failed|error|skipped|killed).* in [\d.]+s.*$", re.MULTILINE)
_SESSION = re.compile(r"^nox > \* (\S+): (\w+)", re.MULTILINE)
_ENDED = re.compile(r"^nox > Session (\S+) (?:was successful|failed)", re.MULTILINE)
_ROW = re.compile(r"^\| `nox -s (\S+)` \|.*\n", re.MULTILINE)


def rows(page: str) -> dict[str, str]:
    """Return the rows of the page by session name."""
    return {found[1]: found[0] for found in _ROW.finditer(page)}


def with_row(page: str, session: str, row: str) -> str:
    """Return the page with ``row`` as the row of a session. The rows are in alphabetical order."""
    found = {**rows(page), session: row}
    above, _, below = _ROW.sub("", page).partition(HEAD)
    return f"{above}{HEAD}{''.join(found[name] for name in sorted(found))}{below}"


def result_of(output: str) -> str:
    """Summarise the output of nox: the tests of all parts, counted together, and each part that did not succeed.

    Pytest counts errors separately. They count as failures here: the setup or clean-up of a test failed.
    """
    counts: Counter[str] = Counter()
    for line in _SUMMARY.findall(output):
        for number, word in _COUNTS.findall(line):
            counts["failed" if word == "error" else word] += int(number)
    said = ", ".join(f"{number:,} {word}" for word, number in counts.items()) or _last_line(output)
    bad = [f"{name} {how}" for name, how in _SESSION.findall(output) if how not in {"success", "skipped"}]
    return "; ".join([said, *bad])


def _last_line(output: str) -> str:
    """Return the last line that a session without tests printed. All of nox's own lines may come after it."""
    lines = _ENDED.split(output)[0].splitlines()
    printed = [line.strip() for line in lines if line.strip() and not line.startswith("nox > ")]
    return printed[-1].replace("|", "\\|") if printed else "nothing"


def run(session: str) -> str:
    """Run a session and return its row. Read the commit first: somebody may commit while the session runs."""
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "nox", "-s", session]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    sys.stdout.write(output)
    minutes = (time.monotonic() - started) / 60
    when = f"{datetime.now(tz=timezone.utc):%Y-%m-%d}, {commit.stdout.strip()}"
    result = result_of(output)
    # Both succeed only if every failure is listed in upstream or also occurs without coatcheck.
    if session in {"upstream", "transparent"} and done.returncode == 0:
        result = result.replace(" failed", " expected failures")
    return f"| `nox -s {session}` | {result} | {minutes:.1f} | {when} |\n"


def main(sessions: Sequence[str]) -> None:
    """Run each session and write its row at once."""
    for session in sessions:
        row = run(session)
        PAGE.write_text(with_row(PAGE.read_text(encoding="utf-8"), session, row), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
