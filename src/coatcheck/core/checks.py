"""The checks of a value alone that settings, policies and storages have in common."""

from __future__ import annotations

from coatcheck.core.errors import InvalidRequest

__all__ = ("is_count", "require_flag", "require_positive")


def is_count(value: object, *, least: int = 0) -> bool:
    """Return whether ``value`` is a whole number of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def require_positive(name: str, value: object) -> int:
    """Return ``value`` if it is a whole number above zero.

    Raises:
        InvalidRequest: it is not; the message names the argument.

    """
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        # Also in the words of Strands' own offloader, whose tests expect them.
        msg = f"{name} must be positive, a whole number above 0, not {value!r}"
        raise InvalidRequest(msg)
    return value


def require_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False. A str such as ``"false"`` is neither, and would count as true.

    Raises:
        InvalidRequest: it is not; the message names the argument.

    """
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise InvalidRequest(msg)
    return value
