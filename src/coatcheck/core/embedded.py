"""Find JSON that makes up most of a string, with a few words around it: ``Found 312 results:``, a fence, a note.

JSON Lines may also contain a few other lines. A preview shows all this as JSON and a query reads it, so both must find
the same JSON.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("MAX_OTHER_LINES", "embedded_json")

MAX_OTHER_LINES = 0.2
"""The largest share of lines in JSON Lines that may be something else."""

_MIN_SHARE = 0.8
"""The smallest share of the characters that the JSON must have."""

_MAX_AROUND = 1_500
"""The most characters before the JSON, and after it."""

_BEGINS = re.compile(r"^(?:[A-Z][^\n:\[{]{0,100}:[ \t])?([\[{])(?=(\s*[\"\[{])?)", re.MULTILINE)
"""Where JSON may begin: at the start of a line, or after a few words and a colon. The second group matches if a quote
or bracket follows, as in hardly any log line."""

_MAX_BEGINNINGS = 3
"""The most lines with a bracket at their start, such as ``[INFO]``, that are tried as the beginning of the JSON."""

_MAX_ENDS = 2
"""The most lines with the closing bracket at their end that are tried as the end of the JSON. Words after it may end
with one too: ``[next]``."""

_ENDS = {"[": re.compile(r"(\])\s*$", re.MULTILINE), "{": re.compile(r"(\})\s*$", re.MULTILINE)}
_CLOSING = {"[": "]", "{": "}"}
"""The very last closing bracket may have words after it on its line. It is tried too, but only with one beginning that
does not look like a log line: each try copies the text."""


def embedded_json(text: str) -> Iterator[tuple[int, int]]:
    """Yield where JSON that makes up most of ``text`` may begin and end, in characters. The caller must parse it.

    Yield nothing if all of ``text`` may be JSON.
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
