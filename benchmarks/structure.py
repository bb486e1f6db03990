"""How the library is laid out: rooms, floors, arrows and circles, from its imports.

    python -m benchmarks.structure

A room is a module or a package directly below ``src/coatcheck``. What lies inside a package counts as that package, and
``__main__``, which starts the command line, counts as ``cli``. An arrow leads from a room to one that it imports,
inside a function or for types as well. A circle is a set of rooms that all lead to each other; the floors are the
longest way along the arrows, with a circle as one room. Circles are also looked for among the modules inside ``core``,
``engine`` and ``storage``. What only a package's ``__init__`` imports is its front door: it is an arrow of the top
level, but inside a package it is none.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = Path(__file__).parents[1] / "src/coatcheck"
WITHIN = ("core", "engine", "storage")
"""Packages without a circle among their modules."""

STARTS = {"__main__": "cli"}
"""Modules that only start a program, with its room. Nothing imports them."""

MOST_ROOMS, MOST_FLOORS, MOST_ARROWS = 16, 6, 50


@dataclass(frozen=True)
class Plan:
    """Rooms, and for each the rooms that it imports."""

    arrows: Mapping[str, frozenset[str]]

    @cached_property
    def circles(self) -> list[list[str]]:
        """Each set of rooms that lead to each other."""
        reached = {room: self._reached(room) for room in self.arrows}
        circles = {frozenset({room} | {far for far in reached[room] if room in reached[far]}) for room in self.arrows}
        return sorted(sorted(circle) for circle in circles if len(circle) > 1)

    @property
    def count(self) -> int:
        """How many arrows there are."""
        return sum(map(len, self.arrows.values()))

    @property
    def floors(self) -> list[list[str]]:
        """The rooms by floor, the lowest first; those of a circle are on one."""
        circle_of = {room: min(circle) for circle in self.circles for room in circle}
        merged: dict[str, set[str]] = {}
        for room, far in self.arrows.items():
            own = circle_of.get(room, room)
            merged.setdefault(own, set()).update(circle_of.get(each, each) for each in far)
            merged[own].discard(own)
        floor: dict[str, int] = {}
        for room in TopologicalSorter(merged).static_order():
            floor[room] = max((floor[far] + 1 for far in merged[room]), default=0)
        found: list[list[str]] = [[] for _ in range(max(floor.values(), default=-1) + 1)]
        for room in sorted(self.arrows):
            found[floor[circle_of.get(room, room)]].append(room)
        return found

    def _reached(self, room: str) -> set[str]:
        found: set[str] = set()
        left = [room]
        while left:
            new = self.arrows[left.pop()] - found
            found |= new
            left += new
        return found


def plan_of(folder: Path) -> Plan:
    """Return the plan of the rooms directly below ``folder``, a package; its own ``__init__`` is no room."""
    package = ".".join(("coatcheck", *folder.relative_to(SOURCE).parts))
    rooms = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    arrows: dict[str, set[str]] = {room: set() for room in rooms - {"__init__"} - STARTS.keys()}
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        room = STARTS.get(room, room)
        if room in arrows:
            names = {name.removeprefix(f"{package}.").partition(".")[0] for name in _imported(path, package)}
            arrows[room] |= names & arrows.keys() - {room}
    return Plan({room: frozenset(far) for room, far in arrows.items()})


def _imported(path: Path, package: str) -> Iterator[str]:
    """Yield the full name of whatever a file imports from below ``package``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith(f"{package}."))


def main() -> None:
    """Print the figures."""
    top = plan_of(SOURCE)
    print(f"rooms   {len(top.arrows):3} (at most {MOST_ROOMS})")
    print(f"floors  {len(top.floors):3} (at most {MOST_FLOORS})")
    print(f"arrows  {top.count:3} (at most {MOST_ARROWS})")
    for number, floor in enumerate(top.floors):
        print(f"  floor {number}: {', '.join(floor)}")
    for name in ("", *WITHIN):
        circles = plan_of(SOURCE / name).circles
        print(f"circles in {name or 'the top level'}: {'; '.join(map(', '.join, circles)) or 'none'}")


if __name__ == "__main__":
    main()
