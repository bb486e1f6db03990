"""CSV, TSV and similar tables: the header, then whole rows from both ends, as they are written."""

from __future__ import annotations

import csv
import re
from functools import partial
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING

from coatcheck.core.preview.counted import text_below
from coatcheck.core.preview.names import next_to_names
from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.pieces import found_in, line_pieces, search_pieces, split_lines, unsearched_lines
from coatcheck.core.preview.source import LONGEST_LINE, join_lines, lines_of, pick, sample_of
from coatcheck.core.preview.table import ends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.preview.odd import OddSearch
    from coatcheck.core.preview.source import Found, Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("DELIMITED_TYPES", "DELIMITERS", "delimiter_of", "preview_delimited", "search_delimited")

DELIMITED_TYPES = frozenset({"application/csv", "text/csv", "text/tab-separated-values", "text/tsv"})

DELIMITERS = "\t,;|"
_MIN_ROWS = 5
_MIN_COLUMNS = 2
_MIN_CELLS = 20
"""Cells in the sample lines, including the header. A few lines with one comma each may be prose."""

_NAME = re.compile(r"(?![^\n]*(?:: |\d[-:./]\d))\s*(?:[^\W\d]\S*(?: \S+){0,7}|\d{4})\s*")
"""A column name: up to eight words, the first beginning with a letter; or a year. No date, time or ``: `` in it."""

_LONGEST_NAME = 60
_LONGEST_ROW = LONGEST_LINE * 4
_FIRST_PIECE = 8_192
"""Characters read first. If no column has few distinct values in them, no row is odd, and the rest is not read."""


def search_delimited(found: Found, content: Previewed) -> Iterator[None]:
    """Search the rows for odd ones; yield after each piece."""
    text, delimiter = content.text, delimiter_of(content)
    if delimiter is not None:
        yield from search_pieces(found, text, partial(_read, text, delimiter), partial(split_lines, text))


def preview_delimited(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return the header and rows within ``budget`` tokens, or None if no row fits."""
    delimiter = delimiter_of(content)
    if delimiter is None:
        return None
    found = found_in(content, search_delimited)
    lines = lines_of(content)
    columns = len(_cells(lines[1], delimiter))
    # Count lines, not rows: a quoted cell in the part that is not read may span several lines.
    size = f"table of {count_of(content.lines, 'line')} by {count_of(columns, 'column')}"
    unseen = unsearched_lines(found, content)
    what = "; ".join(filter(None, (f"{size}, the header is line 1", found.odd.what, unseen)))
    odd = {position + 2: content.text[start:end] for position, (start, end) in found.places.items()}
    # An odd row comes before the first row: there may be room for only one of them.
    usual = islice(ends(content.lines - 1), budget // _MIN_COLUMNS)  # a cell takes at least a token
    wanted = chain([1], islice(odd, 1), [2], odd, (position + 2 for position in usual))
    looked_at = ((number, odd.get(number) or lines.get(number, "")) for number in wanted)
    rows = {number: line.rstrip("\r") for number, line in looked_at if 0 < len(line) <= _LONGEST_ROW}

    def fit(room: int) -> tuple[str | None, bool]:
        left = room - counter.count(f"{what}\n")
        chosen = pick(rows, rows.__getitem__, content.lines, left, counter, longest=_LONGEST_ROW)
        if chosen.keys() <= {1} or any(len(_cells(row, delimiter)) != columns for row in chosen.values()):
            return None, False  # a row spans lines, or notes follow the table: lines are not rows
        if room < budget and not rows.keys() & {2, *odd} <= chosen.keys():
            return None, False  # names would take the room of the first row and the odd ones
        shown = f"{what}\n{join_lines(chosen, content.lines)}"
        return shown if 1 in chosen and counter.count(shown) <= room else None, False

    shown = next_to_names(fit, content.text, budget, counter, may_fit=False, or_alone=bool(odd or unseen))
    return shown or text_below(size, found.odd, content, budget, counter)


def _read(text: str, delimiter: str, search: OddSearch) -> Iterator[tuple[int, int]]:
    """Add the rows of each piece to ``search``; yield where it begins and ends. Stop at a cell that spans lines."""
    start = text.find("\n") + 1
    header = _cells(text[: start - 1], delimiter)
    for piece in line_pieces(text, start, first=_FIRST_PIECE):
        lines = text[slice(*piece)].rstrip("\n").split("\n")
        cells = _cells_of(lines, delimiter, len(header))
        if not cells:
            return
        search.add_cells(header, cells)
        if not search.may_find:
            yield piece[0], len(text)
            return
        yield piece


def _cells_of(lines: list[str], delimiter: str, columns: int) -> list[str]:
    """Return the cells of all rows, row by row; an empty list if a line is not a row of ``columns`` cells."""
    if all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    # Most rows usually have no quotes. Splitting those takes a third of the time.
    quoted = [number for number, line in enumerate(lines) if '"' in line or "\r" in line]
    rows = [_cells(lines[number], delimiter) for number in quoted]
    for number in quoted:
        lines[number] = delimiter * (columns - 1)
    if set(map(str.count, lines, repeat(delimiter))) != {columns - 1} or any(len(row) != columns for row in rows):
        return []
    cells = delimiter.join(lines).split(delimiter)
    for number, row in zip(quoted, rows, strict=True):
        cells[number * columns : (number + 1) * columns] = row
    return cells


def delimiter_of(content: Previewed) -> str | None:
    """Return the delimiter of a table with a header, or None if the content may be something else.

    ``clevercsv`` is not used: it finds the delimiter of every table, but also one in most other content, and takes
    fifty times as long; see ``docs/quality.md``.
    """
    sample = sample_of(content)
    declared = content.declared in DELIMITED_TYPES
    if len(sample) < (_MIN_COLUMNS if declared else _MIN_ROWS):
        return None
    for delimiter in DELIMITERS:
        header = _cells(sample[0], delimiter)
        if (
            len(header) >= _MIN_COLUMNS
            and len(set(header)) == len(header)
            and (declared or len(header) * len(sample) >= _MIN_CELLS)
            and all(len(cell) <= _LONGEST_NAME and _NAME.fullmatch(cell) for cell in header)
            and all(len(_cells(line, delimiter)) == len(header) for line in sample)
            # Sentences have a space after every comma; data seldom does.
            and (declared or not all(line.count(delimiter) == line.count(f"{delimiter} ") for line in sample))
        ):
            return delimiter
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line; an empty list if a quoted cell continues on the next line."""
    if line and '"' not in line and "\r" not in line:  # as the parser does, but in a fifth of the time
        return line.split(delimiter)
    if line.count('"') % 2:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
