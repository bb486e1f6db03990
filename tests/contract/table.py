"""The docs page about what is the same in every framework: each scenario, its promise, and who cannot express it.

The page is made from the scenarios and ``inexpressible`` alone. ``python -m tests.docs.rewrite`` writes it, and a test
checks that it is up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coatcheck.testing import SCENARIOS
from coatcheck.testing.adapter import reason_to_skip
from tests.contract.inexpressible import (
    AGENT_FRAMEWORK,
    GOOGLE_ADK,
    HAYSTACK,
    LANGCHAIN,
    LANGCHAIN_BY_CALL,
    MCP,
    OPENAI_AGENTS,
    OPENAI_AGENTS_CANNOT,
    PYDANTIC_AI,
    PYDANTIC_AI_CANNOT,
    STRANDS,
)
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from coatcheck.testing import Capability

__all__ = ("PAGE", "page")

PAGE: Path = ROOT / "docs/contract.md"

WAYS: Mapping[str, Mapping[Capability, str]] = {
    "`create_agent`": LANGCHAIN_BY_CALL,
    "`ToolNode`": LANGCHAIN_BY_CALL,
    "`offload_tool_node`": LANGCHAIN,
    "Strands": STRANDS,
    "Haystack": HAYSTACK,
    "OpenAI Agents": OPENAI_AGENTS,
    "Google ADK": GOOGLE_ADK,
    "Agent Framework": AGENT_FRAMEWORK,
    "Pydantic AI": PYDANTIC_AI,
    "MCP": MCP,
}

CANNOT: Mapping[str, Mapping[str, str]] = {"OpenAI Agents": OPENAI_AGENTS_CANNOT, "Pydantic AI": PYDANTIC_AI_CANNOT}
"""Single scenarios that a framework cannot express, by name."""

HEAD = """\
# What is the same in every framework

A real agent of each framework runs every scenario below against a scripted model behind HTTP, through the framework's
own client, once sync and once async. What the model receives and what the storage holds must equal, to the character,
what the core makes of the same result. So all frameworks behave alike. A result *leaves* the conversation if it is
offloaded; otherwise it *stays*.

- **Storages**: one of the two runs stores in memory, the other in files; `nox -s thorough` runs both with each.
- **Ways to build an agent**: LangChain is tested in its three ways, the OpenAI Agents SDK and the Microsoft Agent
  Framework with both of OpenAI's APIs. Google ADK's client speaks the Gemini API, all others speak OpenAI's.
- **MCP** has no agents of its own: the protocol's own client does what the scripted model says, and the proxy sits
  between it and a server. The column `MCP` shows that. The same scenarios also run on a FastMCP server with
  `OffloadMiddleware`.
- **Across frameworks**, which cannot all be installed together: one conversation is played in every session and
  compared with the same committed file, `tests/contract/golden.json`.

`nox -s "adapter(langgraph)" "adapter(strands)"`, and so on for each name that `nox -l` lists, runs the scenarios.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([HEAD, *_table(), "", *_reasons()])


def _table() -> Iterator[str]:
    yield f"| scenario | what must hold | {' | '.join(WAYS)} |"
    yield f"|---|---|{'---|' * len(WAYS)}"
    numbers = {reason: number for number, reason in enumerate(_all_reasons(), 1)}
    for scenario in SCENARIOS:
        reasons = [reason_to_skip(scenario, lacks=lacks, cannot=CANNOT.get(way, {})) for way, lacks in WAYS.items()]
        marks = ["yes" if reason is None else f"no ({numbers[reason]})" for reason in reasons]
        yield f"| {scenario.name} | {scenario.promise} | {' | '.join(marks)} |"


def _reasons() -> Iterator[str]:
    yield "Numbers say why no agent of that framework can get into the situation:"
    yield ""
    for number, reason in enumerate(_all_reasons(), 1):
        yield f"{number}. {reason[0].upper()}{reason[1:]}."
    yield ""


def _all_reasons() -> list[str]:
    tables: list[Mapping[Any, str]] = [*WAYS.values(), *CANNOT.values()]
    return list(dict.fromkeys(reason for table in tables for reason in table.values()))
