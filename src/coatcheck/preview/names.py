"""The names that stand in what is not shown: identifiers, paths and capitalised words, as terms to search for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.tokens import TokenCounter

__all__ = ("names_in",)

_LOOKED_AT = 20_000
"""Characters; no budget holds the names of more."""

_LONGEST = 60
_NAME = re.compile(
    r"(?<![\w./~@:+-])(?:[A-Za-z_./~][\w./~@:+-]*[\d_./@:-][\w./~@:+-]*\w|[A-Z]\w*[^\W\d_])", re.ASCII
)
_BEGINS_A_SENTENCE = frozenset(
    "All Also And Any Are Been But Can Did Does Each For From Had Has Have Here How Into Its May More Most Not Now One"
    " Our She Some Such Than That The Their Then There These They This Those Was Were What When Where Which While Who"
    " Why Will With You Your".split()
)


def names_in(hidden: str, shown: str, budget: int, counter: TokenCounter) -> str:
    """Return names of ``hidden`` that do not stand in ``shown``, in their order and within ``budget`` tokens."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(hidden, 0, _LOOKED_AT):
        name = match.group()
        if len(name) > 2 and len(name) <= _LONGEST and name not in _BEGINS_A_SENTENCE and name not in shown:
            found[name] = None
            if len(found) > budget:
                break
    names = " ".join(found)
    kept = counter.head(names, max(0, budget))
    return kept if kept == names else kept.rpartition(" ")[0]
