"""Rare errors are found, counted and shown in text of any kind, wherever they are. Common ones change nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, InMemoryStorage, Offloader, TextBlock
from coatcheck.core.preview import LARGE_CHARACTERS, Previewed, log, preview, search_for_odd
from tests.core.previewing import TIKTOKEN, checked_preview

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES = 20
COUNT = 400
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty"]


def _word(number: int) -> str:
    return f"{WORDS[number % 10]}_{WORDS[number // 10 % 10]}_{number * 7919 % 9973:x}"


def _time(number: int) -> str:
    return f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"


def _shown(text: str, budget: int = 300) -> str:
    return checked_preview(Previewed.of(text), budget)


KINDS: dict[str, tuple[Callable[[int], str], str]] = {
    "jobs": (lambda n: f"job_{n}: ok", "job_x: ERROR disk full"),
    "lines of several sources": (lambda n: f"[web-{n % 5}] took {_word(n)} from the queue", "[web-3] error: no route"),
    "containers": (lambda n: f"api-{n % 3}  | took {_word(n)} from the queue", "api-2  | panic: index out of range"),
    "pytest": (lambda n: f"tests/test_{_word(n)}.py::test_it PASSED [ {n // 4}%]", "tests/test_x.py::test_it FAILED"),
    "go test": (lambda n: f"--- PASS: Test{_word(n)} (0.00s)", "--- FAIL: TestNeedle (0.00s)"),
    "cargo test": (lambda n: f"test {_word(n)}::parses ... ok", "test needle::parses ... FAILED"),
    "jest": (lambda n: f"    ✓ sees {_word(n)} ({n % 9} ms)", "    ✕ sees the needle (3 ms)"),
    "TAP": (lambda n: f"ok {n} - sees {_word(n)}", "not ok 7 - sees the needle"),
    "gcc": (lambda n: f"gcc -c src/{_word(n)}.c -o build/{_word(n)}.o", "src/x.c:12:3: error: expected ';'"),
    "make": (lambda n: f"gcc -c src/{_word(n)}.c -o build/{_word(n)}.o", "make: *** [Makefile:3: needle.o] Error 1"),
    "npm": (lambda n: f"npm http fetch GET 200 https://registry/{_word(n)} {n}ms", "npm error code ERESOLVE"),
    "kubectl": (
        lambda n: f"default   {_word(n):<40} 1/1   Running   0   {n}d",
        "default   needle   0/1   CrashLoopBackOff   41   3d",
    ),
    "Markdown table": (lambda n: f"| {n} | {_word(n)} | fine |", "| 7 | needle | FAILED |"),
    "stack trace": (lambda n: f"{_word(n)} was taken from the queue", "java.lang.IllegalStateException: no needle"),
    "JSON Lines": (lambda n: json.dumps({"id": n, "said": _word(n)}), '{"id": 7, "said": "ERROR disk full"}'),
    "CSV": (lambda n: f"{n},{_word(n)},{_word(n + 1)}", "7,needle,ERROR disk full"),
    "tsc": (lambda n: f"src/{_word(n)}.ts: built", "src/x.ts(3,4): error TS2322: not assignable"),
    "msbuild": (lambda n: f"src/{_word(n)}.cs: built", "src/x.cs(3,4): error CS1002: ; expected"),
    "logfmt": (lambda n: f"{_time(n)} level=info msg={_word(n)}", 'level=error msg="disk full"'),
    "nginx": (lambda n: f"2024/05/01 {_time(n)} [notice] 7#7: *{n} {_word(n)}", "2024/05/01 [error] 7#7: no route"),
    "Apache": (lambda n: f"[Wed May 01 {_time(n)} 2024] [core:info] {_word(n)}", "[Wed May 01 2024] [core:error] lost"),
    "klog": (lambda n: f"I0501 {_time(n)}.123456   1 main.go:{n}] {_word(n)}", "E0501 10:00:01.1   1 main.go:7] lost"),
    "Serilog": (lambda n: f"[{_time(n)} INF] {_word(n)}", "[10:00:01 ERR] lost"),
    "access log": (
        lambda n: f'10.0.0.7 - - [10/Oct/2000:{_time(n)} -0700] "GET /{_word(n)} HTTP/1.1" 200 {n}',
        '10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET /needle HTTP/1.1" 503 7',
    ),
    "Go log": (lambda n: f"2024/05/01 {_time(n)} took {_word(n)}", "2024/05/01 10:00:01 ERROR disk full"),
    "CSV with times": (lambda n: f"a.b,{_word(n)},2024-05-01T{_time(n)}Z,ok", "a.b,x,2024-05-01T10:00:01Z,ERROR"),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
def test_a_rare_error_is_counted_and_shown_wherever_it_is(kind: str) -> None:
    line, error = KINDS[kind]
    lines = [line(number) for number in range(COUNT)]
    missing = []
    for place in range(PLACES):
        at = 1 + place * (COUNT - 2) // (PLACES - 1)
        shown = _shown("\n".join([*lines[:at], error, *lines[at:]]))
        if error.strip(' {}"').removeprefix('id": 7, "said": "') not in shown or (
            place == PLACES // 2 and not shown.startswith("[1 ")
        ):
            missing.append(at)

    assert not missing


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("\x1b[32mINFO\x1b[0m", "\x1b[31mERROR\x1b[0m disk full"),
        ("\x1b[2m10:00:00\x1b[0m \x1b[32m INFO\x1b[0m", "\x1b[2m10:00:01\x1b[0m \x1b[1;31mERROR\x1b[0m disk full"),
        ("\x1b[01m\x1b[Kx.c:3:4:\x1b[m\x1b[K", "x.c:3:4: \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kdisk full"),
    ],
)
def test_colours_do_not_hide_an_error(line: str, error: str) -> None:
    lines = [f"{line} {_word(number)}" for number in range(COUNT)]
    for at in (0, 130, 270, COUNT):
        assert "disk full" in _shown("\n".join([*lines[:at], error, *lines[at:]]))


def test_a_long_error_in_a_log_is_shown_around_its_level_with_cuts_marked() -> None:
    lines = [f"2026-01-01 {_time(number)} INFO took {_word(number)} from the queue" for number in range(1_500)]
    for before, words in (("", 10), ("", 20), ("", 900), ("first this and then that " * 60, 900)):
        lines[700] = f"2026-01-01 00:11:40 {before}ERROR disk full{' 0x3f9a00' * words}"
        shown = _shown("\n".join(lines), 500).split("\n")
        (error,) = (line for line in shown if "ERROR disk full" in line)

        assert (error == lines[700]) == (words == 10)
        assert len(error) <= 200
        assert error.startswith("…") == bool(before)
        assert error.endswith("…") == (words > 10)


def test_an_unfinished_count_is_marked_as_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_COUNTED", 50)
    monkeypatch.setattr(log, "_PIECE", 1_000)
    lines = [f"2026-01-01 {_time(number)} ERROR worker {number} has no route" for number in range(200)]
    shown = _shown("\n".join(lines))

    assert shown.startswith("[50+ ERROR lines]\n")
    assert re.search(r"no route \(\d+\+ alike\)\n", shown)


def test_milder_levels_are_not_counted_to_the_end_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_COUNTED", 50)
    monkeypatch.setattr(log, "_PIECE", 1_000)
    lines = [f"2026-01-01 {_time(number)} ERROR worker {number} has no route" for number in range(100)]
    lines += [f"2026-01-01 {_time(number)} WARN worker {number} is slow" for number in range(40)]

    assert re.match(r"\[50\+ ERROR, \d+\+ WARN lines\]\n", _shown("\n".join(lines)))


def test_an_error_that_only_a_smaller_preview_would_show_is_still_shown() -> None:
    kinds = ["Every disaster", "Drought", "Earthquake", "Epidemic", "Extreme cold", "Heat", "Flood", "Landslide"]
    lines = [
        json.dumps({"Entity": kind, "Year": 1900 + year, "Deaths": year * 7919 % 100_000})
        for kind in kinds
        for year in range(60)
    ]
    hidden = [
        (budget, at)
        for budget in (200, 300, 400, 500)
        for at in range(5, len(lines), 31)
        if "boom" not in _shown("\n".join([*lines[:at], "panic: boom", *lines[at:]]), budget)
    ]
    assert not hidden


@pytest.mark.parametrize("kind", ["access log", "Go log", "CSV with times"])
def test_minutes_in_a_time_are_not_taken_for_the_line_number_of_a_match(kind: str) -> None:
    line, _ = KINDS[kind]
    shown = _shown("\n".join(map(line, range(COUNT))))
    assert shown.startswith(line(0))
    assert "matches shown" not in shown


def test_a_rare_error_in_an_envelope_or_in_command_output_is_shown() -> None:
    lines = [f"took {_word(number)} from the queue" for number in range(COUNT)]
    text = "\n".join([*lines[:150], "worker 7: ERROR disk full", *lines[150:]])

    assert "[1 ERROR line]\n[line 151] worker 7: ERROR disk full\n" in _shown(
        json.dumps({"type": "text", "text": text})
    )
    assert "worker 7: ERROR disk full" in _shown(f"<returncode>1</returncode>\n<output>\n{text}\n</output>")


def test_the_worst_rare_errors_come_first_and_each_group_once() -> None:
    lines = [f"took {_word(number)} from the queue" for number in range(COUNT)]
    for place in (100, 200, 250, 260):
        lines[place] = f"ERROR worker {place} has no route"
    lines[300] = "FATAL out of memory"
    shown = _shown("\n".join(lines))

    assert shown.startswith(
        "[1 FATAL, 4 ERROR lines]\n[line 301] FATAL out of memory\n[line 101] ERROR worker 100 has no route"
    )


def test_common_errors_raise_no_alarm() -> None:
    lines = [f"took {_word(number)} from the queue" for number in range(COUNT)]
    lines[::20] = ["the code ERROR means that it failed"] * 20

    assert not _shown("\n".join(lines)).startswith("[")


def test_source_code_that_raises_and_catches_errors_raises_no_alarm() -> None:
    lines = [f"    {_word(number)} = take({number})" for number in range(COUNT)]
    lines[200:203] = [
        "    except asyncio.TimeoutError:",
        "        raise errors.NotFound(f'{n} failed')",
        "    # 0 errors",
    ]

    assert not _shown("\n".join(lines)).startswith("[")


def test_an_error_that_the_preview_already_shows_is_not_shown_twice() -> None:
    lines = [f"took {_word(number)} from the queue" for number in range(COUNT)]
    shown = _shown("\n".join(["ERROR disk full", *lines]))

    assert shown.startswith("ERROR disk full\n")
    assert TIKTOKEN.count(shown) > 250


def test_a_long_line_is_shown_around_its_error() -> None:
    lines = [f"took {_word(number)} from the queue" for number in range(COUNT)]
    for words in (100, 1_000):
        lines[200] = f"{'and so on ' * words}ERROR disk full{' and so on' * 900}"
        first, named, *_ = _shown("\n".join(lines)).split("\n")

        assert first == "[1 ERROR line]"
        assert named.startswith("[line 201] ")
        assert "ERROR disk full and so on" in named
        assert len(named) < 210


def test_errors_in_long_text_are_found_in_pieces_with_the_same_outcome() -> None:
    lines = [f"took {_word(number)} from the queue for the worker that asked" for number in range(5_000)]
    lines[2_600] = "ERROR disk full"
    content = Previewed.of("\n".join(lines))
    assert len(content.text) > LARGE_CHARACTERS
    work = search_for_odd(content)
    pieces = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            searched = end.value
            break
        pieces += 1

    assert pieces > 1
    assert preview(searched, TIKTOKEN, budget=300) == preview(content, TIKTOKEN, budget=300)
    assert preview(searched, TIKTOKEN, budget=300).startswith("[1 ERROR line]\n[line 2,601] ERROR disk full\n")


def test_the_preview_names_lines_that_were_not_searched_for_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_SEARCHED", 3_000)
    text = "\n".join(f"took {_word(number)} from the queue" for number in range(COUNT))
    searched = text.count("\n", 0, 3_000)

    assert _shown(text).startswith(f"[lines {searched + 1}-{COUNT} not searched for trouble]\n")


def test_an_offload_shows_the_one_error_of_twenty_thousand_lines() -> None:
    lines = [f"job_{number}: ok" for number in range(20_000)]
    lines[913] = "job_913: ERROR disk full"
    outcome = Offloader(InMemoryStorage()).offload([TextBlock("\n".join(lines))], tool_name="t", policy=Always())
    block = outcome.blocks[0]

    assert isinstance(block, TextBlock)
    assert "[1 ERROR line]\n[line 914] job_913: ERROR disk full\n" in block.text
