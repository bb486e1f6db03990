"""What files hold and the site does not show: what tests read between the blocks of a page.

mkdocs calls ``on_page_markdown`` for each page while it builds.
"""

from __future__ import annotations

import re

_FOR_TESTS = re.compile(r"<!---.*?-->\n", re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page without what is for tests."""
    return _FOR_TESTS.sub("", markdown)
