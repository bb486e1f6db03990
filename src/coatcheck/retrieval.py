"""The retrieval tool, apart from any framework: its schema, its arguments, and what the model is told of a failure.

An adapter wraps these into its framework's kind of tool and calls ``Offloader.retrieve``; so every framework shows
models the same tool. The words stand in ``notice``, and what an argument means is decided in ``reading.request``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coatcheck.core.arguments import ARGUMENTS
from coatcheck.core.errors import CoatcheckError, InvalidRequest
from coatcheck.core.notice import INTERNAL_ERROR, unknown_arguments
from coatcheck.engine.events import log_failure, logger

__all__ = ("failure_for_model", "retrieval_arguments", "retrieval_schema")


def retrieval_schema() -> dict[str, Any]:
    """Return the JSON schema of the tool's arguments, a new one for each caller: frameworks change what they get."""
    properties = {argument.name: argument.schema for argument in ARGUMENTS}
    return {"type": "object", "properties": properties, "required": ["reference"]}


def retrieval_arguments(sent: object) -> dict[str, Any]:
    """Return what a model sent as keyword arguments for ``Offloader.retrieve``; None stands for "not given".

    A model that sends no object means the reference. Their values are checked by ``retrieve``.

    Raises:
        InvalidRequest: there is an argument that the tool does not have; the message names it and those it has.

    """
    arguments = sent if isinstance(sent, Mapping) else {"reference": sent}
    accepted = [argument.name for argument in ARGUMENTS]
    unknown = [str(name) for name in arguments if name not in accepted]
    if unknown:
        raise InvalidRequest(unknown_arguments(unknown, accepted=accepted))
    return {"reference": None, **{name: value for name, value in arguments.items() if value is not None}}


def failure_for_model(error: Exception) -> str:
    """Return what the model reads about an error: always a string that every client accepts.

    A ``CoatcheckError`` has words of its own for it. Anything else is a bug of coatcheck, an adapter or the host: it is
    logged with the lines that led to it, and the model is told to go on without the content.
    """
    if isinstance(error, CoatcheckError):
        return error.for_model
    log_failure(logger, "a tool result could not be read back, because of an internal error", error=error)
    return INTERNAL_ERROR
