"""The model's arguments as one validated request.

``arguments`` reads each value; here they are put together, and combinations without a meaning are refused. The rest of
the package trusts a ``Request``. Nothing here looks at content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coatcheck.core.arguments import DEFAULT_CONTEXT_LINES, SELECTORS
from coatcheck.core.errors import InvalidRequest

__all__ = ("Request", "parse_request")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Validated selectors. At most one of ``query`` and (``pattern``, ``line_range``) is given."""

    pattern: str | None = None
    """A regular expression, not yet compiled."""

    line_range: tuple[int, int] | None = None
    """First and last line, both included, from 1; the last may be ``LAST_LINE``."""

    context_lines: int = DEFAULT_CONTEXT_LINES
    """Lines shown around each match."""

    query: str | None = None
    """A JMESPath expression, not yet parsed."""

    offset: int | None = None
    """Characters to skip; negative counts from the end."""

    @property
    def selects_nothing(self) -> bool:
        """Whether the content as a whole is asked for, from its start on."""
        return self.pattern is None and self.line_range is None and self.query is None and not self.offset


def parse_request(**selectors: object) -> Request:
    """Return the request that the model's arguments mean. None and the empty string mean "not given".

    Raises:
        InvalidRequest: a value has no meaning, or two exclude each other. The message says what is accepted.

    """
    values: dict[str, Any] = {name: SELECTORS[name].parse(name, value) for name, value in selectors.items()}
    request = Request(**values)
    if request.query is not None and (request.pattern is not None or request.line_range is not None):
        msg = "query cannot be combined with pattern or line_range: give either query or those two"
        raise InvalidRequest(msg)
    if request.offset and request.line_range is not None and request.pattern is None:
        msg = "offset counts characters and line_range counts lines: give one of the two, or add a pattern"
        raise InvalidRequest(msg)
    return request
