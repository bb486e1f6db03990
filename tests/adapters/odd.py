"""Parts of results with odd values in each field, for the tests of all adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ENCODED", "LIMIT", "MAX_TOKENS", "odd_forms")

MAX_TOKENS = 2_500
"""The offloader's hard limit, ``max_inline_tokens``: so low that a short text exceeds it."""

LIMIT = 4 * MAX_TOKENS
"""Characters. The most that a result may then have in a conversation."""

ENCODED = "iVBORw0KGgoA"
"""The first bytes of a PNG, in base64."""

_LONG = "too long, " * (LIMIT // 8)
_VALUES: tuple[Any, ...] = (None, 7, True, [], {}, "", _LONG, [_LONG], {"x": _LONG})
_MISSING = object()


def odd_forms(shape: Any) -> Iterator[Any]:  # noqa: ANN401 - a JSON value
    """Yield copies of a part, each with one field missing, of another type or too long."""
    for path in _paths(shape):
        yield from (_with(shape, path, value) for value in (*_VALUES, *([_MISSING] if path else [])))


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    yield above
    for key, held in value.items() if isinstance(value, dict) else ():
        yield from _paths(held, (*above, key))


def _with(value: Any, path: tuple[Any, ...], new: object) -> Any:  # noqa: ANN401 - as above
    if not path:
        return new
    changed = {**value, path[0]: _with(value[path[0]], path[1:], new)}
    return {key: held for key, held in changed.items() if held is not _MISSING}
