"""What ``coatcheck mcp`` takes compared with a plain proxy of FastMCP, for a client on pipes.

    python -m benchmarks.proxy           the table: medians of both in turns, and their ratio
    python -m benchmarks.proxy --check   exit with 1 if a goal is missed

Client and server are written by hand and cost next to nothing, so only the process in between is measured. CPU time is
that of the proxy's process; memory is its peak. Linux only.
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("Figures", "main", "measure")

STARTS = 10
CALLS = 300
WARM_UP = 50
LARGE_CALLS = 3
SIZES = (1_000_000, 10_000_000, 20_000_000)

SERVER = """
import base64, json, sys
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "bare", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": "give", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            size, kind = message["params"]["arguments"]["size"], message["params"]["arguments"]["kind"]
            lines = (f"2026-01-01T12:00:00Z INFO request {each} was answered\\\\n" for each in range(size // 50 + 1))
            part = {"type": "text", "text": "".join(lines)[:size]}
            if kind == "image":
                data = base64.b64encode(part["text"].encode()).decode()
                part = {"type": "image", "mimeType": "image/png", "data": data}
            result = {"content": [part]}
        case _:
            result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

PLAIN = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(sys.argv[1], sys.argv[2:]), mode="legacy").run(show_banner=False)
"""

WIDE = 52
"""Width of the first column, in characters."""

FIRST = "the first of 1 MB"
PLAIN_NAME, OURS_NAME = "plain", "coatcheck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one kind of work took. Seconds and bytes are medians."""

    seconds: float
    cpu_seconds: float
    peak_bytes: float


class Proxy:
    """A running proxy, and the client in front of it."""

    def __init__(self, command: Sequence[str], folder: str) -> None:
        """Start the proxy, initialize the session, and list the tools."""
        pipe, server = subprocess.PIPE, [sys.executable, "-c", SERVER]
        self._process = subprocess.Popen(  # noqa: S603 - this Python
            [*command, *server], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=folder
        )
        self._id = 0
        info = {"clientInfo": {"name": "bench", "version": "1"}, "capabilities": {}, "protocolVersion": "2025-11-25"}
        self.ask("initialize", info)
        self._send({"method": "notifications/initialized"})
        self.ask("tools/list", {})

    def ask(self, method: str, params: Mapping[str, object]) -> Any:  # noqa: ANN401 - any JSON
        """Return the result of a request."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._id:
                return message["result"]
        msg = "the proxy ended"
        raise RuntimeError(msg)

    def call(self, size: int, kind: str = "text") -> tuple[float, float]:
        """Return the seconds of a call with a result of ``size`` bytes, and the proxy's CPU seconds."""
        cpu, started = self.cpu_seconds, perf_counter()
        self.ask("tools/call", {"name": "give", "arguments": {"size": size, "kind": kind}})
        return perf_counter() - started, self.cpu_seconds - cpu

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of only the proxy's process since its start, with a resolution of 10 ms."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak_bytes(self) -> int:
        """The process's peak memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def end(self) -> None:
        """End the proxy as a departing client does, by closing its input."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()

    def _send(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def commands(folder: str) -> dict[str, list[str]]:
    """Return the commands of both proxies, without that of the server."""
    ours = [sys.executable, "-m", "coatcheck", "mcp", f"--storage={folder}/store", "--"]
    return {PLAIN_NAME: [sys.executable, "-c", PLAIN], OURS_NAME: ours}


def start_up(command: list[str], folder: str) -> Figures:
    """Measure one start, up to the list of tools."""
    started = perf_counter()
    proxy = Proxy(command, folder)
    taken = perf_counter() - started
    figures = Figures(seconds=taken, cpu_seconds=proxy.cpu_seconds, peak_bytes=proxy.peak_bytes)
    proxy.end()
    return figures


def small_calls(command: list[str], folder: str) -> Figures:
    """Measure calls with a result of ten bytes, one after another."""
    proxy = Proxy(command, folder)
    for _ in range(WARM_UP):
        proxy.call(10)
    cpu = proxy.cpu_seconds
    taken = [proxy.call(10)[0] for _ in range(CALLS)]
    spent = (proxy.cpu_seconds - cpu) / CALLS
    figures = Figures(seconds=median(taken), cpu_seconds=spent, peak_bytes=proxy.peak_bytes)
    proxy.end()
    return figures


def first_large_call(command: list[str], folder: str) -> Figures:
    """Measure the first large result of a process, for which ours loads the vocabulary."""
    proxy = Proxy(command, folder)
    taken, spent = proxy.call(SIZES[0])
    figures = Figures(seconds=taken, cpu_seconds=spent, peak_bytes=proxy.peak_bytes)
    proxy.end()
    return figures


def large_call(size: int, kind: str = "text") -> Callable[[list[str], str], Figures]:
    """Return a function that measures a large result in a process that had one of another size before."""

    def measure_one(command: list[str], folder: str) -> Figures:
        proxy = Proxy(command, folder)
        proxy.call(size // 2, kind)
        taken, spent = proxy.call(size, kind)
        figures = Figures(seconds=taken, cpu_seconds=spent, peak_bytes=proxy.peak_bytes)
        proxy.end()
        return figures

    return measure_one


WORKS: dict[str, tuple[int, Callable[[list[str], str], Figures]]] = {
    "start-up": (STARTS, start_up),
    "a small call": (3, small_calls),
    FIRST: (LARGE_CALLS, first_large_call),
    **{f"a result of {size // 1_000_000} MB": (LARGE_CALLS, large_call(size)) for size in SIZES},
    "an image of 20 MB, which stays": (LARGE_CALLS, large_call(SIZES[-1], "image")),
}
"""For each kind of work, the rounds and the function that measures one."""


def measure(work: str) -> dict[str, Figures]:
    """Return what both proxies took for one kind of work, measured in turn."""
    rounds, measure_one = WORKS[work]
    found: dict[str, list[Figures]] = {PLAIN_NAME: [], OURS_NAME: []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name, command in commands(folder).items():
                found[name].append(measure_one(command, folder))
    return {
        name: Figures(
            seconds=median(each.seconds for each in figures),
            cpu_seconds=median(each.cpu_seconds for each in figures),
            peak_bytes=median(each.peak_bytes for each in figures),
        )
        for name, figures in found.items()
    }


def goals(work: str, plain: Figures, ours: Figures) -> dict[str, bool]:
    """Return each goal, and whether it was met."""
    if work == "start-up":
        return {"1.2 times the time": ours.seconds <= 1.2 * plain.seconds}
    if work == "a small call":
        return {"1.5 ms more": ours.seconds <= plain.seconds + 0.0015}
    if work == FIRST:
        return {}
    return {
        "1.5 times the time": ours.seconds <= 1.5 * plain.seconds,
        "1.5 times the memory": ours.peak_bytes <= 1.5 * plain.peak_bytes,
    }


def row(figures: Figures) -> str:
    """Return milliseconds of wall-clock time and of CPU time, and megabytes, as a row."""
    return f"{figures.seconds * 1e3:>9,.1f} {figures.cpu_seconds * 1e3:>9,.1f} {figures.peak_bytes / 1e6:>7,.0f}"


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--work", action="append", choices=list(WORKS), help="only this; may be given again")
    arguments = parser.parse_args()
    missed = 0
    print(f"{'':<{WIDE}} {'ms':>9} {'CPU ms':>9} {'MB':>7}")
    for work in arguments.work or WORKS:
        measured = measure(work)
        plain, ours = measured[PLAIN_NAME], measured[OURS_NAME]
        ratios = [
            getattr(ours, name) / max(getattr(plain, name), 1e-9) for name in ("seconds", "cpu_seconds", "peak_bytes")
        ]
        print(f"{work + ', plain FastMCP proxy':<{WIDE}} {row(plain)}")
        print(f"{work + ', coatcheck mcp':<{WIDE}} {row(ours)}")
        met = goals(work, plain, ours)
        missed += sum(not each for each in met.values())
        words = ", ".join(f"{goal}: {'met' if is_met else 'MISSED'}" for goal, is_met in met.items())
        print(f"{'  times':<{WIDE}} {ratios[0]:>9.2f} {ratios[1]:>9.2f} {ratios[2]:>7.2f}   {words}")
    return int(arguments.check and missed > 0)


if __name__ == "__main__":
    sys.exit(main())
