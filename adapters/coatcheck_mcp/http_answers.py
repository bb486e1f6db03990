"""Put HTTP answers into words that the ``mcp`` package passes on. By itself, it says only that there was an error."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx2
from httpx2 import codes
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

from coatcheck_mcp.faults import LOST_SESSION, NO_SESSION
from coatcheck_mcp.http_limits import FIRST_ERROR, content_type
from coatcheck_mcp.ids import id_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ("error_answer", "message_in", "understandable")

_NO_ENTRY = frozenset({codes.UNAUTHORIZED, codes.FORBIDDEN})

_SESSION_LOST = frozenset({codes.NOT_FOUND, codes.BAD_REQUEST})
"""Statuses that may mean a lost session. In answer to a session's request, 404 is how the protocol says that the server
no longer knows the session. Some servers send it for an error of the request itself, with the request's id. Others send
400 for a lost session, such as all that follow the examples of the TypeScript SDK; their answers say why."""

_QUOTED = 200
"""Characters. An error quotes at most this much of what a server says when it refuses access."""

_SESSION = "mcp-session-id"
_UNKNOWN_SESSION = re.compile(
    rb"(?i)(?:no valid|invalid|unknown|expired) session|session (?:id )?(?:not found|expired)"
)


async def understandable(
    request: httpx2.Request, response: httpx2.Response, *, passed: Collection[str]
) -> httpx2.Response:
    """Return the response, or one that tells the mcp package more; ``passed``: the names of the user's headers."""
    status = response.status_code
    # A login request is a form, not JSON.
    if status == codes.OK and request.method == "POST" and _is_json(request) and _is_json(response):
        return await _own_answer(response, request.content)
    message = message_in(request) if status >= FIRST_ERROR else None
    return response if message is None else await _failure(request, response, message, passed=passed)


async def _failure(
    request: httpx2.Request, response: httpx2.Response, message: Mapping[str, Any], *, passed: Collection[str]
) -> httpx2.Response:
    """Return a response with the server's own error, if it has one, else with what its status says."""
    status = response.status_code
    try:
        body = await response.aread()
    except httpx2.StreamError as error:
        return await _refusal(response, INTERNAL_ERROR, f"HTTP {status}: {error}")
    is_answer, may_be_lost = _is_answer(body, message), _SESSION in request.headers and status in _SESSION_LOST
    if may_be_lost and (_UNKNOWN_SESSION.search(body) is not None or (status == codes.NOT_FOUND and not is_answer)):
        return await _refusal(response, CONNECTION_CLOSED, LOST_SESSION if is_answer else NO_SESSION)
    if status in _NO_ENTRY and not (status == codes.FORBIDDEN and is_answer and _is_error(body)):
        why = f"{request.url.host} answered HTTP {status}: {_no_entry(passed)}{_quoted(response, body)}"
        return await _refusal(response, INVALID_REQUEST, why)
    if _is_json(response) and _is_error(body):
        return httpx2.Response(status, headers=_headers_for(response), content=body)
    said = f"{request.url.host} answered HTTP {status} {codes.get_reason_phrase(status)}".rstrip()
    return await _refusal(response, INTERNAL_ERROR, said)


def _no_entry(passed: Collection[str]) -> str:
    if "authorization" in map(str.lower, passed):
        return "the token in the header Authorization was refused; pass another one"
    return "pass a token by --header or --oauth, or by headers in [servers.NAME] of the file of --config"


def _quoted(response: httpx2.Response, body: bytes) -> str:
    """Return what the server itself says; an empty string if that is an HTML page."""
    if "html" in content_type(response):
        return ""
    text = _parsed(body)["error"]["message"] if _is_error(body) else body[: 4 * _QUOTED].decode("utf-8", "replace")
    line = " ".join(text.split())
    return f". It said: {line if len(line) <= _QUOTED else line[: _QUOTED - 1] + '…'}" if line else ""


def message_in(request: httpx2.Request) -> dict[str, Any] | None:
    """Return the protocol message that a request carries; None if the request is something else, such as a login."""
    message = json.loads(request.content) if request.method == "POST" and _is_json(request) else None
    return message if isinstance(message, dict) and "jsonrpc" in message else None


def _is_json(message: httpx2.Request | httpx2.Response) -> bool:
    return content_type(message).startswith("application/json")


async def _own_answer(response: httpx2.Response, asked: bytes) -> httpx2.Response:
    """Return the answer to a request, with that request's id.

    The mcp package puts that id on answers that come as a stream of events. It drops an answer that comes as JSON with
    another id, such as the ``null`` of servers that could not read the request, and the client would wait forever.
    """
    identifier = json.loads(asked).get("id")
    if identifier is None:
        return response
    try:
        body = _with_id(await response.aread(), identifier)
    except httpx2.StreamError as error:
        body = error_answer(identifier, INTERNAL_ERROR, str(error))
    await response.aclose()
    kept = {name: response.headers[name] for name in ("content-type", _SESSION) if name in response.headers}
    return httpx2.Response(response.status_code, headers=kept, content=body)


def _with_id(body: bytes, identifier: int | str) -> bytes:
    if str(id_in(body)) == str(identifier):  # without parsing: it may be large
        return body
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # the mcp package tells the client
        return body
    if not isinstance(said, dict) or str(said.get("id")) == str(identifier):
        return body
    if "method" in said or not {"result", "error"} & said.keys():
        return error_answer(
            identifier, INTERNAL_ERROR, "coatcheck cannot read the server's answer: it is not an answer to the request"
        )
    return json.dumps({**said, "id": identifier}).encode()


def error_answer(identifier: int | str | None, code: int, said: str) -> bytes:
    """Return the body of an error answer."""
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": said}}).encode()


def _is_answer(body: bytes, message: Mapping[str, Any]) -> bool:
    """Return whether the body of an error has the request's id: if so, the server has looked at the request."""
    said, identifier = _parsed(body), message.get("id")
    return isinstance(said, dict) and identifier is not None and said.get("id") == identifier


def _is_error(body: bytes) -> bool:
    """Return whether the mcp package would find a protocol error in the body of a response."""
    match _parsed(body):
        case {"jsonrpc": "2.0", "error": {"code": int(), "message": str()}}:
            return True
        case _:
            return False


def _parsed(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


async def _refusal(response: httpx2.Response, code: int, said: str) -> httpx2.Response:
    """Return an error response that the mcp package passes on, in place of one that it would not understand."""
    await response.aclose()
    content = error_answer(None, code, said)
    return httpx2.Response(response.status_code, headers=_headers_for(response), content=content)


def _headers_for(response: httpx2.Response) -> dict[str, str]:
    """Return the headers of an error that replaces a response. OAuth reads from the first what the server wants."""
    return {"www-authenticate": response.headers.get("www-authenticate", ""), "content-type": "application/json"}
