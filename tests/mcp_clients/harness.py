"""The contract's harness for agents in other processes that reach the proxy as MCP clients, over stdio or HTTP."""

from __future__ import annotations

import json
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from mcp.client._memory import InMemoryTransport  # what Client itself uses for a server in this process

from coatcheck import TextBlock
from coatcheck_mcp import Proxy, Upstream
from coatcheck_mcp.serving import PATH, http_app
from tests.contract.mcp_harness import server_of
from tests.mcp_clients.foreign import TOKEN, serving_on_a_port, serving_on_pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from coatcheck.testing import Received, Returned, Run, ScriptedServer, Transcript
    from tests.mcp_clients.foreign import ForeignAgent, Job

__all__ = ("ForeignHarness", "without_frame", "without_prefix")


class ForeignHarness:
    """Runs an agent whose tools are behind the proxy."""

    def __init__(
        self, server: ScriptedServer, agent: ForeignAgent, *, transport: str, bare: Callable[[str], str]
    ) -> None:
        """Take a running agent. ``bare`` strips what its framework adds to the text of a tool result."""
        self._server = server
        self._bare = bare
        self._agent = agent
        self._transport = transport

    def run(self, case: Run) -> Transcript:
        return anyio.run(self._converse, case, False)

    async def arun(self, case: Run) -> Transcript:
        return await self._converse(case, True)

    async def _converse(self, case: Run, is_async: bool) -> Transcript:
        with ExitStack() as serving:
            conversation = serving.enter_context(
                self._server.conversation(lambda received: case.model(self._all_bare(received)))
            )
            final = {name: self._answer(serving, *case.tools[name].values()) for name in case.final_tools}
            async with front_of(case, self._transport) as server:
                job: Job = {
                    "model": conversation.base_url,
                    "server": server,
                    "is_async": is_async,
                    "kept": sorted(case.kept_tools),
                    "cancelled": {name: text_of(*case.tools[name].values()) for name in case.cancelled_tools},
                    "final": final,
                }
                answer = await anyio.to_thread.run_sync(self._agent.run, job)
            transcript = conversation.transcript()
            return replace(transcript, received=tuple(self._all_bare(transcript.received)), answer=answer)

    def _all_bare(self, received: Sequence[Received]) -> list[Received]:
        return [replace(one, text=self._bare(one.text)) for one in received]

    def _answer(self, serving: ExitStack, result: Returned) -> dict[str, str]:
        """Return a tool's answer to the user, and the URL of a model that gives it, for agents that delegate."""
        text = text_of(result)
        conversation = serving.enter_context(self._server.conversation(lambda _: (), final_answer=text))
        return {"text": text, "model": conversation.base_url}


@asynccontextmanager
async def front_of(case: Run, transport: str) -> AsyncIterator[Mapping[str, Any]]:
    """Serve the tools of a run, through the proxy if the run has an offloader."""
    server = server_of(case)
    if case.offloader is None:
        plain = (
            serving_on_pipes(server)
            if transport == "stdio"
            else serving_on_a_port(lambda _: server.streamable_http_app(streamable_http_path=PATH))
        )
        async with plain as address:
            yield address
        return
    upstream = Upstream(name="contract", connect=lambda: InMemoryTransport(server))
    proxy = Proxy(upstream, case.offloader, scope=case.scope, identity_of=lambda _: case.identity, native_media=False)
    async with proxy.running() as front:
        proxied = (
            serving_on_pipes(front)
            if transport == "stdio"
            else serving_on_a_port(lambda port: http_app(proxy, port=port, token=TOKEN))
        )
        async with proxied as address:
            yield address


def text_of(result: Returned) -> str:
    """Return the text blocks of a result, joined by newlines."""
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextBlock))


def without_prefix(text: str) -> str:
    """Strip the "Error: " that Strands and our adapter put before the message of a failing tool."""
    return text.removeprefix("Error: ")


def without_frame(text: str) -> str:
    """Strip what Pydantic AI wraps a tool result in: an object for an error, a list for several strings."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    match value:
        case {"error": str(said), **rest} if not rest:
            return said
        case [str(), *_] if all(isinstance(each, str) for each in value):
            return "\n".join(value)
        case _:
            return text
