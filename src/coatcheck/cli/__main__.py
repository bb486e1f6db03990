"""``python -m coatcheck.cli``: the same as ``coatcheck``."""

from __future__ import annotations

from coatcheck.cli import main

main()
