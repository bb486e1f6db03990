"""The most that coatcheck may cost, and whether it stays within that. All targets are computed here, from results.

A target for several cases is judged by the worst of them. What was not measured in a run is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bench import MEGABYTE, named
from benchmarks.systems import LIMIT, OURS, SYSTEMS
from benchmarks.works import importing, in_bucket, many_agents, many_stores, offloading, passing, reading_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.results import Results

__all__ = ("Outcome", "outcomes")

NOISE = 1.05
"""A ratio up to this counts as no difference, because two runs of the same code differ by this much."""

_SCALES = {"µs": 1e-6, "ms": 1e-3, "MB": MEGABYTE}
"""Units that are not ratios, in seconds and bytes, which are what is measured."""

_OURS_IN = {name: one.rival for name, one in SYSTEMS.items() if one.rival}
_IN_PLACE_OF = {rival: ours for ours, rival in _OURS_IN.items()}
"""Maps a peer that is part of a framework to ours in that framework. Others are compared with ours in no framework."""
_BIG = (named(10 * MEGABYTE), named(100 * MEGABYTE))

Values = dict[str, float]
"""The value of each case. Smaller is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One target, and the worst value that was measured for it."""

    target: str
    limit: float
    unit: str
    worst: float
    case: str

    @property
    def met(self) -> bool:
        """Whether the worst value is within the limit."""
        return self.worst <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    words: str
    limit: float
    values: Callable[[Results], Values]
    unit: str = "times"


def outcomes(results: Results) -> Iterator[Outcome]:
    """Yield the outcome of every target for which there are results."""
    for target in _TARGETS:
        values = target.values(results)
        if values:
            case, worst = max(values.items(), key=lambda value: value[1])
            yield Outcome(
                target=target.words,
                limit=target.limit,
                unit=target.unit,
                worst=worst / _SCALES.get(target.unit, 1.0),
                case=case,
            )


def _passing(results: Results) -> Values:
    return _medians(results, passing.WORK, OURS)


def _passing_in_frameworks(results: Results) -> Values:
    return {
        ours: ratio
        for ours, theirs in _OURS_IN.items()
        for ratio in _ratios(results, passing.WORK, ours, theirs).values()
    }


def _offload_against_least(results: Results) -> Values:
    ratios = _ratios(results, offloading.WORK, OURS, LIMIT)
    return {case: ratio for case, ratio in ratios.items() if case.endswith(_BIG)}


def _offload_against_peers(sizes: str) -> Callable[[Results], Values]:
    peers = [name for name, one in SYSTEMS.items() if one.sizes == sizes and not name.startswith(OURS)]

    def values(results: Results) -> Values:
        return {
            f"{case}, {peer}": ratio
            for peer in peers
            for case, ratio in _ratios(results, offloading.WORK, _IN_PLACE_OF.get(peer, OURS), peer).items()
        }

    return values


def _offload_against_haystack(results: Results) -> Values:
    return _ratios(results, offloading.WORK, _IN_PLACE_OF["Haystack"], "Haystack")


def _offload_memory(results: Results) -> Values:
    sizes = {named(size): size for size in (10 * MEGABYTE, 100 * MEGABYTE)}
    return {
        f"{name}, {case}": peak / sizes[case.rpartition(", ")[2]]
        for name in (OURS, *_OURS_IN)
        for case, peak in _medians(results, offloading.MEMORY, name).items()
    }


def _agents(case: str) -> Callable[[Results], Values]:
    def values(results: Results) -> Values:
        found = {name: results.median(many_agents.WORK, case, name) for name in (OURS, *_OURS_IN)}
        return {name: value for name, value in found.items() if value is not None}

    return values


def _reading(case: str) -> Callable[[Results], Values]:
    def values(results: Results) -> Values:
        ratios = _ratios(results, reading_back.WORK, OURS, LIMIT)
        return {found: ratio for found, ratio in ratios.items() if found == f"{case}, {_BIG[1]}"}

    return values


def _reading_lines(results: Results) -> Values:
    return _starting(_medians(results, reading_back.WORK, OURS), reading_back.READ)


def _reading_more(results: Results) -> Values:
    small, big = (results.median(reading_back.WORK, f"{reading_back.READ}, {size}", OURS) for size in _BIG)
    return {reading_back.READ: big / small} if small and big else {}


def _reading_memory(results: Results) -> Values:
    return _medians(results, reading_back.MEMORY, OURS)


def _storing_more(results: Results) -> Values:
    few, many = (results.median(many_stores.WORK, case, OURS) for case in (many_stores.FEW, many_stores.MANY))
    return {many_stores.MANY: many / few} if few and many else {}


def _bucket_against_least(results: Results) -> Values:
    return _starting(_ratios(results, in_bucket.WORK, OURS, LIMIT), many_agents.TAKEN)


def _bucket_wait(results: Results) -> Values:
    return _starting(_medians(results, in_bucket.WORK, OURS), many_agents.LONGEST)


def _importing(case: str) -> Callable[[Results], Values]:
    return lambda results: _starting(_medians(results, importing.WORK, OURS), case)


def _importing_in_frameworks(results: Results) -> Values:
    found = {name: results.median(importing.WORK, importing.ADDED, name) for name in _OURS_IN}
    return {name: value for name, value in found.items() if value is not None}


def _medians(results: Results, work: str, system: str) -> Values:
    found = {case: results.median(work, case, system) for case in results.cases(work)}
    return {case: value for case, value in found.items() if value is not None}


def _ratios(results: Results, work: str, ours: str, theirs: str) -> Values:
    compared = _medians(results, work, theirs)
    return {case: value / compared[case] for case, value in _medians(results, work, ours).items() if case in compared}


def _starting(values: Values, case: str) -> Values:
    return {found: value for found, value in values.items() if found.startswith(case)}


_TARGETS = (
    _Target(words="A 1 KB result that stays", limit=5.0, unit="µs", values=_passing),
    _Target(
        words="The same in an adapter, against the framework's own offloader",
        limit=NOISE,
        values=_passing_in_frameworks,
    ),
    _Target(
        words="Offloading 10 MB and 100 MB in no framework, against encoding and writing",
        limit=1.5,
        values=_offload_against_least,
    ),
    _Target(
        words="Offloading, against every peer that counts tokens",
        limit=1.0,
        values=_offload_against_peers("counts tokens"),
    ),
    _Target(
        words="The same, against every peer that counts four characters as a token, each in its framework",
        limit=1.0,
        values=_offload_against_peers("estimates tokens"),
    ),
    _Target(words="Offloading in Haystack, against its own", limit=1.5, values=_offload_against_haystack),
    _Target(
        words="Memory of offloading 10 MB and 100 MB, in no framework and in each",
        limit=1.0,
        unit="copies",
        values=_offload_memory,
    ),
    _Target(
        words="64 agents, 99th percentile of the loop's waits",
        limit=10.0,
        unit="ms",
        values=_agents(many_agents.PERCENTILE),
    ),
    _Target(words="64 agents, the longest wait", limit=50.0, unit="ms", values=_agents(many_agents.LONGEST)),
    _Target(
        words="Finding a literal in 100 MB, against ripgrep with the start of its process",
        limit=3.0,
        values=_reading(reading_back.LITERAL),
    ),
    _Target(
        words="Finding a character class in 100 MB, against the same",
        limit=10.0,
        values=_reading(reading_back.CHARACTER_CLASS),
    ),
    _Target(words="Reading 20 lines", limit=5.0, unit="ms", values=_reading_lines),
    _Target(words="Reading 20 lines of 100 MB, against 10 MB", limit=1.5, values=_reading_more),
    _Target(words="Memory of finding and reading", limit=32.0, unit="MB", values=_reading_memory),
    _Target(words="Storing into a full storage, against a nearly empty one", limit=1.2, values=_storing_more),
    _Target(words="64 agents on S3, against bare puts", limit=1.3, values=_bucket_against_least),
    _Target(words="64 agents on S3, the longest wait", limit=50.0, unit="ms", values=_bucket_wait),
    _Target(
        words="`import coatcheck`, which loads no name before it is used",
        limit=40.0,
        unit="ms",
        values=_importing(importing.ALONE),
    ),
    _Target(
        words="`from coatcheck import FileStorage, Offloader`",
        limit=40.0,
        unit="ms",
        values=_importing(importing.ADDED),
    ),
    _Target(
        words="What importing an adapter adds to its framework", limit=30.0, unit="ms", values=_importing_in_frameworks
    ),
)
