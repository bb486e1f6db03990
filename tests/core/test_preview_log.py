"""Which log lines count as trouble, judged by where the level is in them, and which of many such lines are shown."""

from __future__ import annotations

import pytest

from coatcheck.core.preview import Previewed
from coatcheck.core.preview.log import find_trouble
from coatcheck.core.preview.source import Trouble
from tests.core.previewing import checked_preview

TIME = "2024-01-01T10:00:00.000Z"
PLACED = {
    "FATAL": [
        f"{TIME} fatal: disk full",
        f"{TIME}\tpanic\tdisk full",
        "2024/01/01 10:00:00 panic: disk full",
        "10:00:00 FTL disk full",
        "01-01 10:00:00.000  1234  5678 F Disk: full",
        "crit: Disk.Writer[0]",
        "2024/01/01 10:00:00 http: panic serving 10.0.0.7:1234: disk full",
        "Jan  1 10:00:00 host kernel: [12.3] Out of memory: Killed process 123 (java)",
        "thread 'main' panicked at src/main.rs:3:4:",
        "thread 'worker-7' (123) panicked at src/main.rs:3:4:",
        "fatal error: all goroutines are asleep - deadlock!",
        "PHP Fatal error:  Uncaught disk full in /srv/disk.php:7",
        "run.sh: line 7: 123 Aborted (core dumped) ./write",
        "terminate called after throwing an instance of 'disk::full'",
    ],
    "ERROR": [
        f"{TIME} error: disk full",
        f"{TIME} error disk full",
        f"{TIME} Error: disk full",
        f"{TIME} ValueError: disk full",
        f"{TIME}\terror\tdisk/write.go:7\tdisk full",
        f"{TIME}|error|disk full",
        f"[{TIME}] [Error] disk full",
        f"web-1  | {TIME} error: disk full",
        "2024-01-01 10:00:00,123 - disk.writer - error - disk full",
        "2024-01-01 10:00:00 +0000 [7] error disk full",
        "10:00:00 ERR disk full",
        "3:04PM ERR disk full",
        "01-01 10:00:00.000  1234  5678 E Disk: full",
        "E/Disk( 123): full",
        "fail: Disk.Writer[0]",
        f"{TIME} fail: Disk.Writer[0]",
        "Unhandled exception: disk full",
        "Unhandled exception. System.IO.IOException: disk full",
        "Jan  1 10:00:00 host disk[7]: Error: full",
        "│ Error: disk full",
        "writing 5%\rerror: disk full",
        "   3:15  error    'disk' is assigned a value but never used  no-unused-vars",
        "/src/disk.js: line 3, col 15, Error - 'disk' is full (no-full)",
        '  /src/disk.py:3:15 - error: Import "disk" could not be resolved',
        "::error file=disk.js,line=3::disk full",
        "e: file:///src/Disk.kt:3:15 Unresolved reference: full",
        "** (RuntimeError) disk full",
        "CMake Error at CMakeLists.txt:3 (disk):",
        "E: Unable to locate package disk",
        "CONFLICT (content): Merge conflict in src/disk.py",
        "AssertionError [ERR_ASSERTION]: the disk is full",
        "error Command failed with exit code 1.",
        "curl: (7) no route to the disk",
        "disk.rb:3:in `full': no room (Disk::Full)",
        "/usr/bin/ld: disk.o: undefined reference to `full'",
        "Tests run: 5, Failures: 1, Errors: 0, Skipped: 0",
        "Tests: 3, Assertions: 3, Errors: 2.",
        "  12 failing",
        "297 passing / 12 failing (1.5s)",
        "1 failing, 3 successful, and 0 pending checks",
        "2 failing and 3 successful checks",
        "run.sh: line 7: disk: command not found",
        "ORA-00942: table or view does not exist",
        "sqlplus: (ORA-01017: invalid username",
        "PDO: SQLSTATE[42S02]: Base table or view not found",
        "[ 12.345678] blk_update_request: I/O error, dev sda, sector 7",
        "Jan  1 10:00:00 host systemd[1]: Failed to start disk.service - Disk.",
        "Failed to start disk.service: Unit disk.service not found.",
        "Failed to compile.",
        '{"severity":"error","message":"disk full"}',
        '{"time": "10:00", "level": "error", "message": "disk full"}',
    ],
    "WARN": [
        f"{TIME} warn: disk full",
        f"{TIME} warning disk full",
        f"{TIME}\twarn\tdisk full",
        "10:00:00 WRN disk full",
        "01-01 10:00:00.000  1234  5678 W Disk: full",
        "warn: Disk.Writer[0]",
        "│ Warning: disk full",
        "   3:15  warning  Unexpected var  no-var",
        "  /src/disk.py:3:15 - warning: disk is deprecated",
        "CMake Deprecation Warning at CMakeLists.txt:3 (disk):",
    ],
}
NO_TROUBLE = [
    "[ERROR] ",
    "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
    "   3:15  errors are counted",
    "E: north, then east",
    "a fatal error: the disk is full",
    "If a command is not found, the command not found handler runs",
    "0 errors",
    "  0 failing",
    "after 3 failing-fast runs",
    "Fix 3 failing tests in disk.py",
    "Step 3 failing is deliberate.",
    "10:00:00 0 errors, 0 failed",
    "10:00:00 no error",
    "10:00:00 error_rate 0",
    "10:00:00 errors=0",
    "10:00:00 error=none",
    "10:00:00 errors: 0",
    "10:00:00 error.log opened",
    "-rw-r--r-- 1 root root 5 2024-01-01 10:00:00.000 +0000 error",
    "10:00:00 info error handler set",
    "10:00:00 INFO Error: is what the peer said",
    '10:00:00 INFO reply was "Error: none"',
    "10:00:00 INFO since 09:00:00 error free",
    "10:00:00 INFO levels debug|error|warn",
    "10:00:00 Error handling enabled",
    "10:00:00 Warning threshold set",
    "10:00:00 fail over done",
    "10:00:00 12 30 E 5",
    "fail: 0",
    "level - error - text",
    "| error | string |",
    "id\terror\tvalue",
]


def _levels(line: str) -> list[str]:
    trouble = Trouble()
    for _ in find_trouble(trouble, f"first\n{line}\nlast\n"):
        pass
    return [level for level, count in trouble.counts.items() if count]


def _shown(lines: list[str], budget: int) -> str:
    return checked_preview(Previewed.of("\n".join(lines)), budget)


def _log(count: int) -> list[str]:
    return [f"2024-01-01 10:{n // 60 % 60:02}:{n % 60:02} INFO took job {n} from the queue" for n in range(count)]


@pytest.mark.parametrize(("level", "line"), [(level, line) for level, lines in PLACED.items() for line in lines])
def test_a_level_is_recognised_by_its_place_in_the_line(level: str, line: str) -> None:
    assert _levels(line) == [level]


@pytest.mark.parametrize("line", NO_TROUBLE)
def test_prose_and_names_and_counts_of_zero_are_not_taken_for_trouble(line: str) -> None:
    assert _levels(line) == []


@pytest.mark.parametrize("line", PLACED["ERROR"])
def test_one_error_among_lines_that_differ_only_in_numbers_is_shown(line: str) -> None:
    lines = [f"{TIME} info: ok job {number}" for number in range(2_000)]
    lines[1_000] = line

    assert line.rpartition("\r")[2] in _shown(lines, 300).split("\n")


@pytest.mark.parametrize("error", ["5 errors", "not ok 7 - disk"])
def test_an_error_after_a_blank_line_is_shown(error: str) -> None:
    lines = _log(2_000)
    lines[1_000:1_002] = ["", error]

    assert error in _shown(lines, 300).split("\n")


@pytest.mark.parametrize("end", ["\rwriting 5%\rwriting 9%", "\r"])
def test_an_error_that_was_overwritten_is_shown(end: str) -> None:
    lines = _log(2_000)
    lines[1_000] = f"writing 1%\r2024-01-01 10:00:00 ERROR disk full{end}"

    assert "2024-01-01 10:00:00 ERROR disk full" in _shown(lines, 300).split("\n")


def test_the_first_and_last_lines_of_each_level_and_one_of_each_sort_are_shown() -> None:
    lines = _log(9_500)
    sorts = ["slow", "retrying", "stale cache for", "queue is nearly full at", "late"]
    for number in range(100, 9_400, 4):
        lines[number] = lines[number].replace("INFO took", f"WARN {sorts[number % 5]}")
    for number, text in ((1_201, "disk full at"), (5_001, "no route for"), (8_001, "disk full at")):
        lines[number] = lines[number].replace("INFO took", f"ERROR {text}")

    for budget in (500, 1_000):
        shown = _shown(lines, budget)
        for number in (1_201, 5_001, 8_001, 100, 9_396):
            assert lines[number] in shown
    assert all(f"WARN {sort}" in shown for sort in sorts)


def test_the_first_and_last_of_many_like_errors_are_shown_in_little_room() -> None:
    lines = _log(9_500)
    errors = range(101, 8_101, 20)
    for number in errors:
        lines[number] = lines[number].replace("INFO took", "ERROR lost")
    shown = _shown(lines, 250)

    assert shown.startswith("[400 ERROR lines]\n")
    assert f"{lines[errors[0]]} (400 alike)\n" in shown
    assert f"{lines[errors[-1]]}\n" in shown


def test_a_blank_error_line_does_not_stand_for_the_error_lines_around_it() -> None:
    lines = [f"[INFO] copied {number} of 400 files" for number in range(400)]
    lines[200:200] = ["[ERROR] no POM in this directory", "[ERROR] ", "[ERROR] ", "[ERROR] [Help 1] http://help"]

    shown = _shown(lines, 200)

    assert shown.startswith("[2 ERROR lines]\n")
    assert "[ERROR] no POM in this directory" in shown


CLASS = "org.example.disk.DiskFullException"


@pytest.mark.parametrize(
    "line",
    [
        f"[DEBUG]   Imported: {CLASS} < core",
        f"[\x1b[1;36mDEBUG\x1b[m]   Imported: {CLASS} < core",
        f"INFO: handlers of {CLASS} are ready",
        f"{TIME} INFO handlers of {CLASS} are ready",
        f"2024-01-01 10:00:00,123 [main] DEBUG o.e.Disk - no handler of {CLASS}",
        f"{TIME} debug: no handler of {CLASS} or {CLASS}",
        f"level=info msg='no handler of {CLASS}'",
    ],
)
def test_a_line_below_warning_level_is_not_an_error_for_naming_an_exception_class(line: str) -> None:
    log = "".join(f"{TIME} INFO step {number}\n" for number in range(90))
    shown = checked_preview(Previewed.of(f"{log}{line}\n{log}[ERROR] no room\n{log}", "text/log"), 250)

    assert shown.startswith("[1 ERROR line]\n")
    assert "[ERROR] no room" in shown
    assert CLASS not in shown


@pytest.mark.parametrize(
    "line",
    [
        f"{TIME} WARN no handler of {CLASS}",
        f"[DEBUG] {CLASS}: 3 errors",
        f"[INFO] FAILED with {CLASS}",
        f"\tat {CLASS}.raise(Disk.java:7)",
        f"Caused by: {CLASS}: INFO is full",
    ],
)
def test_an_exception_class_in_any_other_line_or_next_to_an_error_is_trouble(line: str) -> None:
    trouble = Trouble()
    for _ in find_trouble(trouble, line):
        pass

    assert sum(trouble.counts.values()) == 1


def test_lines_with_an_error_level_come_before_lines_that_only_name_exceptions() -> None:
    steps = "".join(f"{TIME} INFO step {number}\n" for number in range(90))
    reason = " ".join(f"no room on disk {letter}" for letter in "abcdefghi")
    traces = [
        "".join(f"Caused by: a.b.Full{one}Error: {reason}\n" for one in some) for some in ("abcdefgh", "ijklmnop")
    ]
    text = f"{steps}{traces[0]}{steps}[ERROR] no room\n{steps}{traces[1]}{steps}"
    shown = checked_preview(Previewed.of(text, "text/log"), 160)

    assert shown.startswith("[17 ERROR lines]\n")
    assert "\n[ERROR] no room\n" in shown


@pytest.mark.parametrize(
    "frame", ["\tat org.example.Step{}.run(Step.java:{})", "   at Example.Step{}.Run() in Step.cs:line {}"]
)
def test_exceptions_are_shown_between_the_frames_of_their_stack_traces(frame: str) -> None:
    def stack(what: str) -> list[str]:
        return [what, *(frame.format(chr(97 + number % 26), number) for number in range(60))]

    thrown = ["example.TaskException: task 7", "Caused by: example.DiskException: no room"]
    shown = _shown([*stack(thrown[0]), *stack(thrown[1]), *stack("example.LastException: startup failed")], 250)

    assert all(f"\n{line}\n" in shown for line in (*thrown, "example.LastException: startup failed"))


def test_each_failed_test_of_jest_is_shown() -> None:
    names = [f"{chr(97 + number % 26) * 3}{chr(97 + number // 26)}" for number in range(200)]
    tests = [f"    {'✕' if name in {'ddda', 'pppd'} else '✓'} adds {name} to the cart" for name in names]
    more = [f"  at Object.{name} (cart.test.js:{number}:9)" for number, name in enumerate(names)]
    failed = [f"  ● cart: {number} failed: expected 18\n" for number in range(40)]
    shown = _shown(
        ["FAIL src/cart.test.js", "  cart", *tests, *failed, *more, "Tests:       42 failed, 200 total"], 250
    )

    assert "    ✕ adds ddda to the cart\n" in shown
    assert "    ✕ adds pppd to the cart\n" in shown


def test_a_page_with_cross_marks_is_not_a_log_of_failed_tests() -> None:
    features = [f"{'✓' if number % 3 else '✕'} Feature {chr(97 + number % 26) * 3}, in words" for number in range(90)]
    shown = _shown(["✕ Close", "Prices", *features, "Ask sales@example.com", *features[::-1]], 250)

    assert "ERROR" not in shown
    assert "sales@example.com" in shown


def test_a_thread_dump_is_not_a_log_of_errors() -> None:
    threads = [f'"worker-{n}" prio=5 waiting\n\tat org.example.Step.run(Step.java:{n})\n' for n in range(90)]

    assert "ERROR" not in _shown(threads, 250)


def test_an_issue_that_quotes_a_stack_trace_is_not_a_log() -> None:
    words = [f"The word {chr(97 + n % 26) * 3} says what happened, in a sentence of its own." for n in range(99)]
    stack = ["IllegalStateException: closed", *(f"\tat org.example.Step.run(Step.java:{n})" for n in range(9))]
    shown = _shown([*words[:20], *stack, *words, "Set invoice.cacheSize to 9.", *words], 250)

    assert " invoice.cacheSize" in shown
