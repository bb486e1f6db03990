"""Previews of offloaded content: one module and one function for each kind of content.

``kinds`` decides which kinds a piece of content may be, and tries them. Each kind has a function that shows the content
within a budget of tokens, or returns None if the content turns out to be of another kind. To add a kind, add a module
and, in ``kinds``, its import, an entry in ``kinds_of`` and one in ``_TYPES``; CONTRIBUTING.md lists the rest. The code
is pure. A preview is valid Unicode and says nothing that the content does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.lazy import lazily
from coatcheck.core.preview.source import LARGE_CHARACTERS, Previewed

if TYPE_CHECKING:
    from coatcheck.core.preview.kinds import preview, search_for_odd

__all__ = ("LARGE_CHARACTERS", "Previewed", "preview", "search_for_odd")

# Loaded when the first result is offloaded: an agent that keeps all its results never needs them.
if not TYPE_CHECKING:  # with it, type checkers would accept a misspelled name
    __getattr__, __dir__ = lazily("coatcheck.core.preview", {"kinds": ("preview", "search_for_odd")})
