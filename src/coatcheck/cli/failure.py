"""Why a command could not run, in words for people.

One class for all commands: ``app`` prints its message on one line and ends with exit code 2.
"""

from __future__ import annotations

__all__ = ("CannotRun",)


class CannotRun(Exception):
    """Something that the command needs is missing or wrong. The message says what, and what to do."""
