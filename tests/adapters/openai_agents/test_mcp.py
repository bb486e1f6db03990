"""Tools of a real MCP server over stdio: their results are offloaded, and the server keeps everything else."""

# ruff: noqa: ANN401 - what the SDK and servers pass is of any type

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agents import Agent, Runner
from agents.mcp import MCPServer, MCPServerStdio
from pydantic import BaseModel

from coatcheck import InMemoryStorage
from coatcheck.testing.scripting import shown_references
from coatcheck_openai import ToolOffloader
from tests.adapters.mcp_rows import SERVER
from tests.adapters.openai_agents.agents import BIG, MIDDLE, Script, call, config, playing, reading, run, text_outputs
from tests.adapters.openai_agents.servers import Serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from coatcheck.testing import ScriptedServer


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[MCPServerStdio]:
    """Yield a connected server. Not a fixture: pytest would close it in another task."""
    parameters: Any = {"command": sys.executable, "args": ["-c", SERVER]}
    async with MCPServerStdio(parameters, client_session_timeout_seconds=240, **options) as server:
        yield server


async def one_search_finds_all_that_items_hold_and_no_result_is_raw(
    server: ScriptedServer, rows: MCPServerStdio
) -> None:
    offload = ToolOffloader()
    turns = (call(count=60), reading(pattern='"customer 58"', context_lines=1), reading(query="[?id==`58`].name"))
    script = await run(server, offload.tools(), *turns, mcp_servers=offload.mcp_servers([rows]))

    placeholder, found, queried = script.shown[-1]
    assert "60 items, " in placeholder
    assert '"name": "customer 58"' in found
    assert '"customer 58"' in queried
    items = offload.offloader.load(shown_references(placeholder)[0], scope="conversation-1").items
    assert items is not None
    assert [json.loads(item)["id"] for item in items] == list(range(60))


async def media_become_marks_and_small_results_stay(server: ScriptedServer, rows: MCPServerStdio) -> None:
    offload = ToolOffloader(
        max_result_tokens=4_000
    )  # images and sounds count as much as they cost, whatever their size
    script = await run(
        server,
        offload.tools(),
        [("look", {"count": 5_000}), ("look", {"count": 1})],
        mcp_servers=offload.mcp_servers([rows]),
    )

    large, small = script.shown[-1]
    assert "[image: png, 30000 bytes | ref: look-" in large
    assert "[audio: wav, 30000 bytes | ref: look-" in large
    assert small.startswith("seen \n")


async def what_the_sdk_sends_of_resources_is_stored_and_links_stay(
    server: ScriptedServer, rows: MCPServerStdio
) -> None:
    offload = ToolOffloader()
    turns = (call("read", count=40), reading(pattern="file:///37.txt"))
    script = await run(server, offload.tools(), *turns, mcp_servers=offload.mcp_servers([rows]))

    placeholder, found = script.shown[-1]
    references = shown_references(placeholder)
    stored = b"".join(offload.offloader.load(each, scope="conversation-1").data for each in references).decode(
        errors="replace"
    )
    assert all(f"file:///{number}.txt" in stored for number in range(40))
    assert "store:///scan.bin" in stored
    assert "KEY-7" not in stored  # of a text item, the SDK sends only the text
    assert "null" not in stored
    assert "file:///37.txt" in found
    assert "file:///more.txt" in placeholder


async def an_error_stays_whatever_its_size(server: ScriptedServer, rows: MCPServerStdio) -> None:
    offload = ToolOffloader()
    script = await run(server, offload.tools(), call("fail", count=3_000), mcp_servers=offload.mcp_servers([rows]))

    assert "broken " * 3_000 in script.shown[-1][0]


async def parallel_calls_of_two_conversations_keep_their_scopes(server: ScriptedServer, rows: MCPServerStdio) -> None:
    storage = InMemoryStorage()
    offload = ToolOffloader(storage)
    servers = offload.mcp_servers([rows])
    scripts = await asyncio.gather(
        *(
            run(
                server,
                offload.tools(),
                [("fetch", {"count": 60}), ("fetch_object", {"count": 60})],
                mcp_servers=servers,
                run_config=config(f"conversation-{number}"),
            )
            for number in range(2)
        )
    )

    for number, script in enumerate(scripts):
        for placeholder in script.shown[-1]:
            reference = shown_references(placeholder)[0]
            assert "customer 59" in offload.offloader.load(reference, scope=f"conversation-{number}").text


async def host_code_that_calls_a_tool_gets_the_real_result(server: ScriptedServer, rows: MCPServerStdio) -> None:
    (wrapped,) = ToolOffloader().mcp_servers([rows])
    real, same = await rows.call_tool("fetch", {"count": 60}), await wrapped.call_tool("fetch", {"count": 60})

    assert same == real


SHARED = (
    one_search_finds_all_that_items_hold_and_no_result_is_raw,
    media_become_marks_and_small_results_stay,
    what_the_sdk_sends_of_resources_is_stored_and_links_stay,
    an_error_stays_whatever_its_size,
    parallel_calls_of_two_conversations_keep_their_scopes,
    host_code_that_calls_a_tool_gets_the_real_result,
)
"""The checks that share one server: starting one takes more than a second of processor time."""


async def test_tools_of_one_server(server: ScriptedServer, subtests: pytest.Subtests) -> None:
    async with connected() as rows:
        for check in SHARED:
            with subtests.test(check.__name__):
                await check(server, rows)


async def test_structured_content_that_the_model_gets_is_stored_as_json(server: ScriptedServer) -> None:
    def name(context: Any) -> dict[str, Any]:
        extracted.append((context.structured_content["58"]["name"], context.tool_output["text"]))
        return {}

    offload, extracted = ToolOffloader(), list[tuple[str, str]]()
    turns = (call("fetch_object", count=60), reading(query='"58".name'))
    async with connected(use_structured_content=True, custom_data_extractor=name) as rows:
        script = await run(server, offload.tools(), *turns, mcp_servers=offload.mcp_servers([rows]))

    assert extracted == [("customer 58", script.shown[-1][0])]
    placeholder, found = script.shown[-1]
    assert "object with 60 keys" in placeholder
    assert "customer 58\n" in found


async def test_a_wrapped_server_keeps_everything_but_large_results(server: ScriptedServer) -> None:
    asked: list[str] = []

    def meta(context: Any) -> None:
        asked.append(context.tool_name)

    offload = ToolOffloader()
    parameters: Any = {"command": sys.executable, "args": ["-c", SERVER]}
    inner = MCPServerStdio(
        parameters,
        name="rows",
        client_session_timeout_seconds=240,
        tool_meta_resolver=meta,
        require_approval="always",
    )
    (wrapped,) = offload.mcp_servers([inner])
    with playing(server, Script(call("mcp_rows__fetch", count=600))) as model:
        async with wrapped:  # type: ignore[attr-defined] # like all servers of the SDK
            agent = Agent(
                name="a",
                model=model,
                tools=offload.tools(),
                mcp_servers=[wrapped],
                mcp_config={"include_server_in_tool_names": True},
            )
            stopped = await Runner.run(agent, "Go.", run_config=config())
            state = stopped.to_state()
            (interruption,) = stopped.interruptions
            state.approve(interruption)
            result = await Runner.run(agent, state, run_config=config())

    assert isinstance(wrapped, MCPServer)
    assert wrapped.name == "rows"
    assert asked == ["fetch"]
    (placeholder,) = text_outputs(result.to_input_list())
    assert "Tool result offloaded." in placeholder
    assert "mcp_rows_fetch-" in placeholder
    assert "customer 300" not in placeholder


async def test_an_agent_with_servers_but_without_the_retrieval_tool_logs_a_warning(
    server: ScriptedServer, caplog: Any
) -> None:
    async with connected() as rows:
        await run(server, [], call(count=60), mcp_servers=ToolOffloader().mcp_servers([rows]))

    assert "Pass its tools through ToolOffloader.tools" in caplog.text


FOR_THE_HOST = {"_meta": {"trace": "span " * 6_000}, "annotations": {"audience": ["user"], "priority": 0.5}}
IMAGE = {"type": "image", "data": "iVBORw0K", "mimeType": "image/png"}


async def test_fields_that_the_sdk_does_not_send_do_not_make_a_result_large(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    rows = [{"type": "text", "text": f"row {number}", **FOR_THE_HOST} for number in range(200)]
    script = await run(
        server, offload.tools(), call(), mcp_servers=offload.mcp_servers([Serving(*rows, {**IMAGE, **FOR_THE_HOST})])
    )

    assert script.shown[-1][0].startswith("row 0\nrow 1\n")
    assert "span" not in script.shown[-1][0]


async def test_fields_that_the_sdk_does_not_send_are_neither_stored_nor_shown(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    items = [{"type": "text", "text": BIG, **FOR_THE_HOST}, {**IMAGE, **FOR_THE_HOST}]
    script = await run(server, offload.tools(), call(), reading(), mcp_servers=offload.mcp_servers([Serving(*items)]))

    placeholder = script.shown[-1][0]
    assert not any("span" in text for text in script.shown[-1])
    text, image = (offload.offloader.load(each, scope="conversation-1").data for each in shown_references(placeholder))
    assert text.decode() == BIG
    assert image == b"\x89PNG\r\n"


async def test_fields_that_the_sdk_does_not_send_cost_nothing_next_to_media_either(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    items = [{**IMAGE, **FOR_THE_HOST}, {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]
    script = await run(server, offload.tools(), call(), mcp_servers=offload.mcp_servers([Serving(*items)]))

    assert not script.shown[-1][0].startswith("Tool result offloaded.")


class Video(BaseModel):
    """An item of a type that no version of the protocol has."""

    type: str = "video"
    frames: str = "few"


async def test_an_item_of_an_unknown_type_stays_next_to_a_placeholder(server: ScriptedServer, caplog: Any) -> None:
    offload = ToolOffloader()
    serving = Serving({"type": "text", "text": BIG}, Video())
    script = await run(
        server, offload.tools(), call(), reading(pattern="^line 1,000 "), mcp_servers=offload.mcp_servers([serving])
    )

    placeholder, found = script.shown[-1]
    assert placeholder.startswith("Tool result offloaded.")
    as_json, as_python = '{"type":"video","frames":"few"}', "{'type': 'video', 'frames': 'few'}"
    assert as_json in placeholder or as_python in placeholder  # the oldest SDK writes the latter
    assert MIDDLE in found
    assert "could not offload" not in caplog.text
