"""The cells of a table are those that the parser of the standard library finds, though most rows go without it."""

from __future__ import annotations

import csv

from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck.core.preview import delimited

_CELLS = st.text(alphabet='ab,; "\r', max_size=5)
_WRITTEN = st.one_of(_CELLS, _CELLS.map(lambda cell: '"' + cell.replace('"', '""') + '"'))
_ENDS = st.sampled_from(["", "\r"])


def _parsed(lines: list[str], columns: int) -> list[str]:
    cells: list[str] = []
    for line in lines:
        try:
            rows = list(csv.reader([line.rstrip("\r")], strict=True))
        except csv.Error:
            return []
        if len(rows) != 1 or len(rows[0]) != columns or line.count('"') % 2:
            return []
        cells += rows[0]
    return cells


@given(rows=st.lists(st.tuples(_WRITTEN, _WRITTEN, _ENDS), min_size=1, max_size=8))
@example(rows=[("a", '"x, y"', "\r"), ("b", "z", "\r"), ('"""q"""', "", "\r")])
@example(rows=[("a", "b", "\r"), ("c", "d", "")])
def test_cells_are_those_of_the_parser(rows: list[tuple[str, str, str]]) -> None:
    lines = [f"{first},{second}{end}" for first, second, end in rows]

    assert delimited._cells_of(list(lines), ",", 2) == _parsed(lines, 2)
