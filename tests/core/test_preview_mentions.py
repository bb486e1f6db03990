"""Source code and prose that only mention errors raise no alarm. A real error does, even among such mentions."""

from __future__ import annotations

import pytest

from coatcheck.core.preview import Previewed
from coatcheck.core.preview.log import find_rare_trouble, find_trouble
from coatcheck.core.preview.source import Trouble

NAMES = [
    "-rw-r--r-- 1 root root 37 Mar  5  2026 errors.html",
    "-rw-r--r-- 1 root root 37 Mar  5  2026 failed-jobs",
    "Error::Needle (3pm) - an error that is lost in hay",
    "    check(3, errors.size());",
]
MENTIONS = [
    *NAMES,
    "ORA-00942 says that there is no such hay",
    "    if code.startswith('SQLSTATE['):",
    "Failed to start is what it says without a needle",
    '    "level": "error",',
    '    "CRITICAL",',
    "    'FAILED'",
    '    """ERROR."""',
    'export type State = "ACTIVE"|"FAILED"|string;',
    "    found = reader.take(ERROR);",
    "    report(ERROR,",
    "        self._take(FATAL, hay, *needles)",
    "    def take(level=CRITICAL):",
    '    give_up(file, line, "FATAL", message);',
    '    ERROR("no such needle");',
    "    level = logging.CRITICAL",
    "    case State.ERROR:",
    '    if state == "FAILED":',
    '    FAILED = "failed"',
    "    FATAL = 40,",
    "    severity=Severity.ERROR,",
    "      result: pipeline.Result.FAIL,",
    "    err.code = constants.FATAL;",
    "    this.emit(EV.ERROR, error);",
    "  if (mode === ExportModes.ERROR) {",
    "    ? ExportModes.ERROR",
    "FATAL = CRITICAL",
    "    if level in (DEBUG, INFO, WARN, ERROR, FATAL):",
    "Write a line with severity 'ERROR' into the log.",
    "Use the levels WARNING, ERROR and CRITICAL, or your own",
    "                              ERROR, and CRITICAL logging levels).",
    "          - /url: plpgsql-control-structures.html#PLPGSQL-ERROR-TRAPPING",
    '    "href": "http://127.0.0.1:8765/pg/control.html#PLPGSQL-ERROR-TRAPPING"',
    "const FAILED: number;",
    "** (C) 2001 by the authors of the needle",
    "CONFLICT (id) DO NOTHING;",
    '    give_up (file, line, "FATAL", message);',
    "*** ERROR, $needle exists",
    '\tfail=`grep -c "^$$hay*FAIL" $$needles`; \\',
    "#undef FAIL",
    "    return ERROR",
    'var a;!function(e){e.STUB="stub",e.ERROR="error",e.VISIBLE="visible"}(a||(a={}));',
    'Expected: FAIL with "no such needle"',
    "  Expected: FAIL because `hay.needle` does not exist yet.",
    '                "OOMKilled": false,',
    '{"Status": "running", "OOMKilled":false, "Dead": false}',
    "# FAIL:  0",
    "ERROR: 0",
    '    "FAILED": 0',
    "{'PASSED': 7, 'FAILED': 0}",
    '{"ERROR": null, "FATAL": []}',
    "    take needle || exit $ERROR",
    '    raise NeedleError("ERROR: no needle in {}".format(name))',
    '    fprintf(stderr, "needle: error: no hay\\n");',
    '    echo "ERROR: no needle in $1" >&2',
    '    printf "%s\\n" "$me: error: no needle in $1" >&2',
    'msgid "ERROR: no needle"',
    '"ERROR: no needle in %s\\n"',
    "hay_get_last_error_or_NeedleError",
    "# Try again after 3 errors",
    "// ERROR: what is said without a needle",
    " * Only set where the state is FAILED, with the reason why.",
    "One of the levels INFO, WARN and DEBUG, ERROR among them",
    "The log is empty where the level is neither ERROR nor INFO.",
    "A straw no longer counts as `FAIL` without a needle",
    "If the state is FAILED, the reason says more.",
    'it hides "Segmentation fault" from those who look',
    "Fixed a segmentation fault where the hay is wet",
    "asks for another list with the 410 error, and goes on",
]
PROBLEMS = [
    'x.c:12:3: error: too few arguments in take("ERROR")',
    "E   AssertionError: assert state('FAILED') == 'ok'",
    "FAILED tests/test_x.py::test_take[ERROR]",
    'Error: cannot open "ERROR.txt"',
    "Traceback (most recent call last):",
    "error: no needle",
    "tests/test_x.py::test_it FAILED",
    "job nightly FAILED with code 2",
    "request failed (code 5, ERROR)",
    "local.ERROR: no needle",
    '{"level": "ERROR", "said": "no needle"}',
    '"state": "FAILED",',
    "state = FAILED, see the log",
    "ERROR: 404",
    "Expected: FAIL, got PASS",
    "ERROR: null",
    '"ERROR": "null pointer"',
    '"FAILED": 0.5,',
    '{"FAILED": 0, "ERROR": 2}',
    '"OOMKilled": true,',
    '"7","needle","FAILED"',
    "(7, 'FAILED'),",
    "| needle | FAILED |",
    "zsh: segmentation fault  ./take",
    "Process 7 received a segmentation fault.",
    "needle ... ERROR",
    "* checking whether the needle can be found ... ERROR",
    " * ERROR: needle failed (compile phase)",
    "# FAIL:  1",
    "An ERROR occurred: no needle",
    "the build ended with 3 errors.",
    "2 failed, 7 passed",
    'echo "ERROR" && take: error: no needle',
    "error:",
    "Login Is Refused When Password Is Wrong | FAIL |",
    "LoginTest > When the password is wrong, the user is locked out FAILED",
    "When migrating users, ERROR: table is locked",
    "//services/billing:invoice_test      FAILED in 0.3s",
    "    # list_splice_test: EXPECTATION FAILED at lib/list-test.c:412",
    "# selftests: net: pmtu.sh ... FAIL",
    "# ip6gre tunnel test            [FAIL]",
    "# tunnel test FAIL",
    " * Mounting remote filesystems ... FAILED",
    " * Starting MySQL database server mysqld FAILED",
    "Data import FAILED after 3 tries",
    "import FAILED: 3 rows",
    "Azure function FAILED: timeout",
    "Job 4711 finished with a status of FAILED",
    "nightly load finished: JobStatus.FAILED",
    "state=State.FAILED reason=oom",
    "job 7: JobStatus.FAILED (3 tries)",
    "{'job': 7, 'state': <JobState.FAILED: 3>,",
    "all.FAILED: no needle, no hay;",
    "deploy(prod, FAILED)",
    "self.deploy(FAILED, no needle)",
    "Step 3: FAILED or timed out",
    "sda1,FAILED,WARNING",
    "node7,ERROR,CRITICAL",
    "checkout CRITICAL, ERROR budget exhausted",
    "- step 412: `copy rows` is `FAILED`",
    "ERROR: deadlock;",
    'expected status == "OK" but status == "FAILED"',
    'FATAL("oops")',
    "Fixtures segmentation fault",
    "FAILED = 3",
    "// BUILD FAILED",
    "type check = FAILED",
]


@pytest.mark.parametrize("line", NAMES)
def test_a_name_that_contains_the_word_error_is_not_an_error_in_a_log(line: str) -> None:
    trouble = Trouble()
    for _ in find_trouble(trouble, f"first\n{line}\nlast\n"):
        pass

    assert not any(trouble.counts.values())


@pytest.mark.parametrize("line", MENTIONS)
def test_text_that_only_mentions_errors_raises_no_alarm(line: str) -> None:
    assert not _alarming(line)


@pytest.mark.parametrize("line", PROBLEMS)
def test_among_mentions_only_a_real_error_raises_an_alarm(line: str) -> None:
    assert _alarming('    "CRITICAL",', line, "    return ERROR") == [line]


def test_when_many_lines_mention_errors_none_is_rare() -> None:
    trouble = _trouble(*["    return ERROR"] * 17, "ERROR no needle")

    assert trouble.noted == 17
    assert not trouble.groups["ERROR"]


def _trouble(*lines: str) -> Trouble:
    text = "\n".join([*(f"straw {number}" for number in range(400)), *lines, "end"])
    trouble = Trouble()
    for _ in find_rare_trouble(trouble, Previewed.of(text)):
        pass
    return trouble


def _alarming(*lines: str) -> list[str]:
    return [
        line
        for groups in _trouble(*lines).groups.values()
        for group in groups.values()
        for line in group.lines.values()
    ]
