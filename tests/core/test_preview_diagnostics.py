"""What compilers and linters report is shown by severity, file and code, and each count is true."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from coatcheck.core.preview import Previewed
from coatcheck.core.preview.kinds import kinds_of
from tests.core.previewing import TIKTOKEN, checked_preview

if TYPE_CHECKING:
    from collections.abc import Callable

_MESSAGES = (
    ('Name "item_{n}" is not defined', "name-defined"),
    ("Missing return statement", "return"),
    ('Unsupported operand for "part_{n}"', "operator"),
)


def _mypy(number: int, message: str, code: str) -> str:
    return f"src/part_{number % 7}.py:{number + 1}: error: {message}  [{code}]\n"


def _gcc(number: int, message: str, code: str) -> str:
    shown = f"{number + 1:5} | int item_{number};\n      |     ^~~~\n"
    return f"src/part_{number % 7}.c:{number + 1}:5: error: {message} [-W{code}]\n{shown}"


def _javac(number: int, message: str, _code: str) -> str:
    return f"src/Part{number % 7}.java:{number + 1}: error: {message}\n    item();\n    ^\n  symbol: item\n"


def _pyright(number: int, message: str, code: str) -> str:
    return f"  /srv/src/part_{number % 7}.py:{number + 1}:5 - error: {message} (report-{code})\n"


def _tsc(number: int, message: str, code: str) -> str:
    return f"src/part_{number % 7}.ts({number + 1},5): error TS{len(code) + 1000}: {message}\n"


def _tsc_pretty(number: int, message: str, code: str) -> str:
    place = f"\x1b[96msrc/part_{number % 7}.ts\x1b[0m:\x1b[93m{number + 1}\x1b[0m:5"
    shown = f"\n\x1b[7m{number + 1}\x1b[0m let item;\n\x1b[7m  \x1b[0m     ~~~\n\n"
    return f"{place} - \x1b[91merror\x1b[0m\x1b[90m TS{len(code) + 1000}: \x1b[0m{message}\n{shown}"


def _eslint(number: int, message: str, code: str) -> str:
    return f"\n/srv/src/part_{number % 7}.js\n  {number + 1}:5  error  {message}  rules/{code}\n"


def _cargo(number: int, message: str, code: str) -> str:
    place = f"   --> src/part_{number % 7}.rs:{number + 1}:5\n    |\n{number + 1:3} | let item;\n    |     ^^^^\n\n"
    return f"error[E{len(code) + 1000}]: {message}\n{place}"


def _flake8(number: int, message: str, code: str) -> str:
    return f"src/part_{number % 7}.py:{number + 1}:5: E{len(code) + 100} {message}\n"


TOOLS: dict[str, Callable[[int, str, str], str]] = {
    "mypy": _mypy,
    "gcc": _gcc,
    "javac": _javac,
    "pyright": _pyright,
    "tsc": _tsc,
    "tsc --pretty": _tsc_pretty,
    "eslint": _eslint,
    "cargo": _cargo,
    "flake8": _flake8,
}


def _report(tool: str, count: int = 200) -> str:
    """Return as many problems: one in 40 of the second kind, a single one of the third."""
    chosen = [2 if number == count - 3 else number % 40 == 7 for number in range(count)]
    kinds = [_MESSAGES[kind] for kind in chosen]
    return "".join(TOOLS[tool](number, kind[0].format(n=number), kind[1]) for number, kind in enumerate(kinds))


def _shown(text: str, budget: int = 500) -> list[str]:
    return checked_preview(Previewed.of(text), budget).splitlines()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_report_says_how_many_problems_there_are_and_where(tool: str) -> None:
    text = _report(tool)
    paths = Counter(re.findall(r"part_\d|Part\d", re.sub(r"item_\d+|Unsupported.*", "", text)))
    shown = _shown(text)
    noun = "findings" if tool == "flake8" else "errors"

    assert shown[0].startswith(f"[200 {noun} in 7 files below ")
    by_file = re.findall(r"(part_\d|Part\d)\.\w+ (\d+)", shown[1])
    assert shown[1].startswith(f"[{noun} by file: ")
    assert {name: int(count) for name, count in by_file} == paths


@pytest.mark.parametrize("tool", TOOLS)
def test_each_kind_of_problem_is_shown_at_its_line_with_how_many_there_are(tool: str) -> None:
    text = _report(tool)
    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in text.split("\n")]
    assert f"; {sum(line.startswith('[line ') for line in _shown(text))} shown, " in _shown(text)[0]
    kinds = [line for line in _shown(text) if re.match(r"\[line [\d,]+(?: in \S+)?(?:, \d+ alike)?\]", line)][:3]
    counts = []
    for line in kinds:
        number, alike, reported = re.fullmatch(r"\[line ([\d,]+)(?: in \S+)?(?:, (\d+) alike)?\] (.*)", line).groups()  # type: ignore[union-attr]
        assert lines[int(number.replace(",", "")) - 1].strip() == reported
        counts.append(int(alike or 1))

    assert counts == [194, 5, 1]


def test_errors_are_shown_before_warnings_and_notes_are_only_counted() -> None:
    text = "".join(
        f"src/a_{n % 3}.py:{n}: warning: unused\nsrc/a_{n % 3}.py:{n}: note: see the manual\n" for n in range(1, 90)
    )
    shown = _shown(f"{text}src/last.py:7: error: no such name\n{text}")

    assert shown[0].startswith("[1 error, 178 warnings, 178 notes in 4 files below src/; ")
    assert shown[1:3] == ["[errors by file: last.py 1]", "[warnings by file: a_1.py 60, a_2.py 60, a_0.py 58]"]
    assert shown[3:5] == [
        "[line 179] src/last.py:7: error: no such name",
        "[line 1, 178 alike] src/a_1.py:1: warning: unused",
    ]
    assert not any("note:" in line for line in shown)


@pytest.mark.parametrize("count", [12, 400])
def test_a_crash_of_the_tool_comes_first(count: int) -> None:
    report = _report("mypy", count)
    crash = 'Traceback (most recent call last):\n  File "m.py", line 3, in run\nRuntimeError: out of cheese\n'
    shown = _shown(f"{report}{crash}{report}Found 800 errors in 7 files (checked 9 source files)\n", 300)

    assert shown[0] == "[2 ERROR lines of another form]"
    assert f"[line {count + 1}] Traceback (most recent call last):" in shown[1:3]
    assert f"[line {count + 3}] RuntimeError: out of cheese" in shown[1:3]
    assert shown[3].startswith(f"[{2 * count} errors in 7 files below src/; ")


@pytest.mark.parametrize(("tool", "path"), [("eslint", "part_0.js"), ("cargo", "part_0.rs")])
def test_a_problem_that_does_not_name_its_file_is_shown_with_it(tool: str, path: str) -> None:
    assert any(re.match(rf"\[line \d+ in {path}, 194 alike\]", line) for line in _shown(_report(tool)))


def test_the_first_line_and_the_total_of_the_tool_are_kept() -> None:
    total = "Found 200 errors in 7 files (checked 54 source files)"
    shown = _shown(f"/dev/null: No [mypy] section in config file\n{_report('mypy')}{total}\n", 250)

    assert "[line 1] /dev/null: No [mypy] section in config file" in shown
    assert shown[-1] == f"[line 202] {total}"
    assert shown[0].startswith("[200 errors in 7 files below src/; ")


def test_the_room_that_is_left_has_more_of_the_problems_errors_first() -> None:
    shown = _shown(_report("mypy"), 900)
    numbers = [int(found[1].replace(",", "")) for line in shown if (found := re.match(r"\[line ([\d,]+)", line))]

    assert len(numbers) > 12
    assert len(set(numbers)) == len(numbers)
    assert TIKTOKEN.count("\n".join(shown)) > 800


def test_many_files_are_named_as_far_as_there_is_room() -> None:
    text = "".join(f"lib/a/module_{n // 2:03}.py:{n + 1}: error: wrong  [misc]\n" for n in range(400))
    shown = _shown(text)

    assert shown[0].startswith("[400 errors in 200 files below lib/a/; ")
    found = re.fullmatch(r"\[errors by file: (.*), … (\d+) more files\]", shown[1])
    assert found is not None
    assert len(found[1].split(", ")) + int(found[2]) == 200


def test_kinds_without_room_are_counted() -> None:
    text = "".join(f"lib/module_{n % 3}.py:{n + 1}: error: wrong  [code-{n % 90 // 2}x]\n" for n in range(900))
    shown = _shown(text, 250)
    kinds = sum(line.startswith("[line ") for line in shown)

    assert f"; {kinds} shown, with how many are alike in code or message, the rest is not:]" in shown[0]
    assert shown[-1] == f"[… {45 - kinds} more kinds of code or message …]"


OTHERS = {
    "log": "".join(f"2026-01-01 12:00:0{n % 9} app/main.py:{n}: error: no answer\n" for n in range(90)),
    "stamps and levels": "".join(f"ERROR app/main.py:{n}: error: no answer\n" for n in range(90)),
    "traceback": "Traceback (most recent call last):\n"
    + "".join(f'  File "app/main.py", line {n}, in run\n    error: int = 3\n' for n in range(90))
    + "ValueError: error: 3\n",
    "source": "".join(f"// see src/a.c:{n}: error: wrong\nint a_{n};\nerror: return {n};\n" for n in range(90)),
    "grep": "".join(f"src/part_{n % 7}.c:{n + 1}:error: goto end;\n" for n in range(90)),
    "grep for a label": "".join(
        f"src/part_{n % 7}.c:{n + 1}: {'error' if n % 3 else 'done'}: return {n};\n"
        if n % 2
        else f"src/part_{n % 7}.c:{n + 1}: goto error;\n"
        for n in range(90)
    ),
    "addresses": "".join(f"10.0.0.{n}:80: error: refused\n" for n in range(90)),
    "manual": "".join(f"Part {n} of a long text about errors\n" for n in range(90)) + _report("mypy", 6),
    "times": "".join(f"  12:{n % 60:02}  error  no answer\n" for n in range(90)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_problems_is_shown_as_before(name: str) -> None:
    assert "preview_diagnostics" not in [
        show.__name__ for show in kinds_of(Previewed.of(OTHERS[name]))
    ] or not re.search(r"\d in \d+ files?[; ]", checked_preview(Previewed.of(OTHERS[name]), 400))
