"""The retrieval tool without a framework: its schema, its arguments, and what the model reads about a failure.

An adapter wraps these in its framework's tool type and calls ``Offloader.retrieve``, so models see the same tool
everywhere. The wording is in ``notice``, the arguments are in ``arguments``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coatcheck.core.errors import CoatcheckError, InvalidRequest
from coatcheck.core.forks import loading
from coatcheck.core.notice import INTERNAL_ERROR, unknown_arguments
from coatcheck.engine.failures import log_failure, logger

__all__ = ("failure_for_model", "retrieval_arguments", "retrieval_schema")


def retrieval_schema() -> dict[str, Any]:
    """Return the JSON schema of the tool's arguments. Each caller gets a new one, because frameworks modify it."""
    with loading:
        from coatcheck.core.arguments import ARGUMENTS  # noqa: PLC0415 - every adapter imports this module

    properties = {argument.name: argument.schema for argument in ARGUMENTS}
    return {"type": "object", "properties": properties}


def retrieval_arguments(sent: object) -> dict[str, Any]:
    """Return what a model sent as keyword arguments for ``Offloader.retrieve``; None means "not given".

    Anything but an object is taken as the reference. ``retrieve`` checks the values.

    Raises:
        InvalidRequest: an argument is unknown; the message names it and lists those that the tool has.

    """
    with loading:
        from coatcheck.core.arguments import ARGUMENTS  # noqa: PLC0415 - as above

    arguments = sent if isinstance(sent, Mapping) else {"reference": sent}
    accepted = [argument.name for argument in ARGUMENTS]
    unknown = [str(name) for name in arguments if name not in accepted]
    if unknown:
        raise InvalidRequest(unknown_arguments(unknown, accepted=accepted))
    return {"reference": None, **{name: value for name, value in arguments.items() if value is not None}}


def failure_for_model(error: Exception) -> str:
    """Return what the model reads about an error: always a string that every client accepts.

    A ``CoatcheckError`` carries a message for the model; an error that the host must act on is logged too. Any other
    exception is a bug in coatcheck, an adapter or the host: it is logged with its traceback, and the model is told to
    go on without the content.
    """
    if isinstance(error, InvalidRequest) and error.for_host:
        log_failure(logger, "a tool result could not be read back", error=error)
    if isinstance(error, CoatcheckError):
        return error.for_model
    log_failure(logger, "a tool result could not be read back, because of an internal error", error=error)
    return INTERNAL_ERROR
