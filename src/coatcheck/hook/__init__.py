"""``coatcheck hook``: what a client such as Claude Code runs after each of its tools, to replace a large result.

A client waits for a new process at every tool call. So the decision is made by bytes, and only a part of the standard
library is imported before it: no command line, no vocabulary. ``answer`` is the entry point, ``shapes`` knows where the
strings of a result are, and ``options`` what users may set.

The names below are for adapters of clients with the same hooks in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.lazy import lazily

if TYPE_CHECKING:
    from coatcheck.hook.answer import answer_with, texts_to_offload
    from coatcheck.hook.command import program, split_hook
    from coatcheck.hook.options import BYTES_PER_TOKEN
    from coatcheck.hook.shapes import Path, replaced, without_copy

__all__ = (
    "BYTES_PER_TOKEN",
    "Path",
    "answer_with",
    "program",
    "replaced",
    "split_hook",
    "texts_to_offload",
    "without_copy",
)

if not TYPE_CHECKING:  # with it, type checkers would take a misspelled name for a real one
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "answer": ("answer_with", "texts_to_offload"),
            "command": ("program", "split_hook"),
            "options": ("BYTES_PER_TOKEN",),
            "shapes": ("Path", "replaced", "without_copy"),
        },
    )
