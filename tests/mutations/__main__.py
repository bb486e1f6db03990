"""Breaks the library on purpose, one edit at a time, and lists edits that no test notices: `python -m tests.mutations`.

Each edit is made in a copy of this project, where the tests named with it run in order up to the first failure. The
exit code is 1 if more edits survive than ``MAX_SURVIVORS``, and 2 if an edit cannot be judged: its old text does not
occur exactly once, the test that fails with it fails without it too, or the tests do not run. With arguments, only the
edits whose file or code contains one of them are made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from tests.mutations.catalogue import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
COPIED = ("src", "adapters", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "noxfile.py")
MAX_SURVIVORS = 3
PYTEST_OPTIONS = ("-x", "-q", "-n0", "-pno:randomly", "-pno:cacheprovider")
MAX_SECONDS = 900
"""Seconds for the tests of one edit. An edit that makes them hang counts as noticed."""

HANGS = "the tests hang"
TIMEOUT = re.compile(r"^Timeout \(", re.MULTILINE)
"""What pytest prints about a test that exceeds ``faulthandler_timeout``. It then ends without a summary."""

PASSED, FAILED, NONE_CHOSEN = 0, 1, 5
"""Pytest's exit codes. Any other means that the tests did not run."""

QUICK_FIRST = ("not no_cover", "no_cover")
"""Marks of the tests to run, in turn. Tests without coverage take most of the time, and rarely notice an edit alone."""


class NotJudgedError(Exception):
    """The tests did not run, so nothing is known about an edit."""


def main() -> int:
    """Make the edits whose file or code holds one of the arguments, or all of them."""
    wanted = sys.argv[1:]
    mutations = [each for each in MUTATIONS if not wanted or any(text in f"{each.file} {each.old}" for text in wanted)]
    gone = [each for each in MUTATIONS if (ROOT / "src/coatcheck" / each.file).read_text("utf-8").count(each.old) != 1]
    if gone or not mutations:
        stop([f"not there exactly once: {each.file}: {each.old}" for each in gone] or ["no such edit"])
    with tempfile.TemporaryDirectory() as folder:
        untouched = Path(folder, "untouched")
        copy_project(untouched)
        # This bytecode is copied with the sources, so that Python recompiles only the edited file after an edit.
        tests = sorted({f"tests/{test}" for each in mutations for test in each.tests})
        run_pytest(untouched, ["--collect-only", *tests])
        try:
            killers = judge_all(Path(folder), untouched, mutations)
            innocent = red_without_edit(untouched, {killer for killer in killers if killer not in {None, HANGS}})
        except NotJudgedError as error:
            stop([str(error)])
    if innocent:
        stop([f"fails without any edit too: {innocent}"])
    survivors = killers.count(None)
    print(f"{len(mutations) - survivors} of {len(mutations)} killed")  # noqa: T201 - the result
    return 1 if survivors > MAX_SURVIVORS else 0


def stop(reasons: list[str]) -> NoReturn:
    """End with exit code 2."""
    print(*reasons, sep="\n", file=sys.stderr)  # noqa: T201 - why nothing was judged
    sys.exit(2)


def copy_project(target: Path) -> None:
    """Copy the files that the tests read."""
    target.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)


def judge_all(folder: Path, untouched: Path, mutations: list[Mutation]) -> list[str | None]:
    """Return the test that noticed each edit, or None. The first edit that cannot be judged ends the run."""
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        judged = [workers.submit(judge, folder, untouched, *each) for each in enumerate(mutations)]
        try:
            return [each.result() for each in judged]
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise


def judge(folder: Path, untouched: Path, number: int, mutation: Mutation) -> str | None:
    """Make one edit in a copy of its own; return the test that noticed it, or None."""
    project = folder / str(number)
    shutil.copytree(untouched, project)
    path = project / "src/coatcheck" / mutation.file
    path.write_text(path.read_text("utf-8").replace(mutation.old, mutation.new), "utf-8")
    killer = failing_test(project, [f"tests/{test}" for test in mutation.tests])
    shutil.rmtree(project)
    edit = f"{mutation.file}: {' '.join(mutation.old.split())}  ->  {' '.join(mutation.new.split())}"
    print(f"{'killed' if killer else 'SURVIVED':9}{edit}\n{'':9}{killer or ''}", flush=True)  # noqa: T201 - the report
    return killer


def red_without_edit(untouched: Path, killers: set[str]) -> str | None:
    """Return a test that noticed an edit but also fails without any. All tests run in one process."""
    return failing_among(untouched, sorted(killers), "") if killers else None


def failing_test(project: Path, tests: list[str]) -> str | None:
    """Run tests of ``project`` up to the first failure; return the failed test, ``HANGS`` or None."""
    return next(filter(None, (failing_among(project, tests, mark) for mark in QUICK_FIRST)), None)


def failing_among(project: Path, tests: list[str], mark: str) -> str | None:
    """Run the tests that the mark expression ``mark`` selects."""
    try:
        ended = run_pytest(project, ["-m", mark, *tests])
    except subprocess.TimeoutExpired:
        return HANGS
    if ended.returncode in {PASSED, NONE_CHOSEN}:
        return None
    summary = ended.stdout.rpartition("short test summary info")[2]  # a logged line may begin like a failure
    failures = [line for line in summary.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if ended.returncode == FAILED and TIMEOUT.search(ended.stderr):
        return HANGS
    if ended.returncode != FAILED or not failures:
        msg = f"the tests did not run in {project}:\n{ended.stdout[-2_000:]}\n{ended.stderr[-2_000:]}"
        raise NotJudgedError(msg)
    return failures[0].partition(" ")[2].partition(" - ")[0]


def run_pytest(project: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run pytest in ``project``, against the sources there."""
    # These paths come before whatever is installed, such as the sources that this project was copied from.
    environment = {**os.environ, "PYTHONPATH": f"{project / 'src'}{os.pathsep}{project / 'adapters'}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, every edit would recompile all modules and tests
    with tempfile.TemporaryDirectory() as scratch:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *PYTEST_OPTIONS, f"--basetemp={scratch}/pytest", *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )


if __name__ == "__main__":
    sys.exit(main())
