"""How the proxy reaches the server behind it: a command on stdio, or a URL. Each ``connect`` opens a new connection.

The mcp package does both. Only its settings belong here: the environment, the limit, headers and OAuth.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import httpx2
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from coatcheck import InvalidRequest
from coatcheck.adapting import check_flags, is_count, is_number
from coatcheck_mcp.config import START_SECONDS
from coatcheck_mcp.http_transport import CONNECT_SECONDS, HttpTransport
from coatcheck_mcp.limits import MAX_MESSAGE_BYTES, lines_codec
from coatcheck_mcp.programs import missing_folder, missing_program
from coatcheck_mcp.redacting import without_secrets
from coatcheck_mcp.stdio import until_exit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from mcp.client._transport import TransportStreams  # the type of what both clients yield; at check time only

__all__ = ("TOKEN_VARIABLE", "Upstream", "command_upstream", "url_upstream")

_LOGIN_SECONDS = 120.0
_READ_SECONDS = 300.0
"""As long as the mcp package's own client waits."""

_LAST_PORT = 65_535

TOKEN_VARIABLE = "COATCHECK_MCP_TOKEN"  # noqa: S105 - the name of the variable
"""The variable with the token of this proxy's own port. A server that had it could call all others behind the proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server that the proxy can connect to, as often as it has clients."""

    name: str
    """The name that people are told. The scope is made of it too, unless the server says its own name."""

    connect: Callable[[], AbstractAsyncContextManager[TransportStreams]]
    """Opens a connection, and starts the process if there is one."""

    start_seconds: float = START_SECONDS
    """How long the server may take to answer its first request."""

    takes_turns: bool = False
    """Whether each request holds a connection until it is answered, so that only some may run at once.

    Over HTTP, a message that is not a request holds up all that follow until the server has accepted it; a
    notification, such as a cancellation, for about two seconds at most."""


def command_upstream(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_MESSAGE_BYTES,
    start_seconds: float = START_SECONDS,
) -> Upstream:
    """Return the server that a command starts, with the environment of this process and ``env``.

    Only the token of this proxy's port is left out, unless ``env`` has it. What the server writes to stderr goes to
    this process's stderr directly, so that it cannot fill a pipe that nobody reads.

    Raises:
        InvalidRequest: ``command`` is empty, or not a sequence of ``str``; a single ``str`` is not one. Or a limit is
            not a number above 0.

    """
    _check_limits(max_bytes, start_seconds)
    is_command = isinstance(command, Sequence) and not isinstance(command, str | bytes) and len(command) > 0
    odd = [part for part in command if not isinstance(part, str)] if is_command else []
    if not is_command or odd or not command[0]:
        given = f"with {_shown(odd[0])}" if odd else "without a program" if is_command else f"not {_shown(command)}"
        msg = f"a command must be its program and arguments as str, such as ['uvx', 'my-server'], {given}"
        raise InvalidRequest(msg)
    program, *arguments = command
    inherited = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    parameters = StdioServerParameters(
        command=program,
        args=arguments,
        env={**inherited, **(env or {})},
        cwd=None if cwd is None else os.fspath(cwd),
        encoding=lines_codec(max_bytes),
    )

    @asynccontextmanager
    async def connect() -> AsyncIterator[TransportStreams]:
        async with AsyncExitStack() as stack:
            try:
                streams = await stack.enter_async_context(until_exit(stdio_client(parameters)))
            except OSError as error:  # the system says neither where it looked, nor whether for program or folder
                variables = parameters.env or {}
                why = missing_folder(cwd) or missing_program(program, cwd=cwd, variables=variables) or str(error)
                raise OSError(why) from None
            yield streams

    return Upstream(name=PurePath(program).name, connect=connect, start_seconds=start_seconds)


def url_upstream(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    oauth: bool = False,
    max_bytes: int = MAX_MESSAGE_BYTES,
    start_seconds: float = START_SECONDS,
) -> Upstream:
    """Return the server at a URL that speaks streamable HTTP.

    Args:
        url: where the server is.
        headers: sent with each request, such as ``Authorization``.
        oauth: log in with FastMCP's OAuth client, which opens a browser if it must.
        max_bytes: the longest message that is accepted from it.
        start_seconds: how long it may take to answer its first request; at least two minutes with ``oauth``, for the
            person who logs in.

    Raises:
        ValueError: ``url`` is not the URL of such a server.
        InvalidRequest: a limit is not a number above 0, or ``oauth`` is not a boolean.

    """
    _check_limits(max_bytes, start_seconds)
    check_flags(oauth=oauth)
    if not isinstance(url, str) or not _is_address(url):
        shown = repr(without_secrets([url.partition("?")[0]])[0]) if isinstance(url, str) else _shown(url)
        msg = f"the URL must be one like https://example.com/mcp, not {shown}"
        raise ValueError(msg)
    auth = _oauth(url) if oauth else None

    @asynccontextmanager
    async def connect() -> AsyncIterator[TransportStreams]:
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=_READ_SECONDS)
        client = httpx2.AsyncClient(
            headers=dict(headers or {}),
            auth=auth,
            timeout=timeout,
            transport=HttpTransport(max_bytes, passed=tuple(headers or ())),
        )
        async with client, streamable_http_client(url, http_client=client, max_sse_event_size=max_bytes) as streams:
            yield streams

    seconds = max(start_seconds, _LOGIN_SECONDS) if oauth else start_seconds
    return Upstream(name=httpx2.URL(url).host, connect=connect, start_seconds=seconds, takes_turns=True)


def _check_limits(max_bytes: object, start_seconds: object) -> None:
    if not is_count(max_bytes, least=1):
        msg = f"max_bytes must be a whole number above 0, not {max_bytes!r}"
        raise InvalidRequest(msg)
    if not (is_number(start_seconds) and start_seconds > 0):
        msg = f"start_seconds must be a number above 0, not {start_seconds!r}"
        raise InvalidRequest(msg)


def _shown(given: object) -> str:
    """Describe what was given in place of a command or a URL without quoting it, since it may hold a secret."""
    return (
        "an empty one" if isinstance(given, list | tuple) and not given else f"a value of type {type(given).__name__}"
    )


def _is_address(url: str) -> bool:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:  # such as for a port that is not a number
        return False
    return bool(parsed.host) and parsed.scheme in {"http", "https"} and (parsed.port or 1) <= _LAST_PORT


def _oauth(url: str) -> httpx2.Auth:
    from coatcheck_mcp.login import Login  # noqa: PLC0415 - takes half a second, and few need it

    return Login(url)
