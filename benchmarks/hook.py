"""How long ``coatcheck hook`` takes in a fresh process, as a client waits for it.

    python -m benchmarks.hook           the table: medians of 20 processes
    python -m benchmarks.hook --check   exit with 1 if a goal is missed

A Python process that does nothing is measured in the same turns. It shows the least that any hook in Python takes here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

__all__ = ("CASES", "Case", "main", "measure")

ROUNDS = 20
NOTHING = "python that does nothing"
FILE = """max_result_tokens = 2500
[tools.Read]
max_result_tokens = 5000
[tools."github.*"]
never = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A tool result, and the seconds that the hook may take for it."""

    size: int
    goal: float
    kind: str = "log"
    """What the result holds: a key of ``LINES``; ``json`` as text; structured content of rows (``structured``), small
    objects (``small``) or floats (``floats``); or rows both as text and as structured content (``copied``)."""

    config: bool = False
    """Whether the hook runs with ``--config``, and so reads a ``coatcheck.toml`` for results above 4,000 bytes."""


CASES = {
    "a result of 100 bytes, which stays": Case(size=100, goal=0.3),
    "a result of 9 KB, which stays": Case(size=9_000, goal=0.3),
    "the same, with --config, which stays": Case(size=9_000, goal=0.3, config=True),
    "a result of 50 KB, which leaves": Case(size=50_000, goal=1.0),
    "10 MB of logs, which leaves": Case(size=10_000_000, goal=1.0),
    "10 MB of CSV, which leaves": Case(size=10_000_000, goal=1.0, kind="csv"),
    "10 MB of HTML, which leaves": Case(size=10_000_000, goal=1.0, kind="html"),
    "10 MB of JSON as text, which leaves": Case(size=10_000_000, goal=1.0, kind="json"),
    "10 MB of JSON of MCP, twice, which leaves": Case(size=10_000_000, goal=1.0, kind="copied"),
    "10 MB of structuredContent, which leaves": Case(size=10_000_000, goal=1.0, kind="structured"),
    "10 MB of floats, which leaves": Case(size=10_000_000, goal=1.0, kind="floats"),
    "350,000 small objects, which leaves": Case(size=6_650_000, goal=1.0, kind="small"),
}

LINES = {
    "log": "2026-01-01T12:00:00Z INFO the service answered request {} in {} ms\n",
    "csv": "{},2026-01-01,open,{},alpha beta gamma,1.25\n",
    "html": '<tr><td><a href="/orders/{}">order</a></td><td class="total">{}</td><td>open</td></tr>\n',
}


def rows(size: int, kind: str = "structured") -> list[object]:
    """Return rows whose JSON takes about ``size`` bytes."""
    if kind == "floats":
        return [each / 7 for each in range(size // 20)]
    if kind == "small":
        return [{"id": each} for each in range(size // 19)]
    return [
        {"id": each, "state": "open", "total": each * 7_919 % 1_000 / 8, "tags": ["a", "b"], "name": "alpha beta gamma"}
        for each in range(size // 92)
    ]


def of_mcp(kind: str, size: int, number: int) -> dict[str, object]:
    """Return what a tool of an MCP server returns: rows, half as many if they are repeated as text."""
    found = {"number": number, "rows": rows(size // 2 if kind == "copied" else size, kind)}
    text = json.dumps(found) if kind == "copied" else "see the data"
    return {"content": [{"type": "text", "text": text}], "structuredContent": found}


def said(size: int, number: int, kind: str = "log") -> bytes:
    """Return what a client sends about a new result. Another ``number`` makes another result."""
    event = {"session_id": "one", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "x"}}
    if kind in {"copied", "floats", "small", "structured"}:
        response = of_mcp(kind, size, number)
        return json.dumps({**event, "tool_name": "mcp__a__b", "tool_response": response}).encode()
    if kind == "json":
        stdout = json.dumps([number, *rows(size)])
    else:
        line = LINES[kind]
        lines = "".join(line.format(each, each * 7_919 % 1_000) for each in range(size // (len(line) - 4) + 1))
        stdout = f"{number}\n{lines}"[:size]
    response = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False}
    return json.dumps({**event, "tool_response": response}).encode()


def run(command: list[str], data: bytes, home: str) -> tuple[float, bytes]:
    """Return the seconds that a process took, and what it wrote."""
    started = perf_counter()
    ended = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, *command], input=data, env={**os.environ, "HOME": home}, check=True, capture_output=True
    )
    return perf_counter() - started, ended.stdout


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median seconds of each case, and of a process that does nothing."""
    seconds: dict[str, list[float]] = {NOTHING: [], **{name: [] for name in CASES}}
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "coatcheck.toml")
        file.write_text(FILE, encoding="utf-8")
        for number in range(rounds):
            seconds[NOTHING].append(run(["-c", ""], b"", home)[0])
            for name, case in CASES.items():
                words = [f"--config={file}"] if case.config else []
                taken, answer = run(["-m", "coatcheck", "hook", *words], said(case.size, number, case.kind), home)
                assert bool(answer) == name.endswith("leaves")
                seconds[name].append(taken)
    return {name: median(taken) for name, taken in seconds.items()}


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hook", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    check = parser.parse_args().check
    measured = measure()
    for name, seconds in measured.items():
        goal = f"   goal {CASES[name].goal * 1e3:,.0f} ms" if name in CASES else ""
        print(f"{name:<42} {seconds * 1e3:>6,.0f} ms{goal}")
    return int(check and any(measured[name] > case.goal for name, case in CASES.items()))


if __name__ == "__main__":
    sys.exit(main())
