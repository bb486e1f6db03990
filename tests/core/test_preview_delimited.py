"""Tables: the cells are those that the standard library's parser finds, and both usual and odd rows are shown."""

from __future__ import annotations

import csv

from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck.core.preview import Previewed, delimited
from tests.core.previewing import TIKTOKEN, checked_preview

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
def test_cells_are_those_of_the_standard_parser(rows: list[tuple[str, str, str]]) -> None:
    lines = [f"{first},{second}{end}" for first, second, end in rows]

    assert delimited._cells_of(list(lines), ",", 2) == _parsed(lines, 2)


def _stations(odd: dict[int, str]) -> list[str]:
    rows = [
        f"S{n:04},Halt {n * 7_919 % 9_973},{['north', 'south', 'east'][n % 3]},{n % 90}.{n * 31 % 997}"
        for n in range(3_000)
    ]
    for place, region in odd.items():
        number, name, _, height = rows[place].split(",")
        rows[place] = f"{number},{name},{region},{height}"
    return ["station,name,region,height", *rows]


ODD = {2_000: "isle of birds", 2_001: "old harbour", 2_400: "upper lake"}


def test_odd_rows_are_shown_with_the_first_ones_as_far_as_the_budget_goes() -> None:
    lines = _stations(ODD)
    shown = checked_preview(Previewed.of("\n".join(lines)), 300)
    rows = shown.split("\n")

    assert rows[1:4] == lines[:3]
    assert all(lines[place + 1] in rows for place in ODD)
    assert TIKTOKEN.count(shown) > 270


def test_adjacent_odd_rows_need_no_room_for_a_gap_between_them() -> None:
    lines = _stations({2_000 + n: f"region {'abcdef'[n]}" for n in range(6)})
    rows = checked_preview(Previewed.of("\n".join(lines)), 280).split("\n")

    assert rows[2] == lines[1]
    assert [line for line in rows if line in lines[2_001:2_007]] == lines[2_001:2_007]
