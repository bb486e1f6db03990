"""JSON that makes up most of a text, with a few words before or after it: ``Found 312 results:``, a fence, a note.

JSON Lines may also have a few lines of something else. A preview shows all this as JSON, and a query reads it, so both
must find the same.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("MAX_OTHER_LINES", "embedded_json")

MAX_OTHER_LINES = 0.2
"""The share of the lines of JSON Lines that may be something else."""

_MIN_SHARE = 0.8
"""The share of the characters that the JSON must have."""

_MAX_AROUND = 1_500
"""Characters before it, and after it."""

_BEGINS = re.compile(r"^(?:[A-Z][^\n:\[{]{0,100}:[ \t])?([\[{])(?=(\s*[\"\[{])?)", re.MULTILINE)
"""It begins a line, or comes after a few words and a colon. The second group is there if a quote or a bracket follows,
as in hardly any line of a log."""

_MAX_BEGINNINGS = 3
"""How many lines that begin with a bracket, such as ``[INFO]``, are tried as the beginning of the JSON."""

_MAX_ENDS = 2
"""How many lines that end with its bracket are tried as its end, since words after it may have one too: ``[next]``."""

_ENDS = {"[": re.compile(r"(\])\s*$", re.MULTILINE), "{": re.compile(r"(\})\s*$", re.MULTILINE)}
_CLOSING = {"[": "]", "{": "}"}
"""The last one of all may have words after it on its line. It is tried too, but with only one beginning that is no line
of a log: each try copies the text."""


def embedded_json(text: str) -> Iterator[tuple[int, int]]:
    """Yield where JSON that makes up most of ``text`` may begin and end, in characters. Whether it is JSON is not said.

    Nothing is yielded if all of ``text`` may be JSON.
    """
    behind, whole = max(0, len(text) - _MAX_AROUND), len(text.strip())
    last = 0
    for opening in islice(_BEGINS.finditer(text, 0, _MAX_AROUND), _MAX_BEGINNINGS):
        start, ends = opening.start(1), [found.end(1) for found in _ENDS[opening[1]].finditer(text, behind)]
        tried = ends[-_MAX_ENDS:]
        if opening[2] and not last:
            last = text.rfind(_CLOSING[opening[1]], behind) + 1
            tried.append(last)
        yield from ((start, end) for end in dict.fromkeys(tried) if _MIN_SHARE * len(text) <= end - start < whole)
