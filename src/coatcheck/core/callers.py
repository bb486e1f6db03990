"""What providers and hosts say of one tool call: that code made it, and that its result is to be kept.

Only reading these two belongs here, for adapters: each framework has its own place for them, and the values are the
same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

__all__ = ("asks_to_keep", "is_called_by_code", "is_for_code_only")

_CODE_EXECUTION = "code_execution"
"""Anthropic's name for code as a caller; a date follows."""

_CODE = frozenset({"program", "programmatic"})
"""OpenAI's: of a caller, and among ``allowed_callers``."""


def is_called_by_code(caller: object) -> bool:
    """Return whether a call's ``caller`` is code in a provider's container: its result never enters the context."""
    return _is_code(caller.get("type") if isinstance(caller, Mapping) else None)


def is_for_code_only(allowed_callers: object) -> bool:
    """Return whether a tool's ``allowed_callers`` name code and nobody else."""
    if isinstance(allowed_callers, str) or not isinstance(allowed_callers, Collection):
        return False
    return bool(allowed_callers) and all(map(_is_code, allowed_callers))


def asks_to_keep(holder: object) -> bool:
    """Return whether a mapping of the framework's holds ``"coatcheck": "keep"``."""
    return isinstance(holder, Mapping) and holder.get("coatcheck") == "keep"


def _is_code(name: object) -> bool:
    return isinstance(name, str) and (name in _CODE or name.startswith(_CODE_EXECUTION))
