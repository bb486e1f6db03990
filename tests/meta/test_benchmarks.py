"""The benchmarks still run, on tiny inputs and without other packages, and every name that they use exists."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import corpus, outputs, stall
from benchmarks.bench import Bench, Scale
from benchmarks.environments import CORE, Environments
from benchmarks.measuring import Spread, watched_memory
from benchmarks.processes import Process, Processes
from benchmarks.report import put_into, report
from benchmarks.results import Results
from benchmarks.systems import LIMIT, ON_S3, OURS, SYSTEMS
from benchmarks.systems.system import Missing
from benchmarks.targets import outcomes
from benchmarks.works import importing, many_agents, many_stores, offloading, passing, reading_back
from tests.meta.source_tree import ROOT, pyproject

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

TINY = Scale(
    rounds=2,
    enough_seconds=0.0,
    enough_rounds=1,
    memory_rounds=1,
    sizes=(100_000, 200_000),
    kinds=tuple(corpus.KINDS),
    sizes_read=(2_000_000,),
    touched_bytes=4_096,
    stores=300,
    store_samples=100,
    store_seconds=5.0,
    agents=3,
    agent_rounds=2,
    imports=1,
)
HERE = Environments(pythons={CORE: sys.executable})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return the results of the shortest possible run."""
    folder = tmp_path_factory.mktemp("bench")
    systems = {name: SYSTEMS[name] for name in (LIMIT, OURS)}
    surroundings = {"TMPDIR": str(folder)}
    with pytest.MonkeyPatch.context() as patch, Processes(systems, HERE, variables=surroundings) as processes:
        patch.setattr(offloading, "TOO_SLOW_SECONDS", math.inf)  # so that no size is left out on a machine that stalls
        bench = Bench(processes=processes, environments=HERE, folder=folder, scale=TINY)
        for work in (passing, offloading, reading_back, many_stores, many_agents, importing):
            work.measure(bench)
    return bench.results


def test_every_benchmark_measures_ours(results: Results) -> None:
    for work in (
        *(passing.WORK, offloading.WORK, offloading.LEFT, reading_back.WORK, reading_back.MEMORY),
        *(many_stores.WORK, many_agents.WORK, importing.WORK),
    ):
        assert results.cases(work)
        for case in results.cases(work):
            spread = results.figures[work, case, OURS]
            assert 0 <= spread.low <= spread.median <= spread.high
    assert results.median(many_stores.STORED, many_stores.COUNT, OURS) == TINY.stores
    assert [key for key in results.missing if key[2] == OURS] == []


def test_the_yardsticks_for_ours_are_measured_too(results: Results) -> None:
    for kind in corpus.KINDS:
        assert results.median(offloading.WORK, f"{kind}, 100 KB", LIMIT)
    literal = (reading_back.WORK, f"{reading_back.LITERAL}, 2 MB", LIMIT)
    assert literal in (results.figures if shutil.which("rg") else results.missing)


def test_results_are_the_same_after_being_written_and_read(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results.json")

    assert Results.read(tmp_path / "results.json") == results


def test_the_report_is_complete_and_replaces_the_old_one_on_its_page(results: Results, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    shutil.copy(ROOT / "docs/benchmarks.md", page)
    before = page.read_text(encoding="utf-8").splitlines()[:3]
    text = report(results)

    put_into(page, text)
    put_into(page, text)

    made = page.read_text(encoding="utf-8")
    assert made.splitlines()[:3] == before
    assert made.count(text) == 1
    assert made.count("### Offloading to disk") == 1
    assert all(kind in made for kind in corpus.KINDS)


def test_a_target_is_judged_by_its_worst_case() -> None:
    found = Results()
    for case, seconds in (("log text, 10 MB", 0.9), ("log text, 100 MB", 1.6), ("log text, 1 MB", 9.0)):
        found.add(offloading.WORK, case, LIMIT, [1.0, 1.0, 1.0])
        found.add(offloading.WORK, case, OURS, [seconds, seconds, 100.0])

    (missed,) = [outcome for outcome in outcomes(found) if "encoding and writing" in outcome.target]

    assert not missed.met
    assert missed.worst == pytest.approx(1.6)
    assert (missed.case, missed.limit) == ("log text, 100 MB", 1.5)

    found.add(offloading.WORK, "log text, 100 MB", OURS, [1.5])
    assert all(outcome.met for outcome in outcomes(found))


def test_a_spread_covers_the_middle_half() -> None:
    spread = Spread.of([1.0, 2.0, 3.0, 4.0, 100.0])

    assert spread.median == 3.0
    assert spread.low < 3.0 < spread.high
    assert Spread.of([7.0]) == Spread(median=7.0, low=7.0, high=7.0, runs=1)


def test_memory_counts_what_was_allocated_even_if_it_was_freed_since(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(60_000_000))
    assert whole(file) == 60_000_000  # an earlier peak that must not count

    with watched_memory() as idle, file.open("rb") as opened:
        while opened.read(1_000_000):
            pass
    with watched_memory() as busy:
        size = whole(file)

    assert idle.peak_bytes < 5_000_000
    assert size - 2_000_000 < busy.peak_bytes < size + 10_000_000


def whole(file: Path) -> int:
    """Hold the whole file for a moment, and return its size."""
    return len(file.read_bytes())


async def test_every_stall_of_the_loop_that_the_page_names_is_measured(tmp_path: Path) -> None:
    waits = [
        await stall.many_results(str(tmp_path), 0, size=20_000),
        await stall.parsed(stall.records(100_000))(str(tmp_path), 0),
        await stall.parsed(stall.empty_lists(100_000))(str(tmp_path), 0),
        await stall.first_use(),
    ]

    assert min(waits) > 0
    assert len(stall.records(100_000)) <= 100_000
    assert len(stall.empty_lists(100_000)) <= 100_000


def test_the_cpu_time_of_real_results_is_measured_against_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large.json").write_text(json.dumps([{"id": number, "name": "a name"} for number in range(900)]))
    (tmp_path / "larger.txt").write_text("a line of some words\n" * 2_000)
    (tmp_path / "small.txt").write_text("a line of some words\n")
    monkeypatch.setattr(outputs, "prepare", lambda _: HERE)
    monkeypatch.setattr(outputs, "SYNTHETIC_BYTES", 20_000)

    outputs.main(tmp_path, check=True)

    said = capsys.readouterr().out
    assert said.startswith("2 results above 2,500 tokens\n")
    assert "| counting up to the decision | 2 |" in said
    assert "| coatcheck | 2 |" in said
    assert "log of trouble: counting up to the decision " in said
    assert "large.json: Strands: " in said
    assert outputs.main(tmp_path / "small.txt", check=False) == 1


def test_a_goal_is_judged_by_the_multiple_of_the_floor_that_ours_takes() -> None:
    floor = {outputs.FLOOR: 1.0}
    found = [
        outputs.Taken(
            name=str(number), seconds=dict.fromkeys((outputs.BY_DEFAULT, OURS), 2.0 if number < 95 else 14.0) | floor
        )
        for number in range(100)
    ]

    assert list(outputs.missed(found)) == []
    slow = outputs.Taken(name="x", seconds=floor | {outputs.BY_DEFAULT: 2.0, OURS: 20.0})
    slower = [*found, *[slow] * 9]
    assert list(outputs.missed(slower)) == [
        "missed: coatcheck: p95 takes 20.0 times the floor, at most 6 is the goal",
        "missed: coatcheck: slowest takes 20.0 times the floor, at most 15 is the goal",
    ]
    assert "| coatcheck | 100 | 2000.00 | 2.0 |" in outputs.table(found)


def test_every_line_of_a_log_of_trouble_says_so(tmp_path: Path) -> None:
    corpus.write(tmp_path / "log", kind=corpus.TROUBLE, size=5_000)

    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) > 50
    assert all(re.search(r"ERROR|timeout|WARN", line) for line in lines)


def test_a_system_that_has_ended_is_reported_as_missing_with_a_reason() -> None:
    process = Process("gone", "core:NoSuchClass", python=sys.executable, reason="", variables={})
    with pytest.raises(Missing, match="NoSuchClass"):
        process.ask("versions")
    process.end()
    with pytest.raises(Missing, match="has ended"):
        process.ask("versions")
    with pytest.raises(Missing, match="not to be had"):
        Process("none", "core:Coatcheck", python=None, reason="not to be had", variables={}).ask("versions")


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_a_generated_text_has_one_odd_place_and_the_requested_size(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    corpus.write(path, kind=kind, size=300_000)
    text = path.read_bytes().decode()

    assert 300_000 - 200 < path.stat().st_size < 300_000 + 200
    assert text.count(corpus.LITERAL) == 1
    assert text.index(corpus.LITERAL) > len(text) * 0.94
    assert corpus.fresh(text, kind=kind, run=1) != corpus.fresh(text, kind=kind, run=2)


def test_compile_time_is_not_counted_as_import_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "compiled.py").touch()
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    taken = importing.imported(
        sys.executable, f"import sys; sys.path.append({str(tmp_path)!r})", alone="import compiled", added=""
    )

    assert isinstance(taken, dict), taken
    assert 0 < taken[importing.ALONE] < taken[importing.ADDED]
    assert list((tmp_path / "__pycache__").iterdir())


def test_every_system_and_its_environment_exist() -> None:
    project = pyproject()
    installed = {*project["project"]["optional-dependencies"], CORE}  # type: ignore[index]
    installed |= {name.removeprefix("bench-") for name in project["dependency-groups"]}  # type: ignore[attr-defined]
    for candidate in (*SYSTEMS.values(), *ON_S3.values()):
        module, _, name = candidate.place.partition(":")
        tree = ast.parse((ROOT / f"benchmarks/systems/{module}.py").read_text(encoding="utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        assert candidate.environment in installed
        assert not candidate.rival or candidate.rival in SYSTEMS
    assert set(importing.IMPORTS) <= set(SYSTEMS)
