"""``python -m coatcheck``: the same as ``coatcheck``, for use where scripts are not on the path, as in MCP clients.

Only that call belongs here; the entry point is in ``cli``.
"""

from __future__ import annotations

from coatcheck.cli import main

__all__ = ("main",)

if __name__ == "__main__":
    main()
