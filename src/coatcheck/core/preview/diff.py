"""Unified diffs, as ``git diff``, ``git show``, ``git log -p`` and ``diff -u`` print them: the files that change.

Each file comes with the line on which its diff begins, and with how many lines it gains and loses. Then come
the headings of its hunks, as far as there is room, and the text itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.source import shortened
from coatcheck.core.preview.text import preview_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("BEGINS_A_DIFF", "preview_diff")

BEGINS_A_DIFF = re.compile(
    r"(?:[^\n]*\n){0,9}(?:diff -|Index: |--- [^\n]+\n\+\+\+ )|\s*(?:(?:commit|From) [0-9a-f]{7,}|Merge: )[^\n]*\n"
)
"""What a diff begins with, after up to nine lines such as ``git status --short`` prints; or a commit, whose message may
have more."""

_HEADER = re.compile(
    r"(?P<command>(?:diff -|Index: ).*)|--- (?P<old>[^\t\r]+)|(?:\+\+\+|rename to) (?P<new>[^\t\r]+)"
    r"|@@+ (?:-\d+(?:,(?P<removed>\d{1,9}))? \+\d+(?:,(?P<added>\d{1,9}))?|-[^@]*) @@+ ?(?P<where>.*)"
)
"""A line outside of hunks that tells about a file. Three ``@`` or more begin a hunk of a merge."""

_IN_A_MERGE = re.compile(r"[ +-]{2}|\\|\r?$")
_COMMAND = re.compile(r"(?:Index:|diff(?: -\S+)+) +")
_PREFIX = re.compile(r"(?:^|(?<=^\"))[ab]/")
_NO_FILE = "/dev/null"

_IN_A_DIFF = 0.5
"""The share of lines that must belong to files. Text that only quotes a diff is shown as what it is."""

_MAX_AFTER = 25
"""Lines that may follow the last file, such as a signature or a commit without changes. More are the output of another
command, whose errors must be shown."""

_SHARE_OF_HEADINGS = 0.5
"""The share of the budget that files and headings may take together. Files alone may take all of it."""

_MIN_FOR_TEXT = 40
"""Tokens. With less room, the text itself is not shown, only what stands above the first file."""

_SHARE_OF_A_MESSAGE = 0.25
"""The share of the budget for what stands above the first file, usually a commit's message."""

_MAX_CHARACTERS, _MAX_LINES = 4_000_000, 50_000
"""Characters and lines that are searched for files, from the beginning. As many lines take up to 0.1 s."""

_LONGEST_ROW = 160
"""Characters."""


@dataclass(slots=True)
class _File:
    """A file that a diff changes."""

    first: int
    """The number of the line on which its diff begins."""

    name: str
    added: int = 0
    removed: int = 0
    headings: dict[str, int] = field(default_factory=dict)
    """What the headers of its hunks name, usually the function before the hunk, each with the number of that header."""

    has_hunks: bool = False
    is_merged: bool = False
    """Whether the diff of a merge is being read. Its lines have several signs each, and are not counted."""

    lines: int = 0
    """Lines of its diff."""

    last: int = 0
    """The number of the last of them."""

    old_left: int = 0
    new_left: int = 0
    """Lines of the old and of the new file that are still to come in the current hunk."""

    def take(self, line: str) -> bool:
        """Return whether ``line`` belongs to the current hunk, and count what it adds or removes."""
        self.is_merged = self.is_merged and _IN_A_MERGE.match(line) is not None
        if self.is_merged:
            return True
        if self.old_left <= 0 and self.new_left <= 0:
            return False
        sign = line[:1]
        if sign == "+":
            self.new_left -= 1
            self.added += 1
        elif sign == "-":
            self.old_left -= 1
            self.removed += 1
        elif sign in {" ", "", "\r"}:  # some tools strip the space from an empty line
            self.old_left -= 1
            self.new_left -= 1
        elif sign != "\\":  # "\ No newline at end of file"
            self.old_left = self.new_left = 0
            return False
        return True

    def describe(self, header: re.Match[str], number: int) -> None:
        """Take a header: it may have one of the file's names, or begin a hunk."""
        where = header["where"]
        if where is None:
            name = header["old"] or header["new"] or _NO_FILE
            self.name = self.name if name == _NO_FILE else _PREFIX.sub("", name)
            return
        self.has_hunks = True
        if where.strip():
            self.headings.setdefault(where.strip(), number)
        self.is_merged = header[0].startswith("@@@")
        if not self.is_merged:
            self.old_left, self.new_left = (int(header[side] or 1) for side in ("removed", "added"))

    def row(self) -> str:
        """Return a line such as ``12: src/main.py +3 -1``."""
        counts = (f"{sign}{count:,}" for sign, count in (("+", self.added), ("-", self.removed)) if count)
        return shortened(" ".join((f"{self.first}: {self.name}", *counts)), _LONGEST_ROW)

    def heading_rows(self) -> Iterator[str]:
        """Return a line for each heading, to stand below that of the file."""
        return (shortened(f"  {number}: {name}", _LONGEST_ROW) for name, number in self.headings.items())


def preview_diff(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return files, headings and text within ``budget`` tokens; None if it is no diff, or no file fits."""
    lines = content.text[:_MAX_CHARACTERS].split("\n", _MAX_LINES)[:_MAX_LINES]
    files = _files_in(lines)
    of_files = sum(file.lines for file in files if file.has_hunks)
    if of_files < _IN_A_DIFF * len(lines) or len(lines) - files[-1].last > _MAX_AFTER:
        return None
    searched = len(lines) if len(lines) < content.lines else None
    listed = _list(files, searched, budget, counter)
    if listed is None:
        return None
    left = budget - counter.count(f"{listed}\n")
    if left >= _MIN_FOR_TEXT:
        both = f"{listed}\n{preview_text(content, left, counter)}"
    else:  # fewer files, below what the commit says
        above = counter.head("\n".join(lines[: files[0].first - 1]), int(budget * _SHARE_OF_A_MESSAGE))
        fewer = _list(files, searched, budget - counter.count(f"{above}\n"), counter) if above.strip() else None
        both = f"{above}\n{fewer}" if fewer else listed
    return both if counter.count(both) <= budget else listed


def _list(files: Sequence[_File], searched: int | None, budget: int, counter: TokenCounter) -> str | None:
    """Return the files that fit ``budget`` tokens, and headings within their share of it; None if no file fits.

    Args:
        files: all files that were found.
        searched: the lines that were searched for files, or None if those are all.
        budget: tokens.
        counter: counts them.

    """
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    where = f" in the first {searched:,} lines" if searched else ""
    changes = f"{count_of(len(files), 'file')}, {count_of(added, 'line')} added, {removed:,} removed"
    heading = f"[diff{where}: {changes}; each file with the line on which it begins:]"
    left = budget - counter.count(f"{heading}\n{_hidden(len(files))}\n")
    shown: list[list[str]] = []
    for file in files:
        row = file.row()
        left -= counter.count(f"{row}\n")
        if left < 0:
            break
        shown.append([row])
    if not shown:
        return None
    turns = zip_longest(*(file.heading_rows() for file in files)) if len(shown) == len(files) else ()
    for rows, row in ((rows, row) for turn in turns for rows, row in zip(shown, turn, strict=True) if row):
        left -= counter.count(f"{row}\n")
        if left < budget * (1 - _SHARE_OF_HEADINGS):
            break
        rows.append(row)
    hidden = [_hidden(len(files) - len(shown))] if len(shown) < len(files) else []
    listed = "\n".join((heading, *chain.from_iterable(shown), *hidden))
    return listed if counter.count(listed) <= budget else None


def _hidden(files: int) -> str:
    return f"[… {count_of(files, 'more file')} …]"


def _named_in(command: str) -> str:
    """Return the name in ``Index: x y``, or in ``diff --git a/x y b/x y``, which has it twice."""
    names = _COMMAND.sub("", command, count=1)
    middle = len(names) // 2
    is_twice = names[middle : middle + 1] == " " and names[2:middle] == names[middle + 3 :]
    return _PREFIX.sub("", names[middle + 1 :] if is_twice else names)


def _files_in(lines: Iterable[str]) -> list[_File]:
    """Return the files of a diff. Within a hunk, whose header says how long it is, no line is taken for a header."""
    files: list[_File] = []
    for number, line in enumerate(lines, 1):
        if not (files and files[-1].take(line)):
            header = _HEADER.match(line)
            if not header:
                continue
            if header["command"]:  # whose file may have no names below
                files.append(_File(number, _named_in(line.rstrip())))
            elif header["old"] and (not files or files[-1].has_hunks):
                files.append(_File(number, _NO_FILE))
            if not files:
                continue
            files[-1].describe(header, number)
        files[-1].lines += 1
        files[-1].last = number
    return files
