"""What users may set of the hook, on its command line. Nothing here ever ends the process: a client takes that as a no.

Not typer, nor argparse: the first takes longer to load than the whole hook may take, the second exits with 2, which
Claude Code shows to the model as an error of its call.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ("BYTES_PER_TOKEN", "Options", "read_options")

BYTES_PER_TOKEN = 4
"""As ``ByteCounter`` counts. ``coatcheck.core.tokens`` is not loaded for results that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of the hook."""

    storage: str = "~/.coatcheck/hook"
    """The folder; of its own, since the limits below delete what is old there."""

    max_result_tokens: int = 2_500
    """A result with more of them leaves; a token is four bytes here. As ``MAX_RESULT_TOKENS``."""

    max_inline_tokens: int = 50_000
    """What a result may take if it could not be stored. As ``MAX_INLINE_TOKENS``."""

    max_age: int = 7 * 86_400
    """Seconds without use after which a content is removed."""

    max_bytes: int = 2_000_000_000
    """What the folder may hold."""

    retrieval_tool: str = ""
    """The name of an MCP tool that reads back, for clients without a shell; empty: ``coatcheck get``."""

    @property
    def limit(self) -> int:
        """The bytes that a result may have to stay."""
        return BYTES_PER_TOKEN * self.max_result_tokens

    @property
    def hard_limit(self) -> int:
        """The bytes that a result may have to stay if it could not be stored."""
        return BYTES_PER_TOKEN * max(self.max_inline_tokens, self.max_result_tokens)

    @property
    def folder(self) -> str:
        """The folder, absolute."""
        return os.path.abspath(os.path.expanduser(self.storage))  # noqa: PTH100, PTH111 - pathlib is not loaded yet


def read_options(words: list[str]) -> tuple[Options, list[str]]:
    """Return the options that the words of a command line are, and what is wrong with the others, which do not count.

    ``--max-bytes=N`` and ``--max-bytes N`` are the same.
    """
    chosen: dict[str, str | int] = {}
    wrong = []
    left = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while left:
        word = left.pop(0)
        name = word.removeprefix("--").replace("-", "_")
        default = getattr(Options(), name, None) if name in Options.__slots__ else None
        if not word.startswith("--") or default is None or not left:
            wrong.append(f"{word!r} is no option of the hook, or lacks its value")
            continue
        value = left.pop(0)
        if isinstance(default, str):
            chosen[name] = value
        elif value.isdecimal() and int(value) > 0:
            chosen[name] = int(value)
        else:
            wrong.append(f"{word} must be a whole number above 0, not {value!r}")
    return Options(**chosen), wrong  # type: ignore[arg-type]  # each by its default's type
