"""If rewriting a result fails, the hard limit still holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from agents import ItemHelpers
from openai.types.responses import ResponseFunctionToolCall

from coatcheck import InMemoryStorage, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_openai import ToolOffloader
from coatcheck_openai import convert as module
from tests.adapters.failing import CUT, ERRORS, HUGE, LARGE, FailingOffloader, FullStorage, is_cut
from tests.adapters.odd import ENCODED, LIMIT, MAX_TOKENS, odd_forms
from tests.adapters.openai_agents.agents import call, reading, returning, run
from tests.adapters.openai_agents.servers import Serving

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer


@ERRORS
async def test_a_result_above_the_hard_limit_is_stored_raw_and_can_be_read_back(
    server: ScriptedServer, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)
    tools = ToolOffloader(offloader, scope="mine").tools([returning(HUGE, "huge"), returning(LARGE, "large")])

    script = await run(server, tools, [("huge", {}), ("large", {})], reading(offset=-10))

    huge, large, found = script.shown[-1]
    assert large == LARGE
    assert len(huge) < 6_000
    assert offloader.load(shown_references(huge)[0], scope="mine").text == HUGE
    assert "huge  END\n" in found
    assert sum("could not offload" in record.message for record in caplog.records) == 2


@ERRORS
async def test_a_huge_result_that_cannot_be_stored_is_cut(server: ScriptedServer, error: Exception) -> None:
    offload = ToolOffloader(FailingOffloader(error, storage=FullStorage()))

    script = await run(server, offload.tools([returning(HUGE)]), call())

    assert is_cut(script.shown[-1][0])


@pytest.mark.parametrize(
    "output", [{"rows": HUGE}, [{"rows": HUGE}], [{"type": "text", "text": HUGE}]], ids=str.__name__
)
async def test_whatever_a_tool_returns_is_limited(server: ScriptedServer, output: object) -> None:
    offload = ToolOffloader(FailingOffloader(RuntimeError(), storage=FullStorage()))

    script = await run(server, offload.tools([returning(output)]), call())

    assert CUT in script.shown[-1][0]
    assert len(script.shown[-1][0]) <= 20_000


async def test_images_stay_unless_one_alone_is_too_large(server: ScriptedServer) -> None:
    def image(size: int) -> dict[str, str]:
        return {"type": "image", "image_url": "data:image/png;base64," + "qqqq" * size}

    offload = ToolOffloader(FailingOffloader(RuntimeError()))
    (tool, _) = offload.tools([returning([{"type": "text", "text": "a caption"}, image(1_000), image(10_000)])])

    text, kept = await tool.on_invoke_tool(None, "{}")  # type: ignore[union-attr, arg-type]

    assert kept == image(1_000)
    assert "a caption" in text.text
    assert "is not shown]" in text.text


async def test_a_failed_conversion_does_not_bypass_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "_block_of", broken)
    offload = ToolOffloader(Offloader(max_inline_tokens=5_000))

    assert shown_references(await offloaded(offload))


async def test_nothing_is_stored_if_the_scope_cannot_be_found() -> None:
    def broken(_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()

    assert is_cut(await offloaded(ToolOffloader(Offloader(storage, max_inline_tokens=5_000), scope=broken)))
    assert list(storage.entries("")) == []


async def offloaded(offload: ToolOffloader) -> str:
    """Return what the model would get for a result of ``HUGE``."""
    tool: Any = offload.tools([returning(HUGE)])[0]
    text: str = await tool.on_invoke_tool(None, "{}")
    return text


TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "image_url": f"data:image/png;base64,{ENCODED}", "detail": "auto"}


async def shown_by(output: object, offload: ToolOffloader) -> str:
    """Return what the SDK sends for an output that went through our tool."""
    tool: Any = offload.tools([returning(output)])[0]
    asked = ResponseFunctionToolCall(type="function_call", name="fetch", call_id="1", arguments="{}")
    return str(ItemHelpers.tool_call_output_item(asked, await tool.on_invoke_tool(SimpleNamespace(), "{}"))["output"])


@pytest.mark.parametrize(
    "shape",
    [
        TEXT,
        IMAGE,
        {"type": "image", "file_id": "a"},
        {"type": "file", "file_data": ENCODED, "filename": "a"},
        {"type": "file", "file_url": "https://a", "filename": "a"},
    ],
    ids=repr,
)
async def test_no_odd_part_raises_or_exceeds_the_limit(shape: object) -> None:
    offload = ToolOffloader(scope="mine", max_inline_tokens=MAX_TOKENS)

    for part in odd_forms(shape):
        for output in (part, [part], [TEXT, part], {"inside": part}):
            assert len(await shown_by(output, offload)) <= LIMIT, output


@pytest.mark.parametrize("other", ["a", 7, {"rows": [1]}, {**IMAGE, "detail": "unheard of"}], ids=repr)
async def test_an_image_in_a_list_that_the_sdk_shows_as_text_is_offloaded(other: object) -> None:
    image = {**IMAGE, "image_url": f"data:image/png;base64,{'q' * 40_000}"}

    shown = await shown_by([other, image], ToolOffloader(scope="mine"))

    assert "qqqq" not in shown
    assert "[image: png, 30000 bytes | ref: fetch-" in shown


@pytest.mark.parametrize(
    ("part", "mark"),
    [
        ({"type": "audio", "data": "q" * 40_000, "mimeType": "audio/wav"}, "[audio: wav, 30000 bytes"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "q" * 40_000, "mimeType": "audio/wav"}},
            "[audio: wav, a, 30000 bytes",  # with its name
        ),
    ],
    ids=["audio", "resource"],
)
async def test_mcp_media_that_the_sdk_shows_as_text_are_offloaded(
    server: ScriptedServer, part: object, mark: str
) -> None:
    offload = ToolOffloader()

    script = await run(server, offload.tools(), call(), mcp_servers=offload.mcp_servers([Serving(part)]))

    assert "qqqq" not in script.shown[-1][0]
    assert f"{mark} | ref: fetch-" in script.shown[-1][0]
