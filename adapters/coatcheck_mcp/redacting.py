"""Hide what looks like a secret in command lines and URLs, for messages and lists that others may see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ("without_secrets",)

_SUSPECT = re.compile(
    r"(?i)key|token|secret|pass(?:w|code|phrase|\b|_)|pwd|auth|credential|bearer|header|cookie|signature"
    r"|connection[-_]?string|(?<![a-z])(?:pat|sig)(?![a-z])|(?-i:^-H)"
)
_NAME = re.compile(r"[\w.-]+")
_ASSIGNS = r"[\"']?\s*=\s*|[\"']\s*:\s*|:\s+"
_VALUE_OF_NAME = re.compile(_ASSIGNS)
"""As in ``API_KEY=...``, ``{"token": ...`` or ``X-Api-Key: ...``, but not in ``auth-server:1.2``."""

_VALUE_OF_OPTION = re.compile(rf"{_ASSIGNS}|:|\s+(?![-\s])")
"""As in ``--token:...``, or in ``--token ...`` where a whole script is one word."""

_LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"[?#]")
"""Where the query or the fragment of a URL begins."""

_LONG_WORD = re.compile(r"[A-Za-z0-9]{20,}")
"""If it has a digit, it is most likely a token: names have no digits, or are shorter."""

_HIDDEN = "***"


def without_secrets(words: Collection[str]) -> list[str]:
    """Return the words of a command line, or a URL, without what looks like a secret.

    It hides what follows a suspect name, such as ``--api-key`` or ``API_KEY=``: the rest of the word, or the next word.
    It also hides the login, query and fragment of a URL, and long words of letters and digits.
    """
    shown: list[str] = []
    hides = False
    for word in words:
        is_option = word.startswith("-")
        shown.append(_HIDDEN if hides and not is_option else _without_secrets(word))
        hides = is_option and _NAME.fullmatch(word) is not None and _SUSPECT.search(word) is not None
    return shown


def _without_secrets(word: str) -> str:
    without = _without_login(word)
    query = _QUERY.search(without) if "://" in without else None
    without = f"{without[: query.end()]}{_HIDDEN}" if query else without
    return _LONG_WORD.sub(_hide_token, _without_value(without))


def _without_login(word: str) -> str:
    before, _, rest = word.partition("://")
    login, at, host = rest.rpartition("@")
    if ":" not in login:
        return _LOGIN.sub(f"{_HIDDEN}@", word)
    # What follows the colon may be a password with any character in it. A ? or # may also begin a query: then all the
    # rest is hidden.
    return f"{before}://{_HIDDEN}" if _QUERY.search(login) else f"{before}://{_HIDDEN}{at}{host}"


def _without_value(word: str) -> str:
    """Return a word without the value of its first suspect name and all that follows, in linear time."""
    for name in _NAME.finditer(word):
        value = (_VALUE_OF_OPTION if name[0].startswith("-") else _VALUE_OF_NAME).match(word, name.end())
        if value and value.end() < len(word) and _SUSPECT.search(name[0]):
            return f"{word[: value.end()]}{_HIDDEN}"
    return word


def _hide_token(word: re.Match[str]) -> str:
    return _HIDDEN if any(character.isdigit() for character in word[0]) else word[0]
