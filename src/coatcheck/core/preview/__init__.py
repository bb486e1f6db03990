"""Previews of offloaded content: one function, and one module for each kind of content.

``kinds`` says which kinds a content may be, and tries them. Each kind has a function that shows a content within a
budget of tokens, or returns None if the content turns out not to be of that kind. To add a kind, add a module, and in
``kinds`` its import, an entry in ``kinds_of`` and one in ``_TYPES``; CONTRIBUTING.md lists what else. Pure; a preview
is valid Unicode and says nothing that the content does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.lazy import lazily
from coatcheck.core.preview.source import LARGE_CHARACTERS, Previewed

if TYPE_CHECKING:
    from coatcheck.core.preview.kinds import preview, search_for_odd

__all__ = ("LARGE_CHARACTERS", "Previewed", "preview", "search_for_odd")

# Loaded with the first result that is offloaded: an agent that keeps all its results never needs them.
if not TYPE_CHECKING:  # with it, type checkers would take a misspelled name for a real one
    __getattr__, __dir__ = lazily("coatcheck.core.preview", {"kinds": ("preview", "search_for_odd")})
