"""Reads the source tree for the meta tests: which modules there are, and what each one imports.

Only reading belongs here; the rules are in the tests next to this file.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import tomli

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Import:
    """The parts of an import statement that the rules need."""

    module: str
    """The dotted name after ``import`` or ``from``."""

    name: str | None
    """The name that ``from`` imports out of it; None for a plain ``import``."""

    line: int
    for_types: bool
    """Whether it is under ``if TYPE_CHECKING:``, so that it never runs."""
    at_top: bool
    """Whether it is outside every function."""

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file of the library."""

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def tree(self) -> ast.Module:
        return _parse(self.path)

    def imports(self) -> Iterator[Import]:
        return _imports(self.tree.body, for_types=False, at_top=True)


def modules(folder: str) -> list[Module]:
    """Return every module below ``src`` or ``adapters``."""
    base = ROOT / folder
    return [
        Module(".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"), path)
        for path in sorted(base.rglob("*.py"))
    ]


FRAMEWORKS = {
    "coatcheck_adk": {"google", "pydantic_core"},  # ADK converts results to JSON with pydantic
    "coatcheck_agent_framework": {"agent_framework", "pydantic"},  # the framework takes schemas as pydantic models
    "coatcheck_claude": {"claude_agent_sdk"},
    "coatcheck_haystack": {"haystack"},
    "coatcheck_langchain": {"langchain", "langchain_core", "langgraph"},
    # FastMCP brings the protocol's own packages and those of its transports; tomli reads TOML on Python 3.10.
    "coatcheck_mcp": {"anyio", "fastmcp", "httpx2", "mcp", "mcp_types", "pydantic", "starlette", "tomli", "uvicorn"},
    "coatcheck_openai": {"agents", "mcp"},  # the SDK brings mcp, whose results its servers return
    "coatcheck_pydantic_ai": {"pydantic", "pydantic_ai", "pydantic_core"},  # pydantic makes errors, and JSON of results
    "coatcheck_strands": {"boto3", "botocore", "strands"},  # Strands brings boto3, whose objects its storage accepts
}
"""The packages that each adapter may import besides the standard library and coatcheck's public names."""

SHARED_PACKAGES = ("haystack_integrations",)
"""Namespace packages in ``adapters`` that belong to a framework. Our modules in one belong to our adapter for it."""


def adapter_packages() -> list[str]:
    """Return our own import packages in ``adapters``."""
    others = {*SHARED_PACKAGES, "__pycache__"}
    return sorted(path.name for path in (ROOT / "adapters").iterdir() if path.is_dir() and path.name not in others)


@cache
def pyproject() -> dict[str, object]:
    """Return the whole of pyproject.toml."""
    content: dict[str, object] = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return content


def declared_all(module: Module) -> tuple[ast.expr, list[str]] | None:
    """Return the expression that ``__all__`` is set to, and the names in it."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                return node.value, [str(name) for name in ast.literal_eval(node.value)]
    return None


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _imports(body: list[ast.stmt], *, for_types: bool, at_top: bool) -> Iterator[Import]:
    for node in body:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, None, node.lineno, for_types, at_top)
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    yield Import("." * level + (module or ""), alias.name, node.lineno, for_types, at_top)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(node.body, for_types=True, at_top=at_top)
                yield from _imports(node.orelse, for_types=for_types, at_top=at_top)
            case _:
                inside = at_top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                for field in ("body", "orelse", "finalbody"):
                    yield from _imports(getattr(node, field, []), for_types=for_types, at_top=inside)
                for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                    yield from _imports(part.body, for_types=for_types, at_top=inside)
