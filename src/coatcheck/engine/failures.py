"""What logs, events and the model may learn about an error: never the content, paths or addresses that it quotes.

Adapters log their own failures with this module too, so it loads nothing of the engine.
"""

from __future__ import annotations

import logging
import os
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

from coatcheck.core.errors import CoatcheckError, InvalidRequest, describe_error, is_of_the_system

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("cause_for_model", "class_of", "log_failure", "log_place", "logger", "write")


logger: logging.Logger = logging.getLogger("coatcheck")


def write(
    log: logging.Logger, level: int, message: str, *arguments: object, extra: Mapping[str, object] | None = None
) -> None:
    """Log a line. It is lost if a handler raises: a log that fails must not take the agent down."""
    with suppress(Exception):
        log.log(level, message, *arguments, extra=extra, stacklevel=2)


def log_failure(log: logging.Logger, message: str, *, error: Exception) -> None:
    """Log at WARNING that something failed: ``message``, the error and, for a foreign one, where it was raised.

    Adapters use this in place of ``exc_info``, which prints the messages of foreign exceptions, and those may quote
    content. For a foreign error, it logs the class, and the system's message if there is an ``errno``. An error of our
    own already says who must do what, so it takes one line; see ``log_place``.
    """
    if isinstance(error, CoatcheckError):
        write(log, logging.WARNING, "%s", f"{message}: {error}")
        log_place(log, error)
    else:
        write(log, logging.WARNING, "%s", f"{message}: {describe_error(error)}\n{_raised_at(error)}".rstrip())


def log_place(log: logging.Logger, error: CoatcheckError) -> None:
    """Log where an error of ours was raised; only at DEBUG, since a full disk raises the same one for every result."""
    if log.isEnabledFor(logging.DEBUG) and (where := _raised_at(error)):
        write(log, logging.DEBUG, "%s", f"a failure was raised here:\n{where}".rstrip())


def class_of(error: CoatcheckError) -> str:
    """Return the class name of what went wrong: that of the backend's or the policy's own error, if there is one."""
    return type(error.__cause__ or error).__name__


def cause_for_model(error: CoatcheckError, *, without_scope: bool = False) -> str:
    """Name a failure for the model, without paths, addresses or other tenants' data.

    ``without_scope``: the error was raised by the choice of a scope.
    """
    if without_scope:
        return "no scope could be chosen for it"
    cause = error.__cause__
    if is_of_the_system(cause):
        return os.strerror(cause.errno or 0)
    return "the host's settings refused it" if isinstance(error, InvalidRequest) else "the storage failed"


def _raised_at(error: Exception) -> str:
    """Return the lines of code that led to an error, or to its cause if it has one; ``""`` if it was never raised."""
    return "".join(traceback.format_tb((error.__cause__ or error).__traceback__))
