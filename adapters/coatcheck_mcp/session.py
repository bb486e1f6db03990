"""A session of the ``mcp`` package that tells the server what the real client is and can do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import ClientSession, MCPError
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import ValidationError

from coatcheck_mcp.faults import is_end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.shared._stream_protocols import ReadStream, WriteStream  # the types of what transports yield

    from coatcheck_mcp.client import Client

__all__ = ("Session",)

_BACK = frozenset({"sampling", "elicitation", "roots"})
"""What a server may ask a client for. How depends on the era: by a request, or by an unfinished result."""


class Session(ClientSession):
    """A session on behalf of one client, which is left to check results itself."""

    def __init__(
        self,
        reads: ReadStream[Any],
        writes: WriteStream[Any],
        *,
        client: Client,
        **options: Any,  # noqa: ANN401 - the mcp package's
    ) -> None:
        """Take the arguments of ``ClientSession``, except for what they say about the client."""
        info = types.Implementation.model_validate(client.info) if client.info else None
        super().__init__(reads, writes, client_info=info, **options)
        self._client = client

    @property
    def is_modern(self) -> bool:
        """Whether the server speaks the protocol without a handshake."""
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def negotiate(self, *, is_gone: Callable[[], bool]) -> None:
        """Speak the client's era if the server can: only within one era can a server ask its client something.

        Args:
            is_gone: whether the server no longer hears us, so that no other way needs to be tried.

        Raises:
            MCPError: the server refused every way.
            RuntimeError: it answered with a version that has no handshake.

        """
        own = self._client.version
        versions = dict.fromkeys((own, LATEST_HANDSHAKE_VERSION))  # a strict server refuses versions older than its own
        ways: list[Callable[[], Awaitable[None]]] = [partial(self._shake_hands, version) for version in versions]
        ways.insert(0 if self._client.modern else len(ways), self._discover)
        refusals: list[MCPError] = []
        for ask in ways:
            try:
                return await ask()
            except MCPError as refused:  # noqa: PERF203 - four at most
                if is_end(refused, is_gone=is_gone()):
                    raise
                if refused.code == types.REQUEST_TIMEOUT and not refusals:  # still loading; it reads that request first
                    ways.append(self._discover)
                refusals.append(refused)
        # If a server does not know the last way, that refusal says only so. The first one says why it refused the way
        # that it knows.
        raise refusals[0] if refusals[-1].code == types.METHOD_NOT_FOUND else refusals[-1]

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:
        # The mcp package derives them from its callbacks, so it claims more than many clients have.
        within_one_era = self._client.modern == (version in MODERN_PROTOCOL_VERSIONS)
        offered = {
            name: value for name, value in self._client.capabilities.items() if within_one_era or name not in _BACK
        }
        return types.ClientCapabilities.model_validate(offered)

    async def _shake_hands(self, version: str) -> None:
        """Do what ``initialize`` does, but ask for ``version``: the mcp package always asks for the latest one.

        Raises:
            MCPError: the server refused.
            RuntimeError: it answered with a version that has no handshake.

        """
        asked = types.InitializeRequestParams(
            protocol_version=version, capabilities=self._build_capabilities(version), client_info=self._client_info
        )
        answer = await self.send_request(types.InitializeRequest(params=asked), types.InitializeResult)
        if answer.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            msg = f"it speaks version {answer.protocol_version!r} of MCP, which coatcheck does not know"
            raise RuntimeError(msg)
        self.adopt(answer)
        await self.send_notification(types.InitializedNotification())

    async def _discover(self) -> None:
        raw = await self.send_discover(LATEST_MODERN_VERSION)
        try:
            self.adopt(types.DiscoverResult.model_validate(raw))
        except (ValidationError, RuntimeError) as error:  # no version in common, or no answer to this question
            raise MCPError(code=types.UNSUPPORTED_PROTOCOL_VERSION, message=str(error)) from None
