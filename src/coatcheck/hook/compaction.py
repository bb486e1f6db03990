"""After a compaction: the references of what a session stored, for a model whose placeholders a summary replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.arguments import PROPOSED
from coatcheck.core.notice import MAX_KEPT, kept_references
from coatcheck.hook.command import get_command, list_command
from coatcheck.hook.storing import make_offloader

if TYPE_CHECKING:
    from coatcheck.hook.options import Options

__all__ = ("references_line",)

_HOW = " | ".join(PROPOSED.values())
"""The options of ``coatcheck get``, to choose from."""


def references_line(session: str, *, options: Options) -> str:
    """Return one line with the newest references of a session, oldest first; empty if it stored nothing.

    Raises:
        StorageError: the folder cannot be read.

    """
    page = make_offloader(options).list(scope=session)
    newest = [content.reference for content in page.contents[:MAX_KEPT]]
    if options.retrieval_tool:
        reader, lister = options.retrieval_tool, f"{options.retrieval_tool}()"
    else:
        reader = f"`{get_command(options.folder, session)} REFERENCE {_HOW}`"
        lister = f"`{list_command(options.folder, session)}`"
    more = len(page.contents) > MAX_KEPT or page.after is not None
    return kept_references(newest[::-1], more=more, reader=reader, lister=lister)
