"""Character references of HTML and XML: ``&amp;`` and ``&#228;`` as the characters that they stand for."""

from __future__ import annotations

import html
import re

__all__ = ("UNITS_OF_A_REFERENCE", "unescaped")

UNITS_OF_A_REFERENCE = 60
"""Work of one reference. An unknown name of 32 letters takes twice as much, ``&amp;`` a third."""

_NO_CHARACTER = re.compile(r"&#0*[1-9][0-9]{7,};?")
"""A number beyond the last character. ``html.unescape`` raises ``ValueError`` if Python refuses to read it."""


def unescaped(text: str) -> str:
    """Return ``text`` with its character references resolved as browsers do; U+FFFD for what is not a character."""
    return text if "&" not in text else html.unescape(_NO_CHARACTER.sub("\ufffd", text))
