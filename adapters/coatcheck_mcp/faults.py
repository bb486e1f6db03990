"""What the mcp package hides: lines that it cannot parse, errors in groups, and whether a session has ended.

The package drops a line that it cannot parse, so a caller whose answer is in it would wait forever.
"""

from __future__ import annotations

import errno
import os
import re
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from coatcheck_mcp.ids import id_in
from coatcheck_mcp.limits import broken_off, refusal
from coatcheck_mcp.surrogates import mended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = (
    "LOST_SESSION",
    "NO_SESSION",
    "in_our_words",
    "innermost",
    "is_end",
    "leaves",
    "messages_in",
    "refuse",
    "said_by",
)

_WHY = 200
"""Characters. A message quotes at most this much of the parser's reason."""

_NAME_OF_MESSAGE = 2
"""The length of the location of an error at a top-level key of a message: the kind of message that was tried, and the
key."""

_NO_FILES = os.strerror(errno.EMFILE)

_CLOSED = "Connection closed"
"""What the mcp package says when its streams are gone."""

NO_SESSION = "coatcheck: the server no longer knows the session"
"""What ``http_answers`` says when a server at a URL was restarted, or has forgotten an idle client."""

LOST_SESSION = f"{NO_SESSION}, and may have done what it was asked"
"""What it says when the server had looked at the request before it refused the session."""

_TOO_LONG = re.compile(r"SSE stream failed: Server-sent event exceeded the (\d+) byte limit\.")
"""What the mcp package says about an answer over HTTP that is longer than the limit that it was given."""

_LOST = re.compile(r"SSE stream (?:failed: .*|ended without a response|ended and reconnection attempts were exhausted)")
"""What the mcp package says about an answer over HTTP that broke off. Other calls go on."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a task group's exception group, and in the groups within that; any other error as it is."""
    grouped = getattr(error, "exceptions", ())  # Python 3.10 has no class for groups
    for each in grouped:
        yield from leaves(each)
    if not grouped:
        yield error


def innermost(error: BaseException) -> BaseException:
    """Return the first error in a group, since the group itself says nothing; any other error as it is."""
    return next(leaves(error))


def said_by(error: BaseException) -> str:
    """Return the message of an error in this process, with advice if too many files are open."""
    said = str(error) or type(error).__name__
    return f"{said}; let coatcheck have more files open (`ulimit -n`)" if _NO_FILES in said else said


def is_end(error: MCPError, *, is_gone: bool) -> bool:
    """Return whether an error means that the session has ended; ``is_gone``: whether the streams have.

    Neither the code nor the message is proof: servers may use the code for their own errors, and a server that is
    itself a client of another one passes on what the mcp package says about that one.
    """
    return error.code == CONNECTION_CLOSED and (
        (is_gone and error.message == _CLOSED) or error.message in {NO_SESSION, LOST_SESSION}
    )


def in_our_words(error: MCPError) -> MCPError:
    """Return the error of a request in the words that the client gets."""
    if error.code != CONNECTION_CLOSED:
        return error
    if too_long := _TOO_LONG.fullmatch(error.message):
        return MCPError(code=INTERNAL_ERROR, message=refusal(int(too_long[1])))
    is_lost = _LOST.fullmatch(error.message) is not None
    return MCPError(code=INTERNAL_ERROR, message=broken_off(error.message)) if is_lost else error


def messages_in(fault: Exception) -> Iterable[SessionMessage | Exception]:
    """Return the messages in a line that the package could not parse, each parsed on demand; else only the fault.

    A batch, which one version of the protocol has, holds several messages. A message that cannot be read becomes a
    fault again, and a value that is not an object is dropped. A line may begin with a byte order mark. Text that was
    cut within an emoji has half a surrogate pair, which becomes U+FFFD.
    """
    if not isinstance(fault, ValidationError):
        return [fault]
    line = _input(fault)
    if isinstance(line, str):
        raw = line.encode("utf-8", "surrogatepass")
        mend = mended(raw.removeprefix(BOM_UTF8))
        if mend != raw:
            try:
                return [SessionMessage(jsonrpc_message_adapter.validate_json(mend, by_name=False))]
            except ValidationError as still:
                line = _input(still)
    # Values that are not objects are dropped here, all at once: skipping them later would block the loop, or take one
    # step each.
    return _each([each for each in line if isinstance(each, dict)]) if isinstance(line, list) else [fault]


def _input(fault: ValidationError) -> Any:  # noqa: ANN401 - any JSON
    """Return what could not be read: the line, or its value if it is JSON; None if only part of it is wrong."""
    error = fault.errors(include_url=False)[0]
    return error["input"] if len(error["loc"]) < _NAME_OF_MESSAGE else None


def _each(batch: Sequence[Any]) -> Iterator[SessionMessage | Exception]:
    for each in batch:
        try:
            yield SessionMessage(jsonrpc_message_adapter.validate_python(each, by_name=False))
        except ValidationError as fault:  # noqa: PERF203 - each message may fail
            yield fault


def refuse(fault: Exception, *, asks: bool) -> SessionMessage | None:
    """Return an error for the request that a line answers or, with ``asks``, is; None if it does not show which."""
    if not isinstance(fault, ValidationError):
        return None
    errors: Sequence[Any] = fault.errors(include_url=False)
    line = errors[0]["input"]
    is_json = not isinstance(line, str)
    identifier = _id_of(errors, asks=asks) if is_json else id_in(line.encode("utf-8", "replace"), asks=asks)
    if identifier is None:
        return None
    first, last = errors[0], errors[-1]  # the first tries the line as a request, the last as an answer with an error
    if asks:
        code, what = INVALID_REQUEST if is_json else PARSE_ERROR, "this request"
        why = ": ".join((*map(str, first["loc"][1:]), first["msg"]))
    else:
        code, what, why = INTERNAL_ERROR, "the server's answer", (last if is_json else first)["msg"]
    error = ErrorData(code=code, message=f"coatcheck cannot read {what}: {why[:_WHY]}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=identifier, error=error))


def _id_of(errors: Sequence[Any], *, asks: bool) -> int | str | None:
    """Return the id in a line of JSON, as ``id_in`` does. An error about a missing key holds the whole message."""
    wholes = [each["input"] for each in errors if each["type"] == "missing" and len(each["loc"]) == _NAME_OF_MESSAGE]
    match wholes:
        case [{"id": int() | str() as identifier, **others}, *_] if not isinstance(identifier, bool):
            return identifier if ("method" in others) == asks else None
        case _:
            return None
