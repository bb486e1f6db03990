"""Find functions that are written twice: pairs whose syntax trees are alike, apart from names and constants.

    python -m benchmarks.alike adapters              every pair in a folder that is at least 90% alike
    python -m benchmarks.alike adapters --least 0.8  also pairs that are less alike

Short functions are left out, because any two functions of two lines look the same without their names. So are pairs of
a function and its async twin: they differ only in ``await``, and Python cannot express both at once.
"""

from __future__ import annotations

import argparse
import ast
import sys
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("LEAST", "SHORTEST", "Function", "Pair", "code_lines", "find_alike", "functions_in")

LEAST = 0.9
"""The share of nodes that two trees must have in common to count as alike."""

SHORTEST = 25
"""Nodes in a tree, about three lines. Shorter functions are left out."""

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function, without its names, constants and docstring."""

    name: str
    """Module, line and name."""

    is_async: bool

    nodes: tuple[str, ...]
    """The types of its nodes, from top to bottom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two functions that are alike."""

    share: float
    first: Function
    second: Function

    def __str__(self) -> str:
        return f"{self.share:.2f}  {self.first.name}  {self.second.name}"


def functions_in(folder: Path) -> list[Function]:
    """Return all functions in a folder's modules, except short ones."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                kinds = tuple(_kinds(node))
                name = f"{path.relative_to(folder)}:{node.lineno}:{node.name}"
                if len(kinds) >= SHORTEST:
                    found.append(Function(name=name, is_async=isinstance(node, ast.AsyncFunctionDef), nodes=kinds))
    return found


def find_alike(functions: Sequence[Function], *, least: float = LEAST) -> list[Pair]:
    """Return the pairs that are alike, the most alike first."""
    pairs = []
    for first, second in combinations(functions, 2):
        if first.is_async is not second.is_async:
            continue
        shares = SequenceMatcher(None, first.nodes, second.nodes, autojunk=False)
        if shares.real_quick_ratio() >= least and shares.quick_ratio() >= least and shares.ratio() >= least:
            pairs.append(Pair(share=shares.ratio(), first=first, second=second))
    return sorted(pairs, key=lambda pair: -pair.share)


def code_lines(path: Path) -> int:
    """Return the number of code lines in a module, without blank lines, comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    code = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in ast.walk(tree):
        if _is_docstring(node):
            code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code)


def _kinds(function: ast.AST) -> Iterable[str]:
    for child in ast.iter_child_nodes(function):
        if not _is_docstring(child) and not isinstance(child, ast.expr_context):
            yield type(child).__name__
            yield from _kinds(child)


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Return whether a statement is only a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def main() -> int:
    """Print the pairs in a folder, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "adapters")
    parser.add_argument("--least", type=float, default=LEAST, help="how much alike, from 0 to 1")
    arguments = parser.parse_args()
    functions = functions_in(arguments.folder)
    pairs = find_alike(functions, least=arguments.least)
    print(*pairs, f"{len(pairs)} pairs of {len(functions)} functions", sep="\n")
    return int(bool(pairs))


if __name__ == "__main__":
    sys.exit(main())
