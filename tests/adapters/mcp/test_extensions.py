"""Protocol extensions: what a server adds to the protocol reaches its clients through the proxy."""

# ruff: noqa: ANN401 - what the protocol passes is of any type

from __future__ import annotations

from functools import partial
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client._memory import InMemoryTransport
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp_types.version import LATEST_MODERN_VERSION

from coatcheck_mcp import Upstream
from tests.adapters.mcp.servers import Everything, client_of, wire

ECHO = "com.example/echo"
ERAS = pytest.mark.parametrize("mode", ["legacy", LATEST_MODERN_VERSION])


class _EchoParams(types.RequestParams):
    said: str


class _Echo(Extension):
    identifier = "com.example/echoes"

    def methods(self) -> list[MethodBinding]:
        return [MethodBinding(ECHO, _EchoParams, self._echo), MethodBinding("tasks/get", _EchoParams, self._echo)]

    async def _echo(self, _: Any, params: _EchoParams) -> dict[str, Any]:
        if params.said == "nothing":
            raise MCPError(code=-32_001, message="there is nothing to say", data={"why": [1.0]})
        return {"said": params.said, "times": 1.0, "com.example/own": None}


def echoing() -> Upstream:
    server = MCPServer("echoing", extensions=[_Echo()])
    return Upstream(name="echoing", connect=partial(InMemoryTransport, server))


@ERAS
async def test_an_extension_request_reaches_the_server_and_its_answer_arrives_whole(mode: str) -> None:
    async with client_of(echoing(), mode=mode) as client:
        answer = await wire(client, ECHO, {"said": "hello"})
    assert {name: answer[name] for name in ("said", "times", "com.example/own")} == {
        "said": "hello",
        "times": 1.0,
        "com.example/own": None,
    }


@ERAS
async def test_an_extension_error_arrives_as_the_server_sent_it(mode: str) -> None:
    async with client_of(echoing(), mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await wire(client, ECHO, {"said": "nothing"})
    assert refused.value.error == types.ErrorData(code=-32_001, message="there is nothing to say", data={"why": [1.0]})


@ERAS
async def test_a_method_that_the_server_does_not_have_is_not_found(mode: str) -> None:
    async with client_of(echoing(), mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await wire(client, "com.example/unknown")
    assert refused.value.error.code == types.METHOD_NOT_FOUND


@ERAS
async def test_several_servers_are_not_asked_since_each_might_change_something(mode: str) -> None:
    async with client_of({"plain": Everything().upstream(), "echoing": echoing()}, mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await wire(client, ECHO, {"said": "hello"})
    assert refused.value.error.code == types.METHOD_NOT_FOUND


@ERAS
async def test_task_requests_stay_refused_even_if_an_extension_defines_them(mode: str) -> None:
    async with client_of(echoing(), mode=mode) as client:
        with pytest.raises(MCPError, match="coatcheck does not pass on tasks"):
            await wire(client, "tasks/get", {"said": "hello"})
