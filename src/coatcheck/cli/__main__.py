"""``python -m coatcheck.cli``: the same as ``coatcheck``, for where scripts are not on the path.

Nothing but that call belongs here; the entry point itself is in the package.
"""

from __future__ import annotations

from coatcheck.cli import main

main()
