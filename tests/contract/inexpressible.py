"""What each framework lacks: the capabilities whose scenarios its contract skips, each with the reason.

There is one table per framework, which the docs print. A capability belongs here only if no agent of that framework
could get into such a situation, never because an adapter fails it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.testing import Capability

__all__ = (
    "AGENT_FRAMEWORK",
    "AGENT_FRAMEWORK_BY_CHAT",
    "GOOGLE_ADK",
    "HAYSTACK",
    "LANGCHAIN",
    "LANGCHAIN_BY_CALL",
    "MCP",
    "MCP_MIDDLEWARE",
    "OPENAI_AGENTS",
    "OPENAI_AGENTS_BY_CHAT",
    "OPENAI_AGENTS_CANNOT",
    "PYDANTIC_AI",
    "PYDANTIC_AI_CANNOT",
    "STRANDS",
)

_BY_CALL = "it sees one call at a time, and a budget for the step needs the whole step"
_TEXT_ONLY = "chat completions take nothing but text as a tool's result"

LANGCHAIN: Mapping[Capability, str] = {}

LANGCHAIN_BY_CALL: Mapping[Capability, str] = {**LANGCHAIN, "whole steps": _BY_CALL}
"""For ``create_agent`` and ``offload_tool_calls``; ``offload_tool_node`` sees whole steps."""

HAYSTACK: Mapping[Capability, str] = {
    "interrupts": "Haystack has no interrupts: a tool returns or fails, and a run ends between its steps only",
    "marked answers": "a Haystack tool can mark an error only by raising, which ends a run by default",
    "JSON values": "Haystack has no JSON content: what a tool returns as a value arrives as JSON text",
}

OPENAI_AGENTS: Mapping[Capability, str] = {
    "errors": "the OpenAI Agents SDK has no mark for errors: what a failing tool says is a `str` like any other",
    "marked answers": "the OpenAI Agents SDK has no mark for errors",
    "missing call ids": "the OpenAI Agents SDK ends a run where a call has no id",
    "repeated call ids": "the OpenAI Agents SDK ends a run where an id comes back",
    "whole steps": _BY_CALL,
}

OPENAI_AGENTS_BY_CHAT: Mapping[Capability, str] = {
    **OPENAI_AGENTS,
    "results for code": "chat completions do not say that code made a call",
    "unknown blocks": _TEXT_ONLY,
}

OPENAI_AGENTS_CANNOT: Mapping[str, str] = {
    "mixed media": "the OpenAI Agents SDK shows a list as one text, base64 included, where a JSON value is among its"
    " parts, so it costs more than the same in other frameworks",
}

AGENT_FRAMEWORK: Mapping[Capability, str] = {
    "sync": "the Agent Framework runs async only",
    "JSON values": "the Agent Framework has no JSON content: what a tool returns as a value arrives as JSON text",
    "marked answers": "the Agent Framework marks an error only if a tool raises, and then hides what the tool says",
    "whole steps": _BY_CALL,
    "results for code": "the Agent Framework does not pass on who made a call",
}

AGENT_FRAMEWORK_BY_CHAT: Mapping[Capability, str] = {**AGENT_FRAMEWORK, "unknown blocks": _TEXT_ONLY}

GOOGLE_ADK: Mapping[Capability, str] = {
    "cancelled calls": "ADK does not tell its after-tool callbacks whether a tool or a `before_tool_callback` made a"
    " result",
    "results for code": "the Gemini API does not say that code made a call",
    "whole steps": _BY_CALL,
}

PYDANTIC_AI: Mapping[Capability, str] = {
    "document names": "Pydantic AI has no names of files",
    "missing identities": "Pydantic AI gives each conversation an id where the host gives none",
    "results for code": "Pydantic AI does not pass on that code in a provider's container made a call",
    "whole steps": _BY_CALL,
}

PYDANTIC_AI_CANNOT: Mapping[str, str] = {
    "call id that is missing": "Pydantic AI's OpenAI models end a run where a call has no id",
    "call id used twice at once": "Pydantic AI ends a run where two calls at once have one id",
}
"""Single scenarios, by name. A call whose id is empty or is used again later is a call like any other."""

STRANDS: Mapping[Capability, str] = {
    "any tool names": "Strands answers a call by such a name itself, before any tool runs: names match"
    " [a-zA-Z0-9_-]{1,64}",
    "documents without names": "Strands demands a name of every document",
    "whole steps": _BY_CALL,
    "missing call ids": "Strands takes a call without an id for an incomplete one, and drops it",
    "results for code": "Strands does not pass on who made a call: its models make the same of those of code",
}

_OF_A_SERVER: Mapping[Capability, str] = {
    "document names": "MCP has no names of documents, but addresses",
    "JSON values": "MCP has no JSON in its content: structured content is one value next to it",
    "whole steps": _BY_CALL,
    "interrupts": "MCP has no interrupts: a call returns or fails",
    "results for code": "MCP does not pass on who made a call",
}

MCP: Mapping[Capability, str] = {
    **_OF_A_SERVER,
    "shared adapters": "a proxy gives all its clients the scope of its server: other users have a proxy of their own",
}
"""For the proxy."""

MCP_MIDDLEWARE: Mapping[Capability, str] = {
    **_OF_A_SERVER,
    "missing identities": "a server in a process or on stdio has its name and folder for an identity",
}
