"""Pass on what the server asks the client: to let its model write, to ask its user, or to list its folders."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client.session import ClientRequestContext

    from coatcheck_mcp.client import Client, Context

__all__ = ("MAX_ASKED", "Questions")

READY_SECONDS = 30.0
"""How long a client may take to get ready. Several servers start at different speeds: one may ask at once, while the
client's handshake waits up to 20 seconds for another one."""

ROOTS_SECONDS = 10.0
"""How long a client may take to list its roots, which needs no person."""

ASK_SECONDS = 300.0
"""How long a question may wait if no request of the client runs when it comes. One that came during a request may wait
as long after the end of that request. Over HTTP, a client may not be listening then, and a client that cancelled the
request may have closed its dialog."""

MAX_ASKED = 100
"""Questions of a server that its client has not answered yet. Any more are refused."""

AnswerT = TypeVar("AnswerT", bound=BaseModel)
Latest: TypeAlias = "Callable[[], Context | None]"
Notify: TypeAlias = "Callable[[types.ClientNotification], Awaitable[None]]"


class Questions:
    """Puts the questions of one server to its client. Its methods are callbacks of the ``mcp`` package's session."""

    def __init__(self, client: Client, *, latest: Latest, notify: Notify) -> None:
        """Configure.

        Args:
            client: whom the server may ask.
            latest: returns the client's request on whose stream a question goes, if one runs.
            notify: sends a notification to the server.

        """
        self._client = client
        self._latest = latest
        self._notify = notify
        self._asked: dict[anyio.CancelScope, Context | None] = {}
        """Unanswered questions: the scope that ends each, and the client's request on whose stream it went."""

    def left(self, ctx: Context) -> None:
        """Note that a request of the client has ended.

        Questions asked during it go on for a while: they may be about another request.
        """
        for scope, asked_in in self._asked.items():
            if asked_in is ctx:
                scope.deadline = anyio.current_time() + ASK_SECONDS

    async def sampling(
        self, ctx: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResultWithTools | types.ErrorData:
        """Let the client's model write a message."""
        request = types.CreateMessageRequest(params=params)
        # Even without tools: the protocol allows an answer of several blocks, and the server says whether it takes one.
        answer = types.CreateMessageResultWithTools
        return await self._ask("sampling", request, answer, ctx)

    async def elicitation(
        self, ctx: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the client's user."""
        return await self._ask("elicitation", types.ElicitRequest(params=params), types.ElicitResult, ctx)

    async def roots(self, ctx: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        """Ask in which folders the client works."""
        return await self._ask("roots", types.ListRootsRequest(), types.ListRootsResult, ctx)

    async def _ask(
        self, capability: str, request: types.ServerRequest, answer: type[AnswerT], asked: ClientRequestContext
    ) -> AnswerT | types.ErrorData:
        """Ask the client on behalf of the server; an error says why the client cannot be asked."""
        client = self._client
        if capability not in client.capabilities or client.modern:
            return _refused(f"the client behind coatcheck cannot be asked for {capability}")
        if len(self._asked) >= MAX_ASKED:
            return _refused(f"the client behind coatcheck has not answered {MAX_ASKED} other questions yet")
        with anyio.CancelScope() as scope:
            self._asked[scope] = None
            try:
                return await self._ask_client(capability, request, answer, asked, scope=scope)
            finally:
                del self._asked[scope]
        return _refused(
            "the client behind coatcheck did not answer, and the request during which it was asked has ended"
        )

    async def _ask_client(
        self,
        capability: str,
        request: types.ServerRequest,
        answer: type[AnswerT],
        asked: ClientRequestContext,
        *,
        scope: anyio.CancelScope,
    ) -> AnswerT | types.ErrorData:
        client = self._client
        with anyio.move_on_after(READY_SECONDS):
            await client.ready.wait()
        latest = self._asked[scope] = self._latest()
        front = latest.session if latest is not None else client.front
        if front is None or not client.ready.is_set():
            return _refused(f"the client behind coatcheck did not get ready to be asked for {capability}")
        related = None if latest is None else ServerMessageMetadata(related_request_id=latest.request_id)
        limit = ROOTS_SECONDS if capability == "roots" else ASK_SECONDS if latest is None else None
        token = (asked.meta or {}).get("progress_token")
        on_progress = None if token is None else partial(self._report_back, token)
        try:
            return await front.send_request(
                request,
                answer,
                request_read_timeout_seconds=limit,
                metadata=related,
                progress_callback=on_progress,
            )
        except MCPError as error:
            return error.error
        except ValidationError:
            return _refused(
                f"the client behind coatcheck answered {request.method} with something the protocol forbids"
            )

    async def _report_back(
        self, token: types.ProgressToken, progress: float, total: float | None, message: str | None
    ) -> None:
        """Tell the server how far the client has got with what it was asked."""
        said = types.ProgressNotificationParams(progress_token=token, progress=progress, total=total, message=message)
        await self._notify(types.ProgressNotification(params=said))


def _refused(message: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=message)
