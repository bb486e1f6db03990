"""Runs a package's own tests with coatcheck in each of their agents: ``python -m tests.transparent PACKAGE``.

``nox -s transparent`` runs it. No result in these tests is large, so nothing may change: each test must have the same
outcome as with a hook in the same place that does nothing. No hook at all would be a wrong baseline: LangGraph's
``ToolNode`` handles errors differently if it has a hook, and a middleware adds a node to the graph.

``different.toml`` lists the tests with another outcome, with reasons. Each of them must still fail. It runs in a
process of its own, because a test that hangs takes others with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import tomli

from tests.upstream.sources import fetched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).parent

SUITES: Mapping[str, tuple[str, ...]] = {
    "mcp": (
        *(f"tests/interaction/{folder}/test_*.py" for folder in ("lowlevel", "mcpserver")),
        *(f"tests/{folder}/**/test_*.py" for folder in ("client", "server")),
    ),
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
"""The files of each package's source distribution that run agents with tools."""


PLUGINS = {"mcp": ("in_front_of_mcp_servers", "no:asyncio")}
"""Pytest plugins for one suite. In ``mcp``'s suite any warning is a failure, and pytest-asyncio warns about itself."""


def outcomes(
    package: str, suite: Path, *, hook: str, chosen: Sequence[str], options: Sequence[str] = ()
) -> dict[str, bool]:
    """Run tests with a ``hook`` in each agent, in a separate process; return whether each passed.

    Raises:
        RuntimeError: no test made an agent.

    """
    report = Path(tempfile.mkdtemp(dir=suite), "outcomes.json")
    plugins = ("in_every_agent", "no:randomly", "no:cacheprovider", "no:langsmith_plugin", *PLUGINS.get(package, ()))
    given = [f"--package={package}", f"--in-every-agent={hook}", f"--outcomes={report}"]
    quietly = [
        "-q",
        "--no-summary",
        "--continue-on-collection-errors",
        "-oaddopts=",
        *(f"-p{name}" for name in plugins),
    ]
    paths = os.pathsep.join(map(os.fspath, (HERE, suite)))
    command = [sys.executable, "-m", "pytest", *quietly, *given, *options, *chosen]
    subprocess.run(command, cwd=suite, env={**os.environ, "PYTHONPATH": paths}, check=False)
    if not report.with_suffix(".used").exists():
        msg = f"no test of {package} made an agent with a hook"
        raise RuntimeError(msg)
    found: dict[str, bool] = json.loads(report.read_text(encoding="utf-8"))
    return found


def differences(ours: Mapping[str, bool], nothing: Mapping[str, bool]) -> Iterator[str]:
    """Yield a line for each test that passes with a hook that does nothing, but not with ours."""
    for test, passed in nothing.items():
        if passed and not ours.get(test):
            yield f"{test}: {'fails' if test in ours else 'was not run'} with coatcheck"


def known_differences(package: str) -> list[str]:
    """Return the tests that have another outcome for a known reason."""
    known = tomli.loads((HERE / "different.toml").read_text(encoding="utf-8"))
    return [test for group in known.get(package, ()) for test in group["tests"]]


def main(package: str) -> int:
    """Return 1 if coatcheck makes an unknown difference, or no longer makes a known one."""
    installed, known = version(package), known_differences(package)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as at_once:
        suite = fetched(package, installed, Path(folder))
        files = [os.fspath(path.relative_to(suite)) for glob in SUITES[package] for path in sorted(suite.glob(glob))]
        options = ["--numprocesses=2", *(f"--deselect={test}" for test in known)]
        nothing = outcomes(package, suite, hook="nothing", chosen=files, options=options)
        ours = outcomes(package, suite, hook="coatcheck", chosen=files, options=options)
        alone = at_once.map(lambda test: outcomes(package, suite, hook="coatcheck", chosen=[test]), known)
        gone = [test for test, found in zip(known, alone, strict=True) if all(found.values())]
    lines = [*differences(ours, nothing), *(f"{test}: no longer fails with coatcheck" for test in gone)]
    sys.stdout.write("\n  ".join([f"{package} {installed}: {sum(ours.values())} tests pass with coatcheck", *lines]))
    sys.stdout.write("\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
