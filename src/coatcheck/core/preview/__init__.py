"""Previews of offloaded content: one function, and one module for each kind of content.

``kinds`` says which kinds a content may be. Each kind has a function that shows a content within a budget of tokens, or
returns None if the content turns out not to be of that kind. Then the next kind is tried, and plain text last. The same
happens if a kind raises, or takes more work than ``work`` allows. To add a kind, add a module,
and in ``kinds`` its import, an entry in ``kinds_of`` and one in ``_TYPES``; CONTRIBUTING.md lists what else.
Pure; a preview is valid Unicode and says nothing that the content does not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.forks import loading
from coatcheck.core.preview.source import Previewed, Trouble, ends_within
from coatcheck.core.preview.work import Metered, TooMuchWork
from coatcheck.core.tokens import CountedOnce

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

    from coatcheck.core.preview.kinds import Show
    from coatcheck.core.tokens import TokenCounter

__all__ = ("LARGE_CHARACTERS", "Previewed", "preview", "search_for_odd")


LARGE_CHARACTERS = 262_144
"""``search_for_odd`` searches a longer text in pieces, before the preview is made. ``preview`` searches a shorter
one itself."""


@cache
def _kinds() -> ModuleType:
    # Loaded with the first result that leaves: an agent that keeps all its results never needs them.
    with loading:
        from coatcheck.core.preview import kinds  # noqa: PLC0415
    return kinds


def search_for_odd(content: Previewed) -> Generator[None, None, Previewed]:
    """Return ``content`` with what is odd in it: the lines of trouble of a log, the odd ones of records or of text.

    Yields after each piece of the search. Never raises: a search that fails is one of ``content.failures``.
    """
    try:
        return (yield from _searched(content))
    except Exception as error:  # noqa: BLE001 - as in ``preview``
        content.failures["search_for_odd"] = error
        return content


def _searched(content: Previewed) -> Generator[None, None, Previewed]:
    kinds = _kinds()
    shows = kinds.kinds_of(content)
    if shows[0] is kinds.preview_log:
        trouble = Trouble()
        yield from kinds.find_trouble(trouble, content.text)
        return replace(content, trouble=trouble)
    for search in filter(None, map(kinds.SEARCHES.get, shows)):
        found = kinds.Found(by=search)
        yield from search(found, content)
        if found.end:
            return replace(content, found=found)
    return content


def preview(content: Previewed, counter: TokenCounter, *, budget: int) -> str:
    """Return what to show of ``content``, at most ``budget`` tokens by ``counter``; ``""`` where nothing useful fits.

    Never raises. A text that fits is shown whole. Of any other, the kind that the content type declares is tried first.
    What does not look like it, or is declared as nothing but text, decides on its kind itself; when in doubt, it is
    text. A kind that needs too much work is left out, and so is one that raises; ``content.failures`` has those.
    Where even text raises, as with a counter that does, head and tail are shown in as many bytes as ``budget`` has
    tokens.
    """
    if budget <= 0:
        return ""
    once = counter if isinstance(counter, CountedOnce) else CountedOnce(counter)
    kinds, metered = _kinds(), Metered(once)
    shows: list[Show] = []
    # A preview is a convenience: no fault in one may cost the result that it is made of.
    try:
        if content.exceeds < budget and not once.exceeds(content.text, budget):
            return to_valid_unicode(content.text)
        shows = kinds.kinds_of(content)
    except Exception as error:  # noqa: BLE001 - MemoryError and RecursionError are among them
        content.failures["kinds_of"] = error
    for show in shows:
        if show.__name__ in content.failures:
            continue
        try:
            shown = show(content, budget, once if show in kinds.LITTLE_WORK else metered)
        except TooMuchWork:
            continue
        except Exception as error:  # noqa: BLE001 - as above
            content.failures[show.__name__] = error
            continue
        if shown is not None:
            return to_valid_unicode(shown)
    return to_valid_unicode(ends_within(content.text, budget))
