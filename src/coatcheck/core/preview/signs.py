"""The signs of trouble in a line of text: what programs, loggers and tools write when something is wrong.

What only looks like a sign, in source code or prose, is in ``mentions``.
"""

from __future__ import annotations

import re2

from coatcheck.core.forks import in_forked_child
from coatcheck.core.preview.mentions import MENTION
from coatcheck.core.preview.source import LEVELS

__all__ = ("SIGNS",)

_TIME = r"(?:\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d| UTC)?|\d:\d\d[AP]M)[\])]?[ \t]*(?:[-|,][ \t]*)?"
_STAMP = rf"(?:^|\r)[^:\n\r]*{_TIME}(?:\[\d+\]:?[ \t]+)?"
"""The beginning of a line, up to the first time in it: a later time belongs to the message."""

_START = rf"(?:(?:^|\r)|{_STAMP})"
"""The start of a line, of what replaces it after a carriage return, or of what follows a time."""

_SEPARATOR = r"(?:[\])>|:,\t]|  | -| \|)"


def _placed(small: str, capitals: str, letter: str) -> str:
    """Return a pattern for a level at its usual place in a line, so that the words of a sentence do not match.

    That place is after a time. A name may be between them, and the level may begin with a capital, if a separator
    follows it. ``letter`` is the level in the forms of logcat and klog.
    """
    return (
        rf"{_STAMP}(?:(?:[\w.:/-]+(?: - |\t| +\| +))?[\[(<]?(?:{small}|{small.title()}|{capitals}){_SEPARATOR}"
        rf"|(?:{small}|{capitals}) |(?:\d+ +){{2}}{letter} [^\n\r:]*: )"
        rf"|{_START}{letter}(?:\d{{4}} \d\d:\d\d:|/[^\n\r:(]*\( *\d+\):)"
    )


_COUNTED = (
    r"[1-9][\d,]* (?:(?:failed|errors?|failures?)(?:[^\w\n.-]|\.(?:[^\w\n]|$)|$)"
    r"|failing(?: ?[^\w\n .-]|\.?[ \t]*$| (?:and|checks?)\b))"
)
"""A count of errors. A name such as ``errors.html`` after a year does not match, nor does ``3 failing tests``, which
plans and issues mention."""

_TOOLS_FATAL = (
    rf"\bthread '[^'\n]*'(?: \(\d+\))? panicked at |{_START}(?:fatal error: |(?:PHP )?Fatal error: )"
    r"|\(core dumped\)|\bterminate called after throwing an instance of '"
)
"""How else the crash of a program is reported: by Rust, Go, PHP, a shell, C++."""

_TOOLS = (
    rf"{_START}(?:[ \t]+\d+:\d+[ \t]+error[ \t]|::error[ :]|e: [^\n]*\.kts?:|[ \t]*\*\* \([A-Z]\w[\w.]+\) |CMake Error"
    r"|E: (?:Unable to|Failed to|Could not|Couldn't|Sub-process|Package '|Version '|The repository|Unmet )[^\n]"
    r"|CONFLICT \([a-z/ ]+\): |[A-Z]\w*Error \[[A-Z_]+\]: |error Command failed |curl: \(\d+\) )"
    r"|:\d+:\d+ - error: |: line \d+, col \d+, Error - |:in [`'][^'\n]*': [^\n]*\([A-Z][\w:]*\)"
    r"|: undefined reference to [`']|\b(?:Failures|Errors): [1-9]|: command not found\r?$"
    r"|(?:^|[ \t:\[(])ORA-\d{5}: |\bSQLSTATE\[\w{5}\]|\bI/O error, dev \w|\bsystemd\[\d+\]: Failed to start "
    r"|^Failed to (?:compile\.\r?$|start [^\n]*\.service\b)|^\{[^\n]*\"(?:severity|level)\": ?\"error\""
)
"""How tools report an error without a level: ESLint, GitHub Actions, Kotlin, Elixir, CMake, APT, Git, Node, Yarn, curl,
Pyright, Ruby, linkers, test runners with counts, shells, Oracle, PDO, the kernel, systemd, webpack, and loggers that
write JSON."""

_FATAL = (
    rf"{_TOOLS_FATAL}|\b(?:FATAL|CRITICAL|PANIC|SEVERE)\b|{_START}(?:(?:fatal|panic):|crit: [A-Z])|: fatal error:"
    r"|[Ss]egmentation fault|Killed\r?$|\| panic:|\bhttp: panic serving [\d\[]|\bOut of memory: Kill|\bKernel panic\b"
    r"|\b(?:level|severity)=(?:fatal|panic|critical)\b|\[(?:\w+:)?(?:crit|alert|emerg)\]"
    rf"|{_placed('fatal|critical|crit|panic|emerg', 'FATA|FTL|CRIT|PNC|EMERG', 'F')}"
)
_ERROR = (
    rf"{_TOOLS}|{_START}(?:Traceback \(most recent call last\)"
    r"|E   +[A-Za-z_]|(?:│ +)?(?:[\w$]+\.)*[\w$]*(?:Error|Exception)(?::[^:\n]|:?\r?$)|error(?:\[\w+\])?:"
    r"|npm (?:ERR!|error )|make[^\n]*\*\*\*|FAILED? |fail: [A-Z]|Caused by:|Un(?:handled|caught) [Ee]xception[:.]"
    r"|[ \t]*(?:not ok|✕|✗|✘) )"
    r"|\b(?:ERROR|FAIL|FAILED)\b|\bFAILURE:|[:\]|] error:|\[\d+\]: Error:|[: \t]error [A-Z]+\d+:"
    r"|\b(?:level|severity)=error\b|\[(?:\w+:)?error\]|\bERR\]|HTTP/\d(?:\.\d)?\" 5\d\d\b"
    rf"|(?:^|[ \t\r,(]){_COUNTED}"
    r"|\b(?:CrashLoopBackOff|ErrImagePull|ImagePullBackOff|OOMKilled)\b"
    rf"|{_placed('error|err', 'ERRO|ERR', 'E')}"
)
_OWN = rf"{_START}(?:\[[^\]\n]*\] *)?[\[(<]?(?:ERROR|FAILED|FATAL|SEVERE|CRITICAL)\b"
"""A line with a level of its own: the program itself says that something is wrong, and does not only name a class."""

_CLASS = r"\b(?:[A-Za-z_$][\w$]*\.)+[\w$]*(?:Exception|Error)\b"
_LIKE_ERROR = (
    rf"Traceback \(most recent call last\)|{_CLASS}"
    rf"|{_START}(?:\w+\.)*\w*(?:Error|Exception)(?::[^:\n]|:$)|\bFAILURE\b|\b{_COUNTED}"
)
"""Signs of an error in a log, which in source code or a manual only show that it is about errors."""

_WARN = (
    rf"\bWARN(?:ING)?\b|{_START}(?:(?:│ +)?(?:\w+\.)*\w*Warning\b:|warn: [A-Z])|: warning:"
    r"|\b(?:level|severity)=warn(?:ing)?\b|\[(?:\w+:)?warn(?:ing)?\]|:\d+:\d+ - warning: "
    rf"|{_START}(?:[ \t]+\d+:\d+[ \t]+warning[ \t]|::warning[ :]|CMake (?:\w+ )?Warning)"
    rf"|{_placed('warning|warn', 'WRN', 'W')}"
)
_QUIET = (
    rf"{_START}(?:\[[^\]\n]*\] *)?[\[(<]?(?:TRACE|DEBUG|INFO)\b|\b(?:level|severity)=(?:trace|debug|info)\b"
    rf"|{_placed('trace|debug|info', 'TRC|DBG|INF', '[VDI]')}"
)
"""A line with such a level of its own does not report an error only because it names a class."""

_LEVELS = dict(zip(LEVELS, (_FATAL, f"{_ERROR}|{_LIKE_ERROR}", _WARN), strict=True))
"""The signs of each level, the worst first."""


class _Signs:
    """The patterns of all signs. RE2 takes linear time whatever the text, and lets other threads work meanwhile.

    A fork copies the locks in them as they are. If another thread was searching, the child would wait for a thread that
    it does not have, so a child makes its own patterns.
    """

    def __init__(self) -> None:
        self.compile()

    def compile(self) -> None:
        """Compile all patterns."""
        searched_for = (f"(?m)(?:{'|'.join([*_LEVELS.values()][:most])})[^\n]*" for most in range(len(_LEVELS) + 1))
        self.searched_for = [*map(re2.compile, searched_for)]
        """The signs of no level, of the worst, of the two worst, and of all; each with the rest of its line."""
        self.errors = re2.compile(f"(?m)(?:{_FATAL}|{_ERROR})[^\n]*")
        """The signs of errors in text of any kind."""
        self.is_level = {level: re2.compile(f"(?m)(?:{signs})") for level, signs in _LEVELS.items()}
        self.own, self.quiet = re2.compile(_OWN), re2.compile(_QUIET)
        self.classes = re2.compile(_CLASS)
        self.mention = re2.compile(MENTION)

    def renew(self) -> None:
        """Compile them again, after dropping those that the RE2 module has cached."""
        re2.purge()
        self.compile()


SIGNS = _Signs()
in_forked_child(SIGNS.renew)
