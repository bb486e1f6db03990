"""What a framework cannot express: the scenarios that its contract skips, by name, each with the reason.

One table for each framework, which the docs print. A scenario belongs here only where no agent of that framework could
get into the situation, never because an adapter fails it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("LANGCHAIN",)

LANGCHAIN: Mapping[str, str] = {}
