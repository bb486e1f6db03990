"""How the proxy serves its clients: one on stdin and stdout, or many on a port of this machine.

A port on loopback is open to every program of every user of the machine, and to every web page that a browser here
shows. So each request must carry a token, and name a host and an origin of this machine.
"""

from __future__ import annotations

import hmac
import logging
import os
import signal
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import anyio
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from coatcheck_mcp.stdio import pass_on

if TYPE_CHECKING:
    import socket
    from contextlib import AbstractContextManager

    from anyio.abc import TaskStatus
    from starlette.applications import Starlette

    from coatcheck_mcp.proxy import Proxy

__all__ = ("LOOPBACK", "http_app", "serve_http", "serve_stdio")

LOOPBACK = "127.0.0.1"

PATH = "/mcp"
"""Where clients expect an MCP server."""

IDLE_SECONDS = 600.0
"""How long a session lasts without a request and without an open stream, such as after its client died: its server's
process runs all the while. The reference clients keep a stream open, so they are never idle. Clients without one then
start a new session, which costs the start of a server. The mcp package's half hour let dozens of processes pile up."""

KILL_SECONDS = 0.2
"""How long a server may go on after a second signal. Claude Code sends SIGINT, SIGTERM a tenth of a second later, and
SIGKILL after 0.4 more seconds: a server that outlived this process then would run forever."""

_CLIENT = "coatcheck"
"""The client id of whoever has the token."""


async def serve_stdio(proxy: Proxy) -> None:
    """Serve the client that started this process until it leaves or the process is told to end."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(_end_when_told, proxy)
        await proxy.serve_stdio()
        tasks.cancel_scope.cancel()


async def serve_http(proxy: Proxy, *, listener: socket.socket, token: str) -> None:
    """Serve clients on a port of this machine until the process is told to end.

    The caller opens the port: if it is taken, uvicorn ends the process with a traceback.
    """
    import uvicorn  # noqa: PLC0415 - only for HTTP

    class Server(uvicorn.Server):
        """Leaves signals to ``_end_when_told``: uvicorn would end this process before the servers' processes."""

        def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
            return nullcontext()

    async with proxy.running(), anyio.create_task_group() as tasks:
        is_told = await tasks.start(_end_when_told, proxy)
        app = http_app(proxy, port=listener.getsockname()[1], token=token)
        server = Server if is_told else uvicorn.Server
        # No log_config: by default uvicorn sets up logging anew, which closes the handlers that others have.
        await server(uvicorn.Config(app, log_level="warning", log_config=None)).serve([listener])
        tasks.cancel_scope.cancel()


def http_app(proxy: Proxy, *, port: int, token: str) -> Starlette:
    """Return the application behind the port."""
    # The names that the mcp package takes for loopback, also without a port, as clients write them if it is 80.
    names = [f"{name}{end}" for name in (LOOPBACK, "localhost", "[::1]") for end in ("", ":*")]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    # The mcp package wants the address of the tokens' issuer. Our token has none: the caller passes it in.
    auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://{LOOPBACK}:{port}"), resource_server_url=None)
    return proxy.front.streamable_http_app(
        streamable_http_path=PATH,
        host=LOOPBACK,
        auth=auth,
        token_verifier=_OneToken(token),
        session_idle_timeout=IDLE_SECONDS,
        transport_security=security,
    )


class _OneToken:
    """Accepts one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whom the token stands for; None if it is another one."""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        return AccessToken(token=token, client_id=_CLIENT, scopes=[])


async def _end_when_told(proxy: Proxy, *, task_status: TaskStatus[bool]) -> None:
    """End the servers' processes, and then this one, on the signals that would end this one alone.

    Tells ``task_status`` whether it can: event loops on Windows receive no signals.
    """
    with ExitStack() as stack:
        try:
            signals = stack.enter_context(anyio.open_signal_receiver(*_endings()))
        except NotImplementedError:
            task_status.started(False)  # noqa: FBT003 - anyio's
            return
        task_status.started(True)  # noqa: FBT003 - anyio's
        async with anyio.create_task_group() as tasks:
            begin = partial(tasks.start_soon, _end, proxy)
            async for number in signals:
                pass_on(number)  # as if the client had started the servers: not all of them end when their input ends
                begin()
                begin = partial(tasks.start_soon, _kill)


async def _end(proxy: Proxy) -> None:
    await proxy.aclose()
    logging.shutdown()  # the last lines of the log, which say why the client got an error
    # Cancelling would wait: for the thread that reads the next line of a client, or for open streams of HTTP.
    os._exit(0)


async def _kill() -> None:
    await anyio.sleep(KILL_SECONDS)
    pass_on(signal.SIGKILL)


def _endings() -> list[signal.Signals]:
    """Return the signals that end this process, but not those of a terminal that it was started to ignore (nohup)."""
    of_terminals = [getattr(signal, name) for name in ("SIGHUP", "SIGQUIT") if hasattr(signal, name)]  # not on Windows
    heard = [each for each in of_terminals if signal.getsignal(each) is not signal.SIG_IGN]
    return [signal.SIGTERM, signal.SIGINT, *heard]
