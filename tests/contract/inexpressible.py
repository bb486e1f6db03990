"""What a framework cannot express: the scenarios that its contract skips, by name, each with the reason.

One table for each framework, which the docs print. A scenario belongs here only where no agent of that framework could
get into the situation, never because an adapter fails it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("HAYSTACK", "LANGCHAIN", "LANGCHAIN_BY_CALL", "STRANDS")

_BY_CALL = "it sees one call at a time, and a budget for the step needs the whole step"

LANGCHAIN: Mapping[str, str] = {}

LANGCHAIN_BY_CALL: Mapping[str, str] = {**LANGCHAIN, "parallel calls over the step budget": _BY_CALL}
"""For ``create_agent`` and ``offload_tool_calls``; ``offload_tool_node`` sees whole steps."""

_NO_JSON = "Haystack has no JSON content: what a tool returns as a value arrives as JSON text"

HAYSTACK: Mapping[str, str] = {
    "an interrupted call": "Haystack has no interrupts: a tool returns or fails, and a run ends between its steps only",
    "JSON list block": _NO_JSON,
    "JSON object block": _NO_JSON,
    "mixed media": f"one of the blocks is JSON. {_NO_JSON}",
    "read a field": _NO_JSON,
    "read JSON page after page": _NO_JSON,
}

_NAME = "Strands answers a call by such a name itself, before any tool runs: names match [a-zA-Z0-9_-]{1,64}"

_NO_ID = "Strands takes a call without an id for an incomplete one, and drops it"

STRANDS: Mapping[str, str] = {
    "hostile tool name with dots and slashes": _NAME,
    "hostile tool name of 1,400 characters": _NAME,
    "hostile tool name that breaks lines": _NAME,
    "parallel calls over the step budget": _BY_CALL,
    "hostile call id that is empty": _NO_ID,
    "call id that is missing": _NO_ID,
}
