"""The library's structure, from its imports: parts, layers, dependencies and cycles.

    python -m benchmarks.structure

A part is a module or a package directly below ``src/coatcheck``. What is inside a package counts as that package, and
``__main__``, which starts the command line, counts as ``cli``. A dependency is one part's import of another, also
inside a function or only for types. A cycle is a set of parts that all depend on each other. The number of layers is
the length of the longest chain of dependencies, with a cycle as one part. Cycles are also looked for among the modules
inside ``core``, ``engine`` and ``storage``. What only a package's ``__init__`` imports is a dependency at the top
level, but not inside the package.
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
"""Packages that must have no cycle among their modules."""

STARTS = {"__main__": "cli"}
"""Modules that only start a program, and the part that each counts as. Nothing imports them."""

MAX_PARTS, MAX_LAYERS, MAX_DEPENDENCIES = 16, 6, 50


@dataclass(frozen=True)
class Plan:
    """The parts, and the parts that each imports."""

    dependencies: Mapping[str, frozenset[str]]

    @cached_property
    def cycles(self) -> list[list[str]]:
        """The sets of parts that all depend on each other."""
        reached = {part: self._reached(part) for part in self.dependencies}
        cycles = {
            frozenset({part} | {far for far in reached[part] if part in reached[far]}) for part in self.dependencies
        }
        return sorted(sorted(cycle) for cycle in cycles if len(cycle) > 1)

    @property
    def count(self) -> int:
        """The number of dependencies."""
        return sum(map(len, self.dependencies.values()))

    @property
    def layers(self) -> list[list[str]]:
        """The parts by layer, the lowest first. The parts of a cycle share a layer."""
        cycle_of = {part: min(cycle) for cycle in self.cycles for part in cycle}
        merged: dict[str, set[str]] = {}
        for part, far in self.dependencies.items():
            own = cycle_of.get(part, part)
            merged.setdefault(own, set()).update(cycle_of.get(each, each) for each in far)
            merged[own].discard(own)
        layer: dict[str, int] = {}
        for part in TopologicalSorter(merged).static_order():
            layer[part] = max((layer[far] + 1 for far in merged[part]), default=0)
        found: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
        for part in sorted(self.dependencies):
            found[layer[cycle_of.get(part, part)]].append(part)
        return found

    def _reached(self, part: str) -> set[str]:
        found: set[str] = set()
        left = [part]
        while left:
            new = self.dependencies[left.pop()] - found
            found |= new
            left += new
        return found


def plan_of(folder: Path) -> Plan:
    """Return the plan of the parts directly below ``folder``, a package. Its own ``__init__`` is not a part."""
    package = ".".join(("coatcheck", *folder.relative_to(SOURCE).parts))
    parts = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    dependencies: dict[str, set[str]] = {part: set() for part in parts - {"__init__"} - STARTS.keys()}
    for path in sorted(folder.rglob("*.py")):
        part = path.relative_to(folder).parts[0].removesuffix(".py")
        part = STARTS.get(part, part)
        if part in dependencies:
            names = {name.removeprefix(f"{package}.").partition(".")[0] for name in _imported(path, package)}
            dependencies[part] |= names & dependencies.keys() - {part}
    return Plan({part: frozenset(far) for part, far in dependencies.items()})


def _imported(path: Path, package: str) -> Iterator[str]:
    """Yield the full names that a file imports from ``package``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith(f"{package}."))


def main() -> None:
    """Print all counts and cycles."""
    top = plan_of(SOURCE)
    print(f"parts        {len(top.dependencies):3} (at most {MAX_PARTS})")
    print(f"layers       {len(top.layers):3} (at most {MAX_LAYERS})")
    print(f"dependencies {top.count:3} (at most {MAX_DEPENDENCIES})")
    for number, layer in enumerate(top.layers):
        print(f"  layer {number}: {', '.join(layer)}")
    for name in ("", *WITHIN):
        cycles = plan_of(SOURCE / name).cycles
        print(f"cycles in {name or 'the top level'}: {'; '.join(map(', '.join, cycles)) or 'none'}")


if __name__ == "__main__":
    main()
