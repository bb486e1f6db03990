"""The output of a failed test run or compiler is shown as a log: what failed, and why the first one did."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from coatcheck.core.preview import Previewed, preview
from coatcheck.core.preview.kinds import kinds_of
from coatcheck.core.tokens import TiktokenCounter

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
import unittest
import pytest

@pytest.mark.parametrize("number", range(150))
def test_even(number):
    record = {"number": number, "half": number // 2}
    assert record["half"] * 2 == (number if number % 10 else number + 1)

class TestOfUnittest(unittest.TestCase):
    pass

def made(number):
    return lambda self: self.assertEqual(number % 10, number % 10 or 1)

for number in range(150):
    setattr(TestOfUnittest, f"test_{number:03}", made(number))
"""


def _run(folder: Path, *arguments: str) -> str:
    (folder / "test_numbers.py").write_text(TESTS)
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def _shown(text: str, budget: int = 500) -> str:
    return preview(Previewed.of(text), TiktokenCounter(), budget=budget)


def _is_log(ending: str) -> bool:
    """Return whether text with this ending is tried as a log first."""
    text = "\n".join(f"{number} of the tests is done" for number in range(200))
    return next(kinds_of(Previewed.of(f"{text}\n{ending}"))).__name__ == "preview_log"


@pytest.mark.parametrize("how", [(), ("-q",), ("-v", "--tb=no"), ("--tb=short",)])
def test_the_failed_tests_of_a_pytest_run_are_shown(tmp_path: Path, how: tuple[str, ...]) -> None:
    pytest_alone = ("pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", "/dev/null", "--rootdir=.")
    shown = _shown(_run(tmp_path, *pytest_alone, *how, "-k", "test_even"))

    assert "ERROR lines]" in shown.partition("\n")[0]
    failed = [line for line in shown.split("\n") if line.startswith("FAILED ")]
    assert "test_even[0]" in failed[0]
    assert "test_even[149]" in failed[-1]
    assert "--tb=no" in how or "\nE   " in shown
    assert "........" not in shown.partition("[… ")[2].partition("\n")[0]


def test_the_failed_tests_of_a_unittest_run_are_shown(tmp_path: Path) -> None:
    shown = _shown(_run(tmp_path, "unittest", "-v", "test_numbers"))

    assert "ERROR lines]" in shown.partition("\n")[0]
    assert "FAIL: test_000 (test_numbers.TestOfUnittest" in shown
    assert "\nFAILED (failures=15)" in shown


@pytest.mark.parametrize(
    "ending",
    [
        "Ran 150 tests in 0.010s\n\nFAILED (failures=15)\n",
        "Ran 3 tests in 0.010s\n\nFAILED (errors=1)\n",
        "--- FAIL: TestEven (0.00s)\n    even_test.go:12: 0 is not 1\nFAIL\nFAIL\texample.org/even\t0.003s\nFAIL\n",
        "test result: FAILED. 135 passed; 15 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n",
        "=========== 15 failed, 135 passed in 0.32s ===========\n",
        "15 failed, 135 passed, 2 warnings in 0.32s\n",
        "15 failed, 135 passed, 3 subtests passed in 0.32s\r\n",
        "= 15 failed, 2 errors in 90061.00s (1 day, 1:01:01) =\n",
        "=========== 882 passed, 1 error in 61.20s (0:01:01) ===========\n",
        "src/sort.cpp:7:104: error: no match for 'operator<<'\n",
        "lib/sort.h:12: error: expected ';' before 'int'\n",
        "main.c:1:10: fatal error: sorted.h: No such file or directory\n",
        "Sort.java:5: error: cannot find symbol\n",
        "../My Project/main.m:1:10: error: expected expression\n",
        "error[E0382]: use of moved value: `words`\n  --> src/sort.rs:14:5\n   |\n",
        "error[import-not-found]: Cannot resolve imported module `n`\n --> t.py:2:8\n",
        "error: cannot find macro `foo` in this scope\n --> b.rs:1:13\n  |\n",
    ],
)
def test_the_ending_of_a_failed_run_makes_it_a_log(ending: str) -> None:
    assert _is_log(ending)


@pytest.mark.parametrize(
    "ending",
    [
        "All 135 tests passed, none failed in the last week.\n",
        "Last year 15 failed in summer.\n",
        "15 failed attempts were logged in 30s by the gateway, and retried.\n",
        "12 errors and failures in 3s of downtime were all that was left.\n",
        "2 errors fixed in 1.5s\n",
        "FAILED (see below)\n",
        "a --- FAIL: in the middle\n",
        "the test result: FAILED is rare\n",
        "The compiler then says error: expected ';' before 'int', which is no help.\n",
        "    sort.c:7: error: a quotation in Markdown\n",
        "# main.py:3: error: Name already defined, as a comment quotes it\n",
        "> sort.c:7:1: error: as a mail quotes it\n",
        "error[E0382]: see the index of errors\n",
    ],
)
def test_prose_about_tests_is_not_a_log(ending: str) -> None:
    assert not _is_log(ending)


def test_errors_a_program_names_itself_come_before_details_of_other_errors() -> None:
    details = [f"E       AssertionError: assert {letter * 9} == 1" for letter in "abcdefghijklmnop"]
    failed = [f"FAILED tests/test_{letter}.py::test_{letter}" for letter in "abcdefghijklmnop"]
    steps = [f"[2026-01-01 10:00:00] step {number}" for number in range(100)]
    shown = _shown("\n".join([*steps, *details, *steps, *failed, *steps]), 400)

    assert shown.count("\nFAILED ") > shown.count("\nE ")
    assert details[0] in shown
