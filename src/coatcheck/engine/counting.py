"""The fallback for a host's token counter that raises: count bytes instead, and tell the host.

A counter may fail on a single string, as tiktoken's ``encode`` does on the names of special tokens, or for a while, as
one behind a network does. So every result and every read tries the counter again. Its counts and byte counts do not
mix: an operation that began with the counter starts over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coatcheck.core.errors import CoatcheckError, describe_error
from coatcheck.core.tokens import ByteCounter, TiktokenCounter

if TYPE_CHECKING:
    from coatcheck.core.settings import Settings
    from coatcheck.engine.events import About, Recorder

__all__ = ("blame_counter", "without_counter")


def without_counter(settings: Settings) -> Settings | None:
    """Return the settings to go on with if the host's counter raises; None if the counter is not the host's."""
    if type(settings.counter) in {ByteCounter, TiktokenCounter}:
        return None
    return replace(settings, token_counter=ByteCounter())


def blame_counter(error: Exception, about: About, *, settings: Settings, recorder: Recorder, what: str) -> None:
    """Tell the host that its token counter, or the work with its counts, raised ``error``; ``what`` was not counted."""
    counter = type(settings.token_counter).__name__
    failure = CoatcheckError(f"{what} was not counted with {counter}: {describe_error(error)}; its bytes decide")
    failure.__cause__ = error
    recorder.record_failure(failure, about, logged=str(failure))
