"""Tells base64 from text by its digits, and by the shares of upper case, lower case and decimal digits."""

from __future__ import annotations

import re

__all__ = ("BEGINS_DATA", "MIN_CHARACTERS", "SHOWN", "is_base64", "is_base64_string")

MIN_CHARACTERS = 512
"""Shorter data cannot be told from a long name or key."""

SHOWN = 64
"""Characters of the data that are shown. They tell what it is, and nobody reads the rest."""

BEGINS_DATA = "base64,"
"""What comes before the data in a data URL."""

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{60,}\r?\n)*[A-Za-z0-9+/_-]*={0,2}\s*")
_MIN_OF_EACH = 0.05
"""The least share of each of upper case, lower case and decimal digits. In base64 they have about 40%, 40% and 16%."""

_URL = re.compile(rf"data:[\w./+;=-]*;{BEGINS_DATA}")
_LOOKED_AT = 256
"""Characters tested at each end of a string."""


def is_base64(text: str) -> bool:
    """Return whether ``text`` is base64, in one line or several. The first of several may be cut, and is not tested."""
    if not _has_only_digits(text):
        return False
    kinds = (sum(map(str.isupper, text)), sum(map(str.islower, text)), sum(map(str.isdigit, text)))
    return min(kinds) >= _MIN_OF_EACH * len(text)


def is_base64_string(text: str) -> bool:
    """Return whether a long string, perhaps a data URL, begins and ends as base64 does. The middle is not tested.

    Both ends are tested because words before or after the data would be hidden with it.
    """
    if len(text) < MIN_CHARACTERS:
        return False
    url = _URL.match(text[:_LOOKED_AT])
    start = url.end() if url else 0
    # Data may end with zeros, so the shares of the kinds of digits tell nothing there.
    return is_base64(text[start : start + _LOOKED_AT]) and _has_only_digits(text[-_LOOKED_AT:])


def _has_only_digits(text: str) -> bool:
    return _BASE64.fullmatch(text.partition("\n")[2] if "\n" in text[:100] else text) is not None
