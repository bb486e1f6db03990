"""How many functions and files a result passes through: no change may add many unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.hops import MOST, our_ways

if TYPE_CHECKING:
    from pathlib import Path


def test_no_path_through_the_library_is_more_than_a_tenth_above_its_limit(tmp_path: Path) -> None:
    for name, way in our_ways(tmp_path).items():
        functions, files = MOST[name]
        found = "see `python -m benchmarks.hops --names`"
        assert len(way.functions) <= functions * 1.1, f"{name} passes {len(way.functions)} functions: {found}"
        assert way.files <= files * 1.1, f"{name} passes {way.files} files: {found}"
