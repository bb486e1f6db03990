"""The CPU time of offloading real results: each output and tool result in a folder that is above the threshold.

    python -m benchmarks --outputs FOLDER          the table
    python -m benchmarks --outputs FOLDER --check  exit with 1 if a goal is missed

The floor is what every exact system must do: count the tokens of a result until it is clear that it is too large. It is
measured in the same run, and all goals are multiples of it. Every time is the median of five offloads, each into a new
folder, so that nothing was stored before. Synthetic text follows, each kind against its own floor.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from benchmarks import corpus, real
from benchmarks.environments import prepare
from benchmarks.processes import Processes
from benchmarks.systems import OURS, SYSTEMS, Candidate
from benchmarks.systems.system import THRESHOLD_TOKENS, Missing
from coatcheck import TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.environments import Environments
    from benchmarks.processes import Process

__all__ = ("BY_DEFAULT", "FLOOR", "GOALS", "Taken", "main", "measure", "missed", "table")

FLOOR = "counting up to the decision"
BY_DEFAULT = "coatcheck, default preview"
COMPARED = {
    FLOOR: Candidate(place="least:Decided", environment="core"),
    BY_DEFAULT: Candidate(place="core:CoatcheckByDefault", environment="core"),
} | {name: SYSTEMS[name] for name in (OURS, "Strands")}

GOALS = {"p50": 2.5, "p95": 6.0, "slowest": 15.0}
"""Our longest times, in multiples of the floor's median, with a preview as long as Strands' and with the default."""

ROUNDS = 5
SYNTHETIC_BYTES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The CPU seconds that one text took, by system."""

    name: str
    seconds: Mapping[str, float]


def main(folder: Path, *, check: bool) -> int:
    """Measure, print, and return the exit code."""
    environments = prepare(candidate.environment for candidate in COMPARED.values())
    texts = list(real_texts(folder))
    print(f"{len(texts):,} results above {THRESHOLD_TOKENS:,} tokens")
    if not texts:
        return 1
    found = measure(texts, environments)
    print(table(found))
    print()
    for taken in measure(list(synthetic_texts()), environments):
        print(f"{taken.name}: {_compared(taken)}")
    failed = list(missed(found))
    print(*failed, sep="\n")
    return int(check and bool(failed))


def real_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each result below ``folder`` that is above the threshold."""
    counter = TiktokenCounter()
    for given in real.results_in(folder):
        if given.text is not None and counter.exceeds(given.text, THRESHOLD_TOKENS):
            yield given.name, given.text


def synthetic_texts() -> Iterator[tuple[str, str]]:
    """Yield kind and text of what the other benchmarks offload, and of a log in which every line looks like trouble."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in (*corpus.KINDS, corpus.TROUBLE):
            path = Path(folder, kind)
            corpus.write(path, kind=kind, size=SYNTHETIC_BYTES)
            yield kind, corpus.fresh(path.read_bytes().decode(), kind=kind, run=1)


def measure(texts: Sequence[tuple[str, str]], environments: Environments) -> list[Taken]:
    """Offload every text with every system that runs here, in turn."""
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="outputs-") as folder,
        Processes(COMPARED, environments, variables={"TMPDIR": folder}) as processes,
    ):
        path = Path(folder) / "text"
        for name, text in texts:
            path.write_bytes(text.encode("utf-8", "replace"))
            taken = {process.name: _cpu(process, path) for process in processes.all()}
            for system, seconds in taken.items():
                if isinstance(seconds, str):
                    print(f"{name}: {system}: {seconds}")
            found.append(
                Taken(name=name, seconds={name: each for name, each in taken.items() if isinstance(each, float)})
            )
    return found


def _cpu(process: Process, path: Path) -> float | str:
    """Return a system's CPU seconds, or why there are none."""
    try:
        process.ask("load", path=str(path), kind="")
        return float(process.ask("cpu", rounds=ROUNDS))
    except Missing as missing:
        return str(missing)


def table(found: Sequence[Taken]) -> str:
    """Return the table: for each system the milliseconds, and the multiple of the floor."""
    heads = " | ".join(f"{place} | times the floor" for place in GOALS)
    rows = [f"| CPU in ms | results | {heads} |", "|---|---|" + "---|---|" * len(GOALS)]
    floor = _places(found, FLOOR)["p50"]
    for name in COMPARED:
        if any(name in taken.seconds for taken in found):
            places = _places(found, name)
            cells = " | ".join(f"{1e3 * places[place]:.2f} | {places[place] / floor:.1f}" for place in GOALS)
            rows.append(f"| {name} | {sum(name in taken.seconds for taken in found)} | {cells} |")
    slowest = max(found, key=lambda taken: taken.seconds.get(OURS, 0))
    return "\n".join([*rows, "", f"slowest with {OURS}: {slowest.name}: {_compared(slowest)}"])


def missed(found: Sequence[Taken]) -> Iterator[str]:
    """Yield a sentence for each goal that is missed."""
    floor = _places(found, FLOOR)["p50"]
    for name in (BY_DEFAULT, OURS):
        for place, taken in _places(found, name).items():
            if taken > GOALS[place] * floor:
                multiple = f"{taken / floor:.1f} times the floor, at most {GOALS[place]:g} is the goal"
                yield f"missed: {name}: {place} takes {multiple}"


def _places(found: Sequence[Taken], name: str) -> dict[str, float]:
    taken = [each.seconds[name] for each in found if name in each.seconds]
    late = quantiles(taken, n=20, method="inclusive")[-1] if len(taken) > 1 else taken[0]
    return dict(zip(GOALS, (median(taken), late, max(taken)), strict=True))


def _compared(taken: Taken) -> str:
    floor = taken.seconds[FLOOR]
    return ", ".join(f"{name} {1e3 * took:.2f} ms ({took / floor:.1f})" for name, took in taken.seconds.items())
