"""What coatcheck decides, words and cuts: pure values and rules.

Nothing here does I/O, reads a clock, a random source or the environment, except ``vocabulary``, which loads token
ranks, and ``forks`` and ``lazy``, which guard imports. ``tests/meta/test_layers.py`` holds all other modules of this
folder to that.
"""

from __future__ import annotations

__all__ = ()
