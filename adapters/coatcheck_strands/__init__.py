"""coatcheck for Strands Agents: oversized tool results leave the conversation, one tool reads them back.

Only the front door belongs here: the public names, each loaded when it is first used, and the one place that says which
extra to install. The names are those of ``strands.vended_plugins.context_offloader``, so that one changed import is
enough, and ``offloaded_references``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

try:
    import strands as _strands  # noqa: F401 - all else is loaded when it is first used
except ImportError as exc:
    _msg = 'coatcheck_strands needs strands-agents. Install it with: pip install "coatcheck[strands]"'
    raise ImportError(_msg) from exc

if TYPE_CHECKING:
    from coatcheck_strands.convert import offloaded_references
    from coatcheck_strands.file import FileStorage
    from coatcheck_strands.memory import InMemoryStorage
    from coatcheck_strands.plugin import ContextOffloader
    from coatcheck_strands.protocols import ShouldOffload, Storage
    from coatcheck_strands.s3 import S3Storage

__all__ = (
    "ContextOffloader",
    "FileStorage",
    "InMemoryStorage",
    "S3Storage",
    "ShouldOffload",
    "Storage",
    "offloaded_references",
)

_MODULE_OF = {
    "ContextOffloader": "plugin",
    "FileStorage": "file",
    "InMemoryStorage": "memory",
    "S3Storage": "s3",
    "ShouldOffload": "protocols",
    "Storage": "protocols",
    "offloaded_references": "convert",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
