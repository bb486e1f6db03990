"""The tables on the API pages: one for each section, made from the docstrings of the names that it lists.

On the site mkdocstrings replaces each ``::: name`` by the whole docstring. In the repository such a line says nothing,
so a table of names and first sentences goes above it. The table is made from the source files, because the frameworks
of the adapters need not be installed.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("PAGES", "with_tables")

PAGES = sorted(ROOT.glob("docs/api/*.md"))

_DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)
_TABLE = re.compile(r"^\| name \| what it is \|\n(?:\|.*\n)+\n", re.MULTILINE)
_SECTION = re.compile(r"^(?=#+ )", re.MULTILINE)


def with_tables(markdown: str) -> str:
    """Return a page with the table of each section regenerated."""
    return "".join(map(_with_table, _SECTION.split(_TABLE.sub("", markdown))))


def _with_table(section: str) -> str:
    names = _DIRECTIVE.findall(section)
    if not names:
        return section
    rows = "".join(f"| `{name.rpartition('.')[2]}` | {_summary(name)} |\n" for name in names)
    above, first, below = section.partition(":::")
    return f"{above}| name | what it is |\n|---|---|\n{rows}\n{first}{below}"


def _summary(name: str) -> str:
    """Return the first paragraph of a docstring as one line, escaped for a table."""
    module, _, attribute = name.rpartition(".")
    docstrings = dict(_docstrings(_source(module)))
    return " ".join(docstrings[attribute].partition("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


def _source(module: str) -> Path:
    path = module.replace(".", "/")
    places = [ROOT / root / f"{path}{end}" for root in ("src", "adapters") for end in (".py", "/__init__.py")]
    return next(place for place in places if place.exists())


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # A module may create a name under `if TYPE_CHECKING:` on first access.
    body = [each for node in tree.body for each in (node.body if isinstance(node, ast.If) else [node])]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, ast.get_docstring(node) or ""
        elif isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            yield from ((to.id, str(after.value.value)) for to in targets if isinstance(to, ast.Name))
