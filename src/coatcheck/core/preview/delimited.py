"""CSV, TSV and their like: the header, then rows of both ends as they are written, never a part of one."""

from __future__ import annotations

import csv
import re
from itertools import chain
from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.odd import Odd, find_odd, may_be_rare
from coatcheck.core.preview.source import LONGEST_LINE, join_lines, lines_of, sample_of
from coatcheck.core.preview.table import ends
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("DELIMITED_TYPES", "DELIMITERS", "delimiter_of", "preview_delimited")

DELIMITED_TYPES = frozenset({"application/csv", "text/csv", "text/tab-separated-values", "text/tsv"})

DELIMITERS = "\t,;|"
_LEAST_ROWS = 5
_LEAST_COLUMNS = 2
_LEAST_CELLS = 20
"""Few lines with one comma each may be prose."""

_NAME = re.compile(r"(?![^\n]*(?:: |\d[-:./]\d))\s*(?:[^\W\d]\S*(?: \S+){0,7}|\d{4})\s*")
"""What may head a column: words that begin with a letter, or a year; no date, no time, no sentence after a colon."""

_LONGEST_NAME = 60
_SAMPLE = 100
_TOKENS_OF_A_GAP = 18
_MOST_SEARCHED = 8_000_000
"""Characters. Of a longer table, the lines at both ends are looked at."""


def preview_delimited(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return the header and rows within ``budget`` tokens, or None if no row fits."""
    delimiter = delimiter_of(content)
    if delimiter is None:
        return None
    is_whole = len(content.text) <= _MOST_SEARCHED
    lines = dict(enumerate(content.text.removesuffix("\n").split("\n"), 1)) if is_whole else lines_of(content)
    columns = len(_cells(lines[1], delimiter))
    # Lines, not rows: a quoted cell in the part that is not looked at may go on over several.
    odd = _odd(list(lines.values()), delimiter, counter) if is_whole else Odd((), "")
    what = f"table of {count_of(content.lines, 'line')} by {count_of(columns, 'column')}, the header is line 1"
    what = f"{what}; {odd.what}" if odd.what else what
    left = budget - counter.count(what) - counter.count(lines[1]) - _TOKENS_OF_A_GAP * (2 + len(odd.positions))
    chosen = {1: lines[1].rstrip("\r")}
    for position in chain(odd.positions, ends(content.lines - 1)):
        if position + 2 in chosen:
            continue
        if position + 2 not in lines:
            break
        line = lines[position + 2].rstrip("\r")
        if len(line) > LONGEST_LINE * 4 or len(_cells(line, delimiter)) != columns:
            return None  # a row that goes on behind a line end, or notes below the table: lines are no rows
        cost = counter.count(f"{line}\n")
        if cost > left:
            break
        chosen[position + 2] = line
        left -= cost
    shown = f"{what}\n{join_lines(chosen, content.lines)}"
    return shown if len(chosen) > 1 and counter.count(shown) <= budget else None


def _odd(lines: Sequence[str], delimiter: str, counter: TokenCounter) -> Odd:
    """Return the odd rows below the header; none where a cell goes on over several lines."""
    try:
        header, *sample = csv.reader(lines[:_SAMPLE], delimiter=delimiter, strict=True)
        few = [number for number, values in enumerate(zip(*sample, strict=False)) if may_be_rare(values)]
        if not few:
            return Odd((), "")
        spend(counter, sum(map(len, lines)) // 16)
        columns = _columns(lines, delimiter, len(header))
    except csv.Error:
        return Odd((), "")
    return find_odd(((header[number], columns(number)) for number in few), len(lines) - 1, counter)


def _columns(lines: Sequence[str], delimiter: str, columns: int) -> Callable[[int], list[str]]:
    """Return what gives the cells of a column below the header.

    Raises:
        csv.Error: a line has more cells than ``columns``, or fewer.

    """
    # Only lines with quotes need a parser: to part all others at once takes a quarter of its time.
    quoted = {number: line for number, line in enumerate(lines) if '"' in line or "\r" in line}
    rows = [*csv.reader(quoted.values(), delimiter=delimiter, strict=True)]
    plain = [delimiter * (columns - 1) if number in quoted else line for number, line in enumerate(lines)]
    if (
        len(rows) != len(quoted)
        or {*map(len, rows)} - {columns}
        or {line.count(delimiter) for line in plain} != {columns - 1}
    ):
        raise csv.Error
    cells = delimiter.join(plain).split(delimiter)

    def column(number: int) -> list[str]:
        values = cells[number::columns]
        for position, row in zip(quoted, rows, strict=True):
            values[position] = row[number]
        return values[1:]

    return column


def delimiter_of(content: Previewed) -> str | None:
    """Return what parts the cells of a table with a header, or None if the content is not certainly one.

    Not ``clevercsv``: it finds the delimiter of every table, but of most other contents too, and takes fifty times as
    long; see ``docs/quality.md``.
    """
    sample = sample_of(content)
    declared = content.declared in DELIMITED_TYPES
    if len(sample) < (_LEAST_COLUMNS if declared else _LEAST_ROWS):
        return None
    for delimiter in DELIMITERS:
        header = _cells(sample[0], delimiter)
        if (
            len(header) >= _LEAST_COLUMNS
            and len(set(header)) == len(header)
            and (declared or len(header) * len(sample) >= _LEAST_CELLS)
            and all(len(cell) <= _LONGEST_NAME and _NAME.fullmatch(cell) for cell in header)
            and all(len(_cells(line, delimiter)) == len(header) for line in sample)
            # Sentences have a blank after every comma; data seldom has.
            and (declared or not all(line.count(delimiter) == line.count(f"{delimiter} ") for line in sample))
        ):
            return delimiter
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line; none where a quoted cell goes on behind it."""
    if line.count('"') % 2:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
