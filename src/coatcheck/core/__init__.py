"""The pure part of coatcheck: values, decisions, wording and cutting.

Nothing here does I/O, or reads a clock, a random source or the environment. The exceptions are ``vocabulary``, which
loads token ranks, and ``forks`` and ``lazy``, which guard imports. ``tests/meta/test_layers.py`` enforces this for all
other modules of this folder.
"""

from __future__ import annotations

__all__ = ()
