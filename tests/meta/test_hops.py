"""``benchmarks.hops`` counts what it claims to count."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from benchmarks.alike import code_lines
from benchmarks.hops import MAX_LINES, hook_lines, longest_functions, walk
from tests.meta.source_tree import ROOT, adapter_packages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _here(path: str) -> str | None:
    return "here" if path == __file__ else None


def _outer() -> int:
    return sum(_inner(number) for number in range(3)) + len(list(map(lambda each: each, _numbers())))  # noqa: C417 - the test counts this lambda


def _inner(number: int) -> int:
    return number


def _numbers() -> Iterator[int]:
    yield 1
    yield 2


def test_a_function_counts_once_together_with_its_lambdas_and_generator_expressions() -> None:
    way = walk(_outer, _here)

    assert [function for _, function in way.functions] == ["_outer", "_inner", "_numbers"]
    assert way.files == 1
    assert way.depth == 4, "this test, outer, its generator expression, inner"


def test_a_generator_that_is_resumed_is_one_call() -> None:
    assert walk(lambda: list(_numbers()), _here).calls == 2, "the lambda and the generator"


def test_functions_on_other_threads_count_too() -> None:
    def work() -> None:
        thread = threading.Thread(target=_inner, args=(1,))
        thread.start()
        thread.join()

    assert ("here", "_inner") in walk(work, _here).functions


def test_other_files_do_not_count() -> None:
    assert not walk(_outer, lambda _: None).functions


def test_blank_lines_comments_and_docstrings_are_not_code(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    code = ["x = 1  # a comment behind it", "def f():", "    return (", "        x", "    )"]
    module.write_text("\n".join(['"""Head."""', "", "# A comment.", *code[:2], '    """Do it."""', *code[2:], ""]))

    assert code_lines(module) == 5


def test_the_longest_function_comes_first_and_is_within_the_limit() -> None:
    (most, place), (second, _) = longest_functions(ROOT / "src" / "coatcheck", 2)

    assert second <= most <= MAX_LINES, place
    assert (ROOT / place.partition(":")[0]).is_file()


def test_every_adapter_has_its_conversions_and_its_hook_counted() -> None:
    lines = hook_lines()

    assert sorted(lines) == adapter_packages()
    assert all(lines.values())
