"""Marks that providers and hosts put on a tool call: that code made it, and that its result must stay.

For adapters. Each framework has its own place for these marks; the values are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

__all__ = ("asks_to_keep", "is_called_by_code", "is_for_code_only")

_CODE_EXECUTION = "code_execution"
"""Anthropic's name for code as a caller, without the date that follows."""

_CODE = frozenset({"program", "programmatic"})
"""OpenAI's names: as a caller, and in ``allowed_callers``."""


def is_called_by_code(caller: object) -> bool:
    """Return whether a call's ``caller`` is code in a provider's container: its result never enters the context."""
    return _is_code(caller.get("type") if isinstance(caller, Mapping) else None)


def is_for_code_only(allowed_callers: object) -> bool:
    """Return whether a tool's ``allowed_callers`` allow code only."""
    if isinstance(allowed_callers, str) or not isinstance(allowed_callers, Collection):
        return False
    return bool(allowed_callers) and all(map(_is_code, allowed_callers))


def asks_to_keep(holder: object) -> bool:
    """Return whether ``holder``, such as a message's metadata, holds ``"coatcheck": "keep"``."""
    return isinstance(holder, Mapping) and holder.get("coatcheck") == "keep"


def _is_code(name: object) -> bool:
    return isinstance(name, str) and (name in _CODE or name.startswith(_CODE_EXECUTION))
