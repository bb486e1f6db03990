"""What offloading would have saved on recorded conversations: read, measured and reported.

The command ``coatcheck replay`` is in ``cli/replay_command.py`` and ``cli/replay_screen.py``.
"""

from __future__ import annotations

__all__ = ()
