"""Convert a preview size in characters, as Haystack's own hook takes it, into options of ``Offloader``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coatcheck import InvalidRequest, Offloader, Settings
from coatcheck.adapting import refuse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("MAX_INLINE_TOKENS", "add_preview", "choose_preview")

PREVIEW_CHARS = 200
"""Characters. The default of Haystack's own hook."""

CHARACTERS_PER_TOKEN = 4

MAX_RESULT_TOKENS = Settings().max_result_tokens
"""The core's default threshold. A preview must stay below it."""

MAX_INLINE_TOKENS = Settings().max_inline_tokens
"""The core's default. A long preview may require a higher threshold, and that raises this limit."""


def choose_preview(
    store: object, chars: int | None, *, tokens: int | None, has_strategies: bool
) -> tuple[int | None, int | None]:
    """Return the size of the preview in characters or in tokens, and None for both if the offloader has its own.

    Raises:
        InvalidRequest: both were given, or one with a ready offloader, or ``chars`` is not an int of at least 0.

    """
    if chars is not None and tokens is not None:
        msg = "preview_chars and preview_tokens set the same thing: pass only one of them"
        raise InvalidRequest(msg)
    if chars is not None and (isinstance(chars, bool) or not isinstance(chars, int) or chars < 0):
        msg = f"preview_chars must be an int of at least 0, not {chars!r}"
        raise InvalidRequest(msg)
    if isinstance(store, Offloader):
        refuse_options(() if chars is None and tokens is None else ("preview_tokens",))
        return None, None
    return (PREVIEW_CHARS if has_strategies and chars is None and tokens is None else chars), tokens


def add_preview(options: Mapping[str, Any], *, chars: int | None, tokens: int | None) -> dict[str, Any]:
    """Return the options with the preview's size added, and with a threshold above a preview given in characters."""
    preview = tokens if chars is None else -(-chars // CHARACTERS_PER_TOKEN)
    if chars is None or preview is None:
        return {"preview_tokens": preview, **options}
    threshold = max(MAX_RESULT_TOKENS, preview + 1)
    limits = {"max_result_tokens": threshold, "max_inline_tokens": max(MAX_INLINE_TOKENS, threshold)}
    return {"preview_tokens": preview, **limits, **options}
