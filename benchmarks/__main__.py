"""Measure every system on the same work, in the same run, on the same machine.

    python -m benchmarks                                        everything, about ten minutes
    python -m benchmarks --quick                                fewer sizes and rounds, under two minutes
    python -m benchmarks --work "read back" --system coatcheck  a part
    python -m benchmarks --check                                exit with 1 if a target is missed
    python -m benchmarks --write                                also write the tables and plots of docs/benchmarks.md
    python -m benchmarks --outputs FOLDER                       only the CPU time of offloading real results

It installs the compared systems from the package index, each in its own environment.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import outputs
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.environments import prepare
from benchmarks.measuring import touch_memory
from benchmarks.processes import Processes
from benchmarks.ranks import cache_ranks
from benchmarks.report import put_into, report
from benchmarks.results import Results
from benchmarks.systems import LIMIT, ON_S3, SYSTEMS
from benchmarks.systems.system import Missing
from benchmarks.targets import outcomes
from benchmarks.works import importing, in_bucket, many_agents, many_stores, offloading, passing, reading_back

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.processes import Process

WORKS = {
    work.WORK: work.measure
    for work in (passing, offloading, reading_back, many_stores, many_agents, in_bucket, importing)
}
PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"


def main() -> int:
    """Measure or read results, print them, write them if asked to, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    parser.add_argument("--work", action="append", choices=list(WORKS), help="only this; may be given again")
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="only this system and 'the least'")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and its plots")
    parser.add_argument("--results", type=Path, metavar="FILE", help="save the results as JSON")
    parser.add_argument("--again", type=Path, metavar="FILE", help="report on saved results without measuring")
    parser.add_argument("--outputs", type=Path, metavar="FOLDER", help="measure the CPU time of real results instead")
    arguments = parser.parse_args()
    if arguments.outputs:
        return outputs.main(arguments.outputs, check=arguments.check)
    if arguments.again:
        results = Results.read(arguments.again)
    else:
        results = measure(arguments.work or list(WORKS), arguments.system or list(SYSTEMS), quick=arguments.quick)
    if arguments.results:
        results.write(arguments.results)
    text = report(results)
    print(text)
    if arguments.write:
        from benchmarks.plots import draw  # noqa: PLC0415 - only this needs matplotlib

        put_into(PAGE, text)
        draw(results, PAGE.parent)
    return int(arguments.check and not all(outcome.met for outcome in outcomes(results)))


def measure(works: Sequence[str], systems: Sequence[str], *, quick: bool) -> Results:
    """Install the systems, and measure them."""
    chosen = {name: candidate for name, candidate in SYSTEMS.items() if name in {LIMIT, *systems}}
    needed = [*chosen.values(), *(ON_S3.values() if in_bucket.WORK in works else ())]
    environments = prepare(candidate.environment for candidate in needed)
    # In the project, because the folder for temporary files is in memory on some machines.
    folders = PAGE.parents[1] / ".nox"
    folders.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folders, prefix="bench-") as folder, ExitStack() as stack:
        # Without this file, ripgrep, with which one peer searches, would skip whatever git ignores.
        Path(folder, ".ignore").write_text("!*\n", encoding="ascii")
        variables = {"TMPDIR": folder, **cache_ranks(Path(folder) / "ranks")}
        processes = stack.enter_context(Processes(chosen, environments, variables=variables))
        scale = QUICK if quick else FULL
        bench = Bench(processes=processes, environments=environments, folder=Path(folder), scale=scale)
        bench.results.facts.update(facts(processes))
        touch_memory(scale.touched_bytes)
        for work in works:
            started = time.perf_counter()
            WORKS[work](bench)
            print(f"{work}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        return bench.results


def facts(processes: Processes) -> dict[str, str]:
    """Return the machine and, for each system, its version or why it does not run."""
    return {"machine": machine(), **{process.name: _versions(process) for process in processes.all(variants=True)}}


def _versions(process: Process) -> str:
    try:
        return str(process.ask("versions"))
    except Missing as missing:
        return str(missing)


def machine() -> str:
    """Return a description of the machine."""
    cores = Path("/proc/cpuinfo").read_text(encoding="utf-8").count("processor\t:")
    system = platform.uname()
    return f"{cores} cores, {system.system} {system.release}, CPython {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
