"""What users may set on the hook's command line. Nothing here ends the process: a client would take that for a refusal.

typer and argparse were rejected: typer takes longer to load than the whole hook may take, and argparse exits with 2,
which Claude Code shows to the model as an error of its call.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from coatcheck.core.forks import loading

__all__ = ("BYTES_PER_TOKEN", "DEFAULT_STORAGE", "OPTIONS", "Options", "read_options", "split_options")

_FORMS = {
    "max_age": "a number with s, m, h, d or w, such as 7d",
    "max_bytes": "a number of bytes, or one with KB, MB, GB or TB, such as 2GB",
}

DEFAULT_STORAGE = "~/.coatcheck/hook"

BYTES_PER_TOKEN = 4
"""The same as in ``ByteCounter``; ``coatcheck.core.tokens`` is not loaded for results that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of the hook."""

    storage: str = DEFAULT_STORAGE
    """The folder. The hook has its own, since the limits below delete what is old there."""

    max_result_tokens: int = 2_500
    """A result with more tokens leaves; a token is four bytes here. Same as ``MAX_RESULT_TOKENS``."""

    max_inline_tokens: int = 50_000
    """The most tokens of a result that could not be stored. Same as ``MAX_INLINE_TOKENS``."""

    max_age: float | None = 7 * 86_400
    """Seconds without use after which a content is removed. None: never."""

    max_bytes: int | None = 2_000_000_000
    """The most bytes that the folder may hold. None: no limit."""

    retrieval_tool: str = ""
    """The name of an MCP tool that reads back, for clients without a shell; empty: ``coatcheck get``."""

    config: str = ""
    """The path of a ``coatcheck.toml``, whose settings replace the defaults here; empty: no file."""

    preview_tokens: int | None = None
    """The budget of a preview. Only a file can set it. None: the library's default."""

    max_scope_bytes: int | None = None
    """The most bytes that a session may hold. Only a file can set it."""

    given: frozenset[str] = field(default=frozenset(), compare=False)
    """The fields that the command line set, perhaps to the default: a file does not change these."""

    @property
    def limit(self) -> int:
        """The most bytes of a result that stays."""
        return BYTES_PER_TOKEN * self.max_result_tokens

    @property
    def hard_limit(self) -> int:
        """The most bytes of a result that stays if it could not be stored."""
        return BYTES_PER_TOKEN * max(self.max_inline_tokens, self.max_result_tokens)

    @property
    def folder(self) -> str:
        """The folder, absolute; the default one if ``storage`` is a URL, or relative to a folder that was deleted.

        Without a home, it cannot be created: otherwise a folder named ``~`` would be created where the client runs.
        """
        try:
            return _whole(self._expanded)
        except OSError:
            return _whole(os.path.expanduser(DEFAULT_STORAGE))  # noqa: PTH111 - pathlib is not loaded yet

    @property
    def has_home(self) -> bool:
        """Whether the home directory that the folder is in is known, if it is in one."""
        return not self._expanded.startswith("~")

    @property
    def _expanded(self) -> str:
        return os.path.expanduser(self.storage if self.has_folder else DEFAULT_STORAGE)  # noqa: PTH111 - as above

    @property
    def has_folder(self) -> bool:
        """Whether ``storage`` is a folder. The hook stores nowhere else, since a client would wait for it."""
        return "://" not in self.storage


OPTIONS = tuple(
    f"--{name.replace('_', '-')}"
    for name in Options.__slots__
    if name not in {"preview_tokens", "max_scope_bytes", "given"}
)
"""The options as they are typed."""


def read_options(words: list[str]) -> tuple[Options, list[str]]:
    """Return the options that a command line sets, and what is wrong with the others, which are ignored."""
    given, wrong = split_options(words)
    chosen: dict[str, str | int] = {}
    for option, value in given.items():
        name = option.removeprefix("--").replace("-", "_")
        if isinstance(getattr(Options(), name), str):
            chosen[name] = value
        elif number := _number(name, value):
            chosen[name] = number
        else:
            wrong.append(f"{option} must be {_FORMS.get(name, 'a whole number above 0')}, not {value!r}")
    return Options(**chosen, given=frozenset(chosen)), wrong  # type: ignore[arg-type]  # each by its default's type


def split_options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the value of each option as it was typed, and what is wrong with the other words.

    ``--max-bytes=N`` and ``--max-bytes N`` are the same. If an option is given twice, the last one counts.
    """
    given: dict[str, str] = {}
    wrong = []
    left = words[::-1]
    while left:
        word = left.pop()
        option, equals, value = word.partition("=")
        if not equals and word.startswith("--") and left and not left[-1].startswith("--"):
            value, equals = left.pop(), " "
        if not word.startswith("--"):
            wrong.append(f"{word!r} is not an option of the hook: options begin with --")
        elif option not in OPTIONS:
            wrong.append(f"{option!r} is not an option of the hook; the options are {', '.join(OPTIONS)}")
        elif not equals or not value:
            wrong.append(f"{option} lacks its value")
        else:
            given[option] = value
    return given, wrong


def _whole(expanded: str) -> str:
    """Return the absolute path; without a home directory, one that cannot be created."""
    at_home = not expanded.startswith("~")
    return os.path.abspath(expanded if at_home else os.path.join(os.devnull, expanded))  # noqa: PTH100, PTH118 - as above


def _number(name: str, value: str) -> int:
    """Parse an amount as people write it; return 0 if it is not an amount."""
    try:
        if name not in _FORMS:
            return int(value) if value.isascii() and value.isdecimal() else 0
        with loading:
            from coatcheck.core.amounts import parse_bytes, parse_seconds  # noqa: PLC0415 - for these options only

        return int((parse_bytes if name == "max_bytes" else parse_seconds)(name, value))
    except (ValueError, OverflowError):  # InvalidRequest is a ValueError
        return 0
