"""What coatcheck decides, words and cuts: pure values and rules.

Nothing here does I/O, reads a clock, a random source or the environment. ``tests/meta/test_layers.py`` holds every
module of this folder to that.
"""

from __future__ import annotations

__all__ = ()
