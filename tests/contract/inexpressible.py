"""What a framework cannot express: the scenarios that its contract skips, by name, each with the reason.

One table for each framework, which the docs print. A scenario belongs here only where no agent of that framework could
get into the situation, never because an adapter fails it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("LANGCHAIN", "STRANDS")

LANGCHAIN: Mapping[str, str] = {}

_NAME = "Strands answers a call by such a name itself, before any tool runs: names match [a-zA-Z0-9_-]{1,64}"

STRANDS: Mapping[str, str] = {
    "hostile tool name with dots and slashes": _NAME,
    "hostile tool name of 1,400 characters": _NAME,
    "hostile tool name that breaks lines": _NAME,
    "hostile call id that is empty": "Strands takes a call without an id for an incomplete one, and drops it",
}
