"""What compilers and linters report: how many problems of each severity, in which files, and one of each code.

A problem of another form, such as a crash of the tool, comes first. Notes belong to a problem and are only counted.
Every line is named by its number in the output, and so it can be read with the lines around it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from coatcheck.core.preview.log import name_errors
from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.source import plain, shortened
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("are_diagnostics", "preview_diagnostics")

_FOUND = "finding"
_NOTE = "note"
_RANKS = {"fatal error": "fatal error", "error": "error", "warning": "warning", _FOUND: _FOUND}
"""The severities, the worst first. A finding has none: style checkers report a code instead."""

_SEVERITY = r"fatal error|error|warning|note|information|info|hint|remark"
_PATH = r"(?:[A-Za-z]:[\\/])?(?![\d.]+:)(?=[^\s:]*[./\\])[^\s:(]+(?:\((?!\d)[^\s:(]*)*"
"""It has a dot or a slash, and no blank: what begins with a time or a level is a line of a log. An address is none."""

_LINE = re.compile(
    rf"\s{{0,2}}(?P<path>{_PATH})(?:(?P<at>(?::\d+){{1,4}})|\(\d+(?:,\d+){{0,3}}\))(?::| -) (?=\S)"
    rf"(?:(?:(?P<severity>{_SEVERITY})(?: (?P<code>[A-Z]+\d+))?\s*:|\[(?P<level>{_SEVERITY})\]) *(?P<says>\S.*)"
    r"|(?(at)(?P<style>[A-Z]{1,6}\d{2,4}):? \S|(?!)))?"
    r"|\s+\d+:\d+\s+(?P<indented>error|warning)\s+(?P<message>\S.*)"
    rf"|\s*--> (?P<arrow>{_PATH}):\d+:\d+$"
    r"|(?P<total>\W{0,4}(?:Found )?\d[\d,]* (?:errors?|warnings?|problems?)\b)",
    re.DOTALL,
)
"""Of one line: a place, with what it says or the code of a style checker; ESLint's, below a line with the path; an
arrow to the place, below what is wrong there; or how many there are. One pattern, since each line is tried."""

_HEAD = re.compile(r"(?:(error|warning)(?:\[([\w:-]+)\])?:|([A-Z]{1,6}\d{2,4})) (\S.*)", re.DOTALL)
"""What is above an arrow: Cargo's, and Ruff's."""

_PROBLEMS = frozenset({"says", "style", "message", "arrow"})
"""The last group of a match that reports a problem."""

_CODE = re.compile(r"\s\[([\w./=+-]+)\]$|\s\(([A-Za-z][\w-]*)\)$")
_LONGEST_CODE = 80
_VARIES = re.compile(r"\u2018[^\u2019]*\u2019|'[^']*'|\"[^\"]*\"|`[^`']*[`']|\d+")
"""What may differ in messages that are alike: names in quotes, those of GCC among them, and numbers."""

_EXCERPT = re.compile(r"^ *\d* *\|.*", re.MULTILINE)
"""A line of source code next to its number."""

_SIGNS = ("error", "warning", "--> ")
_STYLE = re.compile(r":\d+:\d+: [A-Z]{1,6}\d{2,4}\b")
"""What one of the first lines holds, as a cheap test."""

_MIN_FOUND = 5
_MAX_LINES_OF_ONE = 12
_SHARE_OF_FILES = 0.3
_LONGEST_SHOWN = 300
_LONGEST_OTHER = 160
_UNITS_OF_A_LINE = 15
_MAX_TOTALS = 2


class _Diagnostic(NamedTuple):
    number: int
    """Of its line, from 1."""

    line: str
    path: str
    severity: str
    kind: str
    """Its code or, without one, its message without what varies."""


@dataclass(slots=True)
class _Report:
    found: list[_Diagnostic] = field(default_factory=list)
    notes: int = 0
    others: list[str] = field(default_factory=list)
    """Each line; empty if it reports a problem or a total."""

    totals: dict[int, str] = field(default_factory=dict)
    located: int = 0
    """Lines that name a place in a file, and no severity."""


def are_diagnostics(lines: Sequence[str]) -> bool:
    """Return whether any of ``lines`` looks like a problem that a compiler or a linter reports."""
    head = "\n".join(lines)
    if not (any(sign in head for sign in _SIGNS) or _STYLE.search(head)):
        return False
    return any(found.lastgroup in _PROBLEMS for found in map(_LINE.match, lines) if found)


def preview_diagnostics(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return counts, and a line of each kind of problem, within ``budget`` tokens; None if there are few problems."""
    spend(counter, len(content.text) // 4 + _UNITS_OF_A_LINE * content.lines)
    report = _read(content.text)
    seen = len(report.found) + report.notes
    if len(report.found) < _MIN_FOUND or seen < report.located or content.lines > _MAX_LINES_OF_ONE * seen:
        return None
    others = "\n".join(report.others)
    above = name_errors(others, budget, counter)
    if above and "|" in others:  # source code may speak of errors
        above = name_errors(_EXCERPT.sub("", others), budget, counter)
    if above:
        above[0] = above[0].replace("]", " of another form]")
    folder = _folder_of({one.path for one in report.found})
    ends = _ends(report)
    most = _heading(report, folder, len(report.found)), _hidden(len(report.found))
    left = budget - counter.count("".join((*above, *most, *ends)))
    files = _by_file(report.found, folder, int(left * _SHARE_OF_FILES), counter)
    left -= counter.count("".join(files))
    ranked, kinds = _ranked(report.found)
    shown: list[str] = []
    for one, alike in ranked:
        path = "" if one.path in one.line else f" in {one.path[len(folder) :]}"
        many = f", {alike:,} alike" if alike > 1 else ""
        named = f"[line {one.number:,}{path}{many}] {_cut(one.line, _LONGEST_SHOWN)}\n"
        left -= counter.count(named)
        if left < 0:
            break
        shown.append(named)
    hidden = _hidden(kinds - len(shown))
    text = "".join((*above, _heading(report, folder, len(shown)), *files, *shown, hidden, *ends)).removesuffix("\n")
    return text if shown and counter.count(text) <= budget else None


def _heading(report: _Report, folder: str, shown: int) -> str:
    counts = Counter(one.severity for one in report.found)
    said = [count_of(counts[one], one) for one in _RANKS if counts[one]]
    said += [count_of(report.notes, _NOTE)] if report.notes else []
    files = count_of(len({one.path for one in report.found}), "file")
    where = f" below {folder}" if folder else ""
    return (
        f"[{', '.join(said)} in {files}{where}; {shown:,} shown, with how many are alike in code or message,"
        " the rest is not:]\n"
    )


def _hidden(kinds: int) -> str:
    return f"[… {count_of(kinds, 'more kind')} of code or message …]\n" if kinds > 0 else ""


def _read(text: str) -> _Report:
    lines = text.removesuffix("\n").split("\n")
    if "\x1b" in text or "\r" in text:
        lines = [*map(plain, lines)]
    report = _Report(others=lines.copy())
    heading, last = "", -1
    for index, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        if found.lastgroup == "message":
            above = lines[index - 1]
            if last != index - 1 and above and not above[0].isspace():
                heading = above
            last = index
            if not heading:
                continue
        _note(report, found, index, heading)
    return report


def _note(report: _Report, found: re.Match[str], index: int, heading: str) -> None:
    """Add what a line reports: a problem, a note, a total, or only a place."""
    line, what = found.string, found.lastgroup
    if what == "says":
        path, severity, level, code, message = found.group("path", "severity", "level", "code", "says")
        one = path, severity or level, code or _code_of(message)
    elif what == "style":
        one = found["path"], _FOUND, found["style"]
    elif what == "message":
        message, _, rule = found["message"].rstrip().rpartition("  ")
        one = heading, found["indented"], rule if message and " " not in rule else _alike(found["message"])
    elif what == "arrow":
        line = report.others[index - 1] if index else ""
        head = _HEAD.match(line)
        if head is None:
            return
        report.others[index] = ""
        index -= 1
        one = found["arrow"], head[1] or _FOUND, head[2] or head[3] or _alike(head[4])
    elif what == "total":
        report.totals[index + 1] = line
        report.others[index] = ""
        return
    else:
        report.located += 1
        return
    report.others[index] = ""
    if one[1] in _RANKS:
        report.found.append(_Diagnostic(index + 1, line.strip(), *one))
    else:
        report.notes += 1


def _code_of(message: str) -> str:
    """Return the code that is before or after a message; without one, the message."""
    message = message.rstrip()
    code = _CODE.search(message[-_LONGEST_CODE:]) if message[-1] in "])" else None
    return code[1] or code[2] if code else _alike(message)


def _alike(message: str) -> str:
    return _VARIES.sub("_", shortened(message.strip()))


def _by_file(found: Sequence[_Diagnostic], folder: str, budget: int, counter: TokenCounter) -> list[str]:
    """Return a line for each severity: its files, those with the most problems first, as many as fit ``budget``.

    The worst severity gets half of the budget, and the next ones what is left.
    """
    lines: list[str] = []
    has = {one.severity for one in found}
    severities = [one for one in _RANKS if one in has]
    for severity in severities:
        files = Counter(one.path for one in found if one.severity == severity).most_common()
        named = [f"{path[len(folder) :]} {count:,}" for path, count in files]
        room = budget if severity == severities[-1] else budget // 2
        most = len(named)
        while most:
            more = f", … {count_of(len(named) - most, 'more file')}" if most < len(named) else ""
            line = f"[{severity}s by file: {', '.join(named[:most])}{more}]\n"
            if (cost := counter.count(line)) <= room:
                lines.append(line)
                budget -= cost
                break
            most = min(most - 1, most * room // cost)  # about how many fit, found with few counts
    return lines


def _folder_of(paths: Collection[str]) -> str:
    """Return the folder that all of several paths are in, with the slash at its end; ``""`` where it saves nothing."""
    first, last = min(paths), max(paths)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0)
    return first[: first.rfind("/", 1, same) + 1]


def _ranked(found: Sequence[_Diagnostic]) -> tuple[Iterable[tuple[_Diagnostic, int]], int]:
    """Return the first of each kind with how many there are, the worst and the most frequent first; then the others.

    And how many kinds there are.
    """
    ranks = {severity: rank for rank, severity in enumerate(_RANKS)}
    counts = Counter((one.severity, one.kind) for one in found)
    firsts = {(one.severity, one.kind): one for one in reversed(found)}
    order = sorted(firsts, key=lambda key: (ranks[key[0]], -counts[key], firsts[key].number))
    turns: Counter[tuple[str, str]] = Counter()
    others: list[tuple[int, int, _Diagnostic]] = []
    for one in found:
        key = one.severity, one.kind
        turns[key] += 1
        if one is not firsts[key]:
            others.append((ranks[one.severity], turns[key], one))
    return chain(((firsts[key], counts[key]) for key in order), ((one, 1) for *_, one in sorted(others))), len(order)


def _ends(report: _Report) -> list[str]:
    """Return the first line if it is no problem, and what the tool says of the total."""
    ends = dict([*report.totals.items()][-_MAX_TOTALS:])
    others = report.others
    if others[0].strip() and others[0] != report.found[0].path:
        ends[1] = others[0]
    if others[-1].strip() and not others[-1][0].isspace():
        ends[len(others)] = others[-1]
    return [f"[line {number:,}] {_cut(ends[number].strip(), _LONGEST_OTHER)}\n" for number in sorted(ends)]


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[:longest]}…"
