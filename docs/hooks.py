"""Removes from the site what only tests read: the comments ``<!--- ... -->`` between the blocks of a page.

mkdocs calls ``on_page_markdown`` for each page while it builds.
"""

from __future__ import annotations

import re

_FOR_TESTS = re.compile(r"<!---.*?-->\n", re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page without the comments that only tests read."""
    return _FOR_TESTS.sub("", markdown)
