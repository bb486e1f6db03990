"""What the site shows and no file holds, and what files hold and the site does not show.

mkdocs calls ``on_page_markdown`` for each page while it builds. Only what is made from code belongs here: the commands
of ``coatcheck``, as they describe themselves. What tests read between the blocks is left out.
"""

from __future__ import annotations

import re
import subprocess
import sys

MARK = "<!-- commands -->"
DESCRIBE = [sys.executable, "-m", "typer", "coatcheck.cli.app", "utils", "docs", "--name", "coatcheck"]

_FOR_TESTS = re.compile(r"<!---.*?-->\n", re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the commands where a page asks for them, below its own title, and leave out what is for tests."""
    shown = _FOR_TESTS.sub("", markdown)
    if MARK not in shown:
        return shown
    made = subprocess.run(DESCRIBE, check=True, capture_output=True, encoding="utf-8").stdout  # noqa: S603 - all ours
    return shown.replace(MARK, made.partition("\n")[2].replace("\b", ""))  # what keeps lines apart in a terminal
