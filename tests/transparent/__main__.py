"""Run a framework's own tests with coatcheck in each of their agents: ``python -m tests.transparent SUITE``.

``nox -s transparent`` runs it. No result in these tests is large, so nothing may change: each test must come out as it
does with a hook in the same place that does nothing. No hook at all would be a wrong baseline: LangGraph's ``ToolNode``
handles errors differently if it has a hook, and a middleware adds a node to the graph.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tests.upstream.sources import fetched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent

SUITES: Mapping[str, tuple[str, ...]] = {
    "langgraph-prebuilt": ("tests/test_*.py",),
    "langchain": ("tests/unit_tests/agents/**/test_*.py",),
    "openai-agents": (
        *(f"tests/test_{name}*.py" for name in ("agent_as_tool", "agent_runner", "agent_tool", "function_tool")),
        *(f"tests/test_{name}*.py" for name in ("handoff", "hitl", "max_turns", "run_hooks", "run_step", "start_hook")),
        *(f"tests/test_{name}*.py" for name in ("stream", "tool")),
    ),
    "strands-agents": (
        *(f"tests/strands/{folder}/**/test_*.py" for folder in ("agent", "event_loop", "hooks", "interventions")),
        *(f"tests/strands/{folder}/**/test_*.py" for folder in ("middleware", "plugins", "session", "tools")),
        "tests/strands/multiagent/test_*.py",
        "tests/strands/vended_plugins/**/test_*.py",
    ),
}
"""For each package, the files of its source distribution that run agents with tools."""


def outcomes(package: str, suite: Path, *, hook: str) -> dict[str, bool]:
    """Run tests with a ``hook`` in each agent, in processes of their own; return for each whether it passed.

    Raises:
        RuntimeError: no test made an agent.

    """
    files = [os.fspath(path.relative_to(suite)) for glob in SUITES[package] for path in sorted(suite.glob(glob))]
    report = suite / f"{hook}.json"
    plugins = ("in_every_agent", "no:randomly", "no:cacheprovider", "no:langsmith_plugin")
    options = [
        "-q",
        "--no-summary",
        "--numprocesses=2",
        "--continue-on-collection-errors",
        *(f"-p{plugin}" for plugin in plugins),
        "-oaddopts=",
    ]
    given = [f"--package={package}", f"--in-every-agent={hook}", f"--outcomes={report}"]
    command = [sys.executable, "-m", "pytest", *options, *given, *files]
    paths = os.pathsep.join(map(os.fspath, (HERE, suite)))
    subprocess.run(command, cwd=suite, env={**os.environ, "PYTHONPATH": paths}, check=False)
    if not report.with_suffix(".used").exists():
        msg = f"no test of {package} made an agent with a hook"
        raise RuntimeError(msg)
    found: dict[str, bool] = json.loads(report.read_text(encoding="utf-8"))
    return found


def differences(ours: Mapping[str, bool], nothing: Mapping[str, bool]) -> Iterator[str]:
    """Yield one line for each test that passes with a hook that does nothing, but not with ours."""
    for test, passed in nothing.items():
        if passed and not ours.get(test):
            yield f"{test}: {'fails' if test in ours else 'was not run'} with coatcheck"


def main(package: str) -> int:
    """Return 1 where coatcheck makes a difference."""
    installed = version(package)
    with tempfile.TemporaryDirectory() as folder:
        suite = fetched(package, installed, Path(folder))
        nothing = outcomes(package, suite, hook="nothing")
        ours = outcomes(package, suite, hook="coatcheck")
    lines = list(differences(ours, nothing))
    sys.stdout.write("\n  ".join([f"{package} {installed}: {sum(ours.values())} tests pass with coatcheck", *lines]))
    sys.stdout.write("\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
