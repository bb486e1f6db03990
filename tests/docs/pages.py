"""The code blocks of README, docs and the other pages: the kind of each, and the session in which it can run.

A CommonMark parser finds every block, so an unknown block is an error and never skipped. Comments with three dashes,
which readers do not see, steer what follows them:

    <!--- python [PART]      code that runs, and is not shown, up to the end of the comment
    <!--- needs PART -->     the next block runs where that extra is installed, although it does not import it
    <!--- shows: NAME [in PART] -->   the next block is what the code above it left under that name
"""

from __future__ import annotations

import ast
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import tomli
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


__all__ = ("CORE", "PAGES", "PART_OF", "Block", "Unknown", "blocks_in", "blocks_of", "shown")

PAGES: Sequence[Path] = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

CORE = "core"
"""The name of the part that needs no extra."""

PART_OF = {
    "agent_framework": "agent-framework",
    "agents": "openai-agents",
    "agno": "agno",
    "claude_agent_sdk": "claude",
    "coatcheck_adk": "google-adk",
    "coatcheck_agent_framework": "agent-framework",
    "coatcheck_claude": "claude",
    "coatcheck_haystack": "haystack",
    "coatcheck_langchain": "langgraph",
    "coatcheck_mcp": "mcp",
    "coatcheck_openai": "openai-agents",
    "coatcheck_pydantic_ai": "pydantic-ai",
    "coatcheck_strands": "strands",
    "crewai": "crewai",
    "deepagents": "langgraph",
    "fastmcp": "mcp",
    "fsspec": "fsspec",
    "google": "google-adk",
    "haystack": "haystack",
    "langchain": "langgraph",
    "langchain_core": "langgraph",
    "langchain_openai": "langgraph",
    "langgraph": "langgraph",
    "langgraph_sdk": "langgraph",
    "llama_index": "llamaindex",
    "openai": "langgraph",  # langchain-openai brings it
    "opentelemetry": CORE,  # its tests run with those of the core
    "pydantic_ai": "pydantic-ai",
    "pydantic": "crewai",  # CrewAI brings it
    "smolagents": "smolagents",
    "strands": "strands",
}
"""The extra or group whose session has a module installed, for each module that a block may import."""

EVERYWHERE = {*sys.stdlib_module_names, "coatcheck", "pytest", "tests"}

_SHELL = {"sh", "console"}
_HIDDEN = re.compile(r"<!--- python(?: ([\w-]+))?\n(.*?)-->\s*", re.DOTALL)
_NEEDS = re.compile(r"<!--- needs ([\w-]+) -->\s*")
_SHOWS = re.compile(r"<!--- shows: (\w+)(?: in ([\w-]+))? -->\s*")


class Unknown(Exception):
    """A block that nothing runs or compares."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One code block."""

    kind: Literal["python", "shell", "shown", "json", "toml"]
    """What the tests do with it: run it, look up its commands, compare it or parse it."""

    text: str
    """The lines of the block."""

    line: int
    """The number of lines of the page above its first line."""

    part: str = CORE
    """The extra that it needs."""

    name: str = ""
    """For a shown block: the name under which the code above left the value."""

    is_hidden: bool = False
    """Whether it is in a comment, which readers do not see."""


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    """Return the code blocks of a page in order, including those in comments.

    Raises:
        Unknown: this module does not know what to do with one of them.

    """
    return tuple(blocks_in(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()))


def blocks_in(markdown: str, page: str) -> Iterator[Block]:
    """Do what ``blocks_of`` does, for Markdown in a string."""
    above = ""  # the comment that steers the next block
    lines = markdown.count("\n")
    end = Token("inline", "", 0, content="the end", map=[lines, lines])
    for token in [*MarkdownIt().parse(markdown), end]:
        line = 0 if token.map is None else token.map[0]
        place = f"{page}:{line + 1}"
        if token.type in {"fence", "code_block"}:
            yield _block(token, above, line=line + (token.type == "fence"), place=place)
            above = ""
        elif above and token.content:
            raise Unknown(place, "the comment above steers a code block, and none follows")
        elif token.type == "html_block" and token.content.startswith("<!---"):
            if hidden := _HIDDEN.fullmatch(token.content):
                yield _python(hidden[2], hidden[1], line=line + 1, place=place, is_hidden=True)
            elif _NEEDS.fullmatch(token.content) or _SHOWS.fullmatch(token.content):
                above = token.content
            else:
                raise Unknown(place, "a comment of this form steers nothing")


def shown(made: object) -> str:
    """Return a value as a page shows it: a string as it is, anything else as JSON."""
    return (made if isinstance(made, str) else json.dumps(made, indent=2)) + "\n"


def _block(token: Token, above: str, *, line: int, place: str) -> Block:
    needs, shows = _NEEDS.fullmatch(above), _SHOWS.fullmatch(above)
    if shows:
        return Block(kind="shown", text=token.content, line=line, part=shows[2] or CORE, name=shows[1])
    if token.info == "python":
        return _python(token.content, needs and needs[1], line=line, place=place)
    if needs:
        raise Unknown(place, "only Python needs an extra")
    if token.type == "code_block" or token.info in _SHELL:
        return Block(kind="shell", text=token.content, line=line)
    if token.info == "json":
        json.loads(token.content)
        return Block(kind="json", text=token.content, line=line)
    if token.info == "toml":
        tomli.loads(token.content)
        return Block(kind="toml", text=token.content, line=line)
    raise Unknown(place, f"nothing runs or compares a block of {token.info or 'no language'}")


def _python(text: str, part: str | None, *, line: int, place: str, is_hidden: bool = False) -> Block:
    return Block(kind="python", text=text, line=line, part=part or _part_of(text, place), is_hidden=is_hidden)


def _part_of(text: str, place: str) -> str:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError as error:
        raise Unknown(place, str(error)) from error
    imported = {name.partition(".")[0] for node in nodes for name in _names(node)}
    if unknown := imported - EVERYWHERE - PART_OF.keys():
        raise Unknown(place, f"no session is known to have {', '.join(sorted(unknown))}")
    parts = {PART_OF[name] for name in imported if name in PART_OF}
    if len(parts) > 1:
        raise Unknown(place, f"no session has {' and '.join(sorted(parts))}")
    return parts.pop() if parts else CORE


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
