"""``python -m coatcheck.cli``: the same as ``coatcheck``, for environments whose scripts are not on the path.

Only that call belongs here; the entry point itself is in the package.
"""

from __future__ import annotations

from coatcheck.cli import main

main()
