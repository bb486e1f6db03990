"""Checks of single values, shared by settings, policies and storages. Nothing here looks at two values together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest

if TYPE_CHECKING:
    from typing import TypeGuard

__all__ = ("is_count", "is_number", "require_flag", "require_positive", "require_tool")


def is_count(value: object, *, least: int = 0) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is an ``int`` or a ``float``, but not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def require_positive(name: str, value: object) -> int:
    """Return ``value`` if it is a whole number above zero.

    Raises:
        InvalidRequest: it is not; the message names the argument.

    """
    if not is_count(value, least=1):
        # "must be positive" is the wording of Strands' own offloader, whose tests expect it.
        msg = f"{name} must be positive, a whole number above 0, not {value!r}"
        raise InvalidRequest(msg)
    return value


def require_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is a boolean. A string such as ``"false"`` is not, and would count as true.

    Raises:
        InvalidRequest: it is not; the message names the argument.

    """
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise InvalidRequest(msg)
    return value


def require_tool(name: object, *, or_none: bool = False) -> None:
    """Check the name of the retrieval tool.

    Raises:
        InvalidRequest: it is not a non-empty ``str``, nor None where ``or_none`` allows that.

    """
    if not (isinstance(name, str) and name) and not (or_none and name is None):
        accepted = "a non-empty str or None" if or_none else "a non-empty str"
        msg = f"retrieval_tool must be {accepted}, not {name!r}"
        raise InvalidRequest(msg, for_host=True)
