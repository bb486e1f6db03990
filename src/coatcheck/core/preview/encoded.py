"""How base64 is told from text: by its digits, and by how many of them are of each kind."""

from __future__ import annotations

import re

__all__ = ("BEGINS_DATA", "MIN_CHARACTERS", "SHOWN", "is_base64", "is_base64_string")

MIN_CHARACTERS = 512
"""Shorter data is not told from a long name or key."""

SHOWN = 64
"""Characters that tell what the data is. Nobody reads the rest."""

BEGINS_DATA = "base64,"
"""Where the data in a data URL begins."""

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{60,}\r?\n)*[A-Za-z0-9+/_-]*={0,2}\s*")
_MIN_OF_EACH = 0.05
"""The share that upper case, lower case and digits must each have. In base64 they have about 40%, 40% and 16%."""

_URL = re.compile(rf"data:[\w./+;=-]*;{BEGINS_DATA}")
_LOOKED_AT = 256
"""Characters at each end of a string."""


def is_base64(text: str) -> bool:
    """Return whether a text, or each line of it but a cut first one, has the digits of base64 and nothing else."""
    if not _has_only_digits(text):
        return False
    kinds = (sum(map(str.isupper, text)), sum(map(str.islower, text)), sum(map(str.isdigit, text)))
    return min(kinds) >= _MIN_OF_EACH * len(text)


def is_base64_string(text: str) -> bool:
    """Return whether a long string, perhaps a data URL, begins and ends as base64 does; the middle is not looked at.

    Words before or after the data would be hidden with it.
    """
    if len(text) < MIN_CHARACTERS:
        return False
    url = _URL.match(text[:_LOOKED_AT])
    start = url.end() if url else 0
    # Data may end with zeros, so how many digits are of each kind tells nothing there.
    return is_base64(text[start : start + _LOOKED_AT]) and _has_only_digits(text[-_LOOKED_AT:])


def _has_only_digits(text: str) -> bool:
    return _BASE64.fullmatch(text.partition("\n")[2] if "\n" in text[:100] else text) is not None
