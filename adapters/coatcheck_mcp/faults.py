"""What the library hides: lines that it cannot parse, errors in groups, and whether a session has ended.

It drops such a line, and whoever waits for an answer in it would wait without end.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from coatcheck_mcp.ids import id_in
from coatcheck_mcp.limits import broken_off, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("LOST_SESSION", "NO_SESSION", "in_our_words", "innermost", "is_end", "repair_or_refuse")

_WHY = 200
"""Characters of the parser's reason."""

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|.)")
"""A backslash and what it escapes; a pair of surrogates is one."""

_LONE = 6
"""Characters of the escape of a surrogate without its other half."""


def innermost(error: BaseException) -> BaseException:
    """Return the first error in a task group's group of errors, which says nothing itself; another error as it is."""
    while grouped := getattr(error, "exceptions", ()):  # Python 3.10 has no name for groups
        error = grouped[0]
    return error


_CLOSED = "Connection closed"
"""What the library says of streams that are gone."""

NO_SESSION = "coatcheck: the server no longer knows the session"
"""What ``transports`` says of a server at a URL that was restarted, or has forgotten an idle client."""

LOST_SESSION = f"{NO_SESSION}, and may have done what it was asked"
"""What it says where the server has looked at the request before it said so."""

_TOO_LONG = re.compile(r"SSE stream failed: Server-sent event exceeded the (\d+) byte limit\.")
"""What it says of an answer over HTTP that has more than it was told to take."""

_LOST = re.compile(r"SSE stream (?:failed: .*|ended without a response|ended and reconnection attempts were exhausted)")
"""What it says of an answer over HTTP that broke off. It says nothing of other calls: those go on."""


def is_end(error: MCPError, *, is_gone: bool) -> bool:
    """Return whether an answer is the library's word that the session has ended; ``is_gone``: the streams have.

    Neither the code nor the words are a proof: servers may use the code for errors of their own, and one that is itself
    a client of another server passes on what the library says of that one.
    """
    return error.code == CONNECTION_CLOSED and (
        (is_gone and error.message == _CLOSED) or error.message in {NO_SESSION, LOST_SESSION}
    )


def in_our_words(error: MCPError) -> MCPError:
    """Return an error that came for a request, as the client is told it."""
    if error.code != CONNECTION_CLOSED:
        return error
    if too_long := _TOO_LONG.fullmatch(error.message):
        return MCPError(code=INTERNAL_ERROR, message=refusal(int(too_long[1])))
    is_lost = _LOST.fullmatch(error.message) is not None
    return MCPError(code=INTERNAL_ERROR, message=broken_off(error.message)) if is_lost else error


def repair_or_refuse(fault: Exception) -> SessionMessage | Exception:
    """Return a message in place of a line that is none; the fault itself if there is nobody to tell.

    Half a surrogate pair, as a server has it that cuts a text within an emoji, becomes U+FFFD. Any other answer becomes
    an error for its request.
    """
    if not isinstance(fault, ValidationError):
        return fault
    errors: Sequence[Any] = fault.errors(include_url=False)
    line = errors[0]["input"]
    if not isinstance(line, str):
        return _refused((each["input"] for each in errors), errors[-1]["msg"]) or fault
    with suppress(ValidationError):
        if "\\" in line:
            return SessionMessage(jsonrpc_message_adapter.validate_json(_ESCAPE.sub(_whole, line), by_name=False))
    found = id_in(line.encode("utf-8", "replace"))
    return fault if found is None else _refusal(found, errors[0]["msg"])


def _whole(escape: re.Match[str]) -> str:
    is_lone = len(escape[0]) == _LONE and escape[0][2] in "dD" and escape[0][3] in "89abcdefABCDEF"
    return "\\ufffd" if is_lone else escape[0]


def _refused(inputs: Any, why: str) -> SessionMessage | None:  # noqa: ANN401 - what was parsed
    for value in inputs:
        match value:
            case {"method": _}:
                return None  # a request of the server's: it is told nothing either
            case {"id": int() | str() as identifier} if not isinstance(identifier, bool):
                return _refusal(identifier, why)
    return None


def _refusal(identifier: int | str, why: str) -> SessionMessage:
    error = ErrorData(code=INTERNAL_ERROR, message=f"coatcheck cannot read the server's answer: {why[:_WHY]}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=identifier, error=error))
