"""Runs the tests of Strands' own offloader against ours: ``python -m tests.upstream``, which ``nox -s upstream`` calls.

The tests come from Strands' source distribution of the installed version. At the version that ``strands.toml`` names,
the outcomes must be exactly those that it lists. At any other, the differences are printed. Only running and comparing
belong here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli

from tests.upstream.sources import fetched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
WHERE = ("vended_plugins/context_offloader", "agent/test_agent_storage.py", "agent/test_agent_delegation.py")
"""The paths of the tests that use the offloader."""


def outcomes(suite: Path) -> dict[str, bool]:
    """Run the tests in a separate process; return whether each passed."""
    report, settings = suite / "outcomes.json", suite / "ours.ini"
    settings.write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n", encoding="utf-8")
    options = ["-q", "--no-summary", "-p", "strands_in_place", "-p", "no:randomly", "-p", "no:cacheprovider"]
    files = [f"-c={settings}", f"--rootdir={suite}", f"--outcomes={report}"]
    paths = [f"tests/strands/{path}" for path in WHERE]
    command = [sys.executable, "-m", "pytest", *options, *files, *paths]
    subprocess.run(command, cwd=suite, env={**os.environ, "PYTHONPATH": os.fspath(HERE)}, check=False)
    found: dict[str, bool] = json.loads(report.read_text(encoding="utf-8"))
    return found


def differences(found: Mapping[str, bool], listed: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each test whose outcome is not as listed."""
    reasons = {test: group["reason"] for group in listed["differs"] for test in group["tests"]}
    passing = set(listed["passes"])
    for test in sorted({*found, *passing, *reasons}):
        if test not in found:
            yield f"{test}: is listed and was not run"
        elif test not in passing and test not in reasons:
            yield f"{test}: {'passes' if found[test] else 'fails'} and is not listed"
        elif found[test] != (test in passing):
            yield f"{test}: {'passes, though ' + reasons[test] if found[test] else 'fails'}"


def main() -> int:
    """Return 1 if the outcomes at the pinned version differ from the list."""
    listed = tomli.loads((HERE / "strands.toml").read_text(encoding="utf-8"))
    installed = version("strands-agents")
    with tempfile.TemporaryDirectory() as folder:
        found = outcomes(fetched("strands-agents", installed, Path(folder)))
    lines = list(differences(found, listed))
    head = f"strands-agents {installed}: {sum(found.values())} of {len(found)} tests pass"
    sys.stdout.write("\n  ".join([f"{head}; not as listed for {listed['version']}: {len(lines)}", *lines]) + "\n")
    return 1 if lines and installed == listed["version"] else 0


if __name__ == "__main__":
    sys.exit(main())
