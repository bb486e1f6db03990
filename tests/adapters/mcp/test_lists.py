"""Servers whose list of tools is broken, slow or endless: a call does not need the list."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, ListPromptsResult, ListToolsResult, Prompt, Tool

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp import link as link_module
from tests.adapters.mcp.processes import PATIENCE
from tests.adapters.mcp.servers import Everything, client_of, wire

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Listing(Everything):
    """A server with pages of one tool each."""

    def __init__(self, next_page: Callable[[int], int | None]) -> None:
        super().__init__()
        self._next_page = next_page
        self.asked = 0

    async def _list(self, ctx: Any, params: Any) -> ListToolsResult:
        self.asked += 1
        page = int((params and params.cursor) or 0)
        following = self._next_page(page)
        tool = Tool(name=RETRIEVAL_TOOL if page == 300 else f"tool{page}", input_schema={"type": "object"})
        return ListToolsResult(tools=[tool], next_cursor=None if following is None else str(following))


class Broken(Everything):
    """A server that cannot list its tools."""

    async def _list(self, ctx: Any, params: Any) -> Any:
        raise MCPError(code=INTERNAL_ERROR, message="the list is broken")


class Silent(Everything):
    """A server that never answers ``tools/list``."""

    asked = 0

    async def _list(self, ctx: Any, params: Any) -> Any:
        self.asked += 1
        await anyio.sleep_forever()


async def called(server: Everything) -> str:
    with anyio.fail_after(PATIENCE):
        async with client_of(server) as client:
            for _ in range(2):
                result = await wire(client, "tools/call", {"name": "small"})
    return str(result["content"][0]["text"])


async def test_a_call_goes_on_if_the_list_is_broken(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
        assert await called(Broken()) == "few"
    assert caplog.messages == [
        "a call of the MCP server everything goes on without its list of tools: the list is broken"
    ]


async def test_a_call_goes_on_if_the_list_does_not_arrive(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "TOOLS_SECONDS", 0.5)
    server = Silent()
    with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
        assert await called(server) == "few"
    assert server.asked == 1
    assert "without its list of tools: it took more than 0.5 seconds" in caplog.text


async def test_a_list_whose_pages_form_a_circle_ends_where_it_began(caplog: pytest.LogCaptureFixture) -> None:
    server = Listing(lambda page: (page + 1) % 3)
    with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
        assert await called(server) == "few"
    assert server.asked == 4
    assert "tools/list of the MCP server everything does not end" in caplog.text


async def test_the_retrieval_tool_is_on_one_page_even_if_another_has_an_empty_cursor() -> None:
    tool = Tool(name="small", input_schema={"type": "object"})

    class Odd(Everything):
        async def _list(self, ctx: Any, params: Any) -> ListToolsResult:
            is_first = params is None or params.cursor is None
            return ListToolsResult(tools=[tool], next_cursor="" if is_first else None)

    async with client_of(Odd()) as client:
        first = await wire(client, "tools/list")
        second = await wire(client, "tools/list", {"cursor": first["nextCursor"]})
    assert [each["name"] for each in first["tools"]] == ["small", RETRIEVAL_TOOL]
    assert [each["name"] for each in second["tools"]] == ["small"]


async def test_a_list_of_500_pages_is_read_whole() -> None:
    server = Listing(lambda page: page + 1 if page < 499 else None)
    async with client_of(server) as client:
        own = await wire(client, "tools/call", {"name": RETRIEVAL_TOOL})
    assert own["content"][0]["text"] == f"called {RETRIEVAL_TOOL}"
    assert server.asked == 500


async def test_an_endless_list_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_MAX_PAGES", 10)
    server = Listing(lambda page: page + 1)
    assert await called(server) == "few"
    assert server.asked == 10


async def test_calls_that_wait_for_the_list_ask_for_it_once_and_stay_in_order() -> None:
    server = Listing(lambda page: page + 1 if page < 3 else None)
    async with client_of(server) as client, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(wire, client, "tools/call", {"name": f"small{number}", "arguments": {}})
            await anyio.lowlevel.checkpoint()  # the later ones come while the list is read
    assert [name for name, _ in server.calls] == [f"small{number}" for number in range(20)]
    assert server.asked == 4


async def test_if_the_call_that_asked_for_the_list_is_cancelled_another_one_asks() -> None:
    server = Silent()
    async with client_of(server) as client, anyio.create_task_group() as tasks:
        first = anyio.CancelScope()

        async def call_first() -> None:
            with first:
                await wire(client, "tools/call", {"name": "small", "arguments": {}})

        tasks.start_soon(call_first)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(wire, client, "tools/call", {"name": "small", "arguments": {}})
        await anyio.wait_all_tasks_blocked()
        assert server.asked == 1
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        assert server.asked == 2
        tasks.cancel_scope.cancel()


async def test_an_empty_cursor_at_the_end_of_a_list_repeats_no_item_of_several_servers() -> None:
    class Odd(Everything):
        async def _prompts(self, ctx: Any, params: Any) -> Any:
            return ListPromptsResult(prompts=[Prompt(name="ask"), Prompt(name="tell")], next_cursor="")

    async with client_of({"odd": Odd().upstream()}) as client:
        listed = await wire(client, "prompts/list")
    assert [each["name"] for each in listed["prompts"]] == ["odd_ask", "odd_tell"]
