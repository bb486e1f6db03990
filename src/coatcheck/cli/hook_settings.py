"""Reads a ``coatcheck.toml`` for ``coatcheck hook``: the same settings and rules as for ``coatcheck mcp``.

Loaded only if the hook names a file and the result may be large: it takes as long as all the rest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.policy import Always, Never
from coatcheck.hook.options import BYTES_PER_TOKEN
from coatcheck.hook.shapes import MIN_BYTES, OF_SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.hook.options import Options
    from coatcheck_mcp.config import Config, ToolRule

__all__ = ("checked_file", "options_for")

_BETWEEN = "__"
"""Separates a server's name from its tool's name."""


def checked_file(path: str, *, has_storage: bool) -> str:
    """Return the absolute path of a file that the hook can use.

    Raises:
        InvalidRequest: the file cannot be read, or is wrong; the message names file, line and key. Or its storage is
            not a folder, and the command line names none.

    """
    from coatcheck_mcp.config import load  # of an adapter

    config = load(path, variables=None)
    if "://" in config.storage and not has_storage:
        msg = f"{config.path}: storage is {config.storage!r}, and the hook stores in a folder; add --storage=FOLDER"
        raise InvalidRequest(msg)
    return str(config.path)


def options_for(options: Options, tool: str) -> Options:
    """Return the options for a tool: those of the command line, then those of the file that they may name.

    Raises:
        InvalidRequest: the file cannot be read, or is wrong. The hook then goes on with ``options``.

    """
    if not options.config:
        return options
    from coatcheck_mcp.config import load  # of an adapter

    config = load(options.config, variables=None)
    said: dict[str, Any] = {
        "max_inline_tokens": config.settings.max_inline_tokens,
        "max_age": config.max_age_seconds,
        "max_bytes": config.max_bytes,
        "max_scope_bytes": config.max_scope_bytes,
        "preview_tokens": config.settings.preview_tokens,
        **({"storage": config.storage} if "storage" in config.given else {}),
    }
    found = replace(options, **{name: value for name, value in said.items() if name not in options.given})
    if "max_result_tokens" in options.given:
        return found
    return replace(found, max_result_tokens=_threshold(config.rule_of_any({*_names(tool)}), config, found))


def _names(tool: str) -> Iterator[str]:
    """Yield the names of a tool in the file: its own and, for an MCP server's tool, also without and with the server's.

    Where the server's name ends is unknown, since both names may contain ``__``. So every split counts.
    """
    yield tool
    if tool.startswith(OF_SERVER):
        whole = tool.removeprefix(OF_SERVER)
        for found in re.finditer(f"(?<=.)(?={_BETWEEN}.)", whole):
            server, own = whole[: found.start()], whole[found.start() + len(_BETWEEN) :]
            yield from (own, f"{server}.{own}")


def _threshold(rule: ToolRule | None, config: Config, options: Options) -> int:
    threshold: int
    match rule:
        case None:
            threshold = config.settings.max_result_tokens
        case Never():
            threshold = options.max_inline_tokens
        case Always():
            threshold = MIN_BYTES // BYTES_PER_TOKEN  # a result smaller than its placeholder stays
        case _:
            threshold = rule.threshold
    return threshold
