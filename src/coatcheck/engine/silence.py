"""Whether a storage answers at all: while it does not, one call a minute waits for it, and not every one.

A call that hangs takes its whole time limit, and an agent makes many calls. So after one has waited in vain, the others
fail at once for a while, and their results stay in the conversation. Then one tries again.
"""

from __future__ import annotations

import math

__all__ = ("Silence",)

IN_VAIN_SECONDS = 5.0
"""A call that failed after this long had waited for an answer, or had tried several times."""

PAUSE_SECONDS = 60.0
"""How long no call is made then. Even an agent that does nothing but call waits only for a third of its time: 30 s of
each 90."""


class Silence:
    """What the calls to one storage found out; all times are seconds of the monotonic clock.

    It has no lock, which a fork could leave locked: at worst, two calls try again at the same moment.
    """

    def __init__(self) -> None:
        self._answered = -math.inf
        """When the storage last answered."""
        self._next_try: float | None = None
        """When it is asked again; None while it answers."""

    def seconds_left(self, now: float) -> float:
        """Return for how long it is not asked; 0 if the caller is to ask it now."""
        next_try = self._next_try
        if next_try is None:
            return 0.0
        if next_try <= now:
            self._next_try = now + PAUSE_SECONDS  # meanwhile the others do not wait
        return max(0.0, next_try - now)

    def note(self, began: float, now: float, *, failed: bool) -> None:
        """Note that a call has ended. If it failed late, that means nothing if the storage answered another one."""
        if not failed or now - began < IN_VAIN_SECONDS:
            self._answered, self._next_try = now, None
        elif self._answered <= began:
            self._next_try = now + PAUSE_SECONDS
