"""What offloading would have saved on recorded conversations: read, measured and reported.

``coatcheck replay`` is the command around it, in ``cli/replay_command.py`` and ``cli/replay_screen.py``.
"""

from __future__ import annotations

__all__ = ()
