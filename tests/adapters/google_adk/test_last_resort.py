"""If rewriting a result fails, the hard limit still holds."""

# ruff: noqa: ANN401 - what ADK and tools pass is of any type

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from google.genai.types import Blob, Part

from coatcheck import InMemoryStorage, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_adk import OffloadPlugin
from coatcheck_adk import convert as module
from tests.adapters.failing import CUT, ERRORS, HUGE, LARGE, FailingOffloader, FullStorage, is_cut
from tests.adapters.google_adk.agents import returning, run
from tests.adapters.odd import ENCODED, LIMIT, MAX_TOKENS, odd_forms
from tests.adapters.scripts import call, reading

if TYPE_CHECKING:
    from tests.contract.gemini import GeminiServer


@ERRORS
async def test_a_result_above_the_hard_limit_is_stored_raw_and_can_be_read_back(
    server: GeminiServer, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)
    tools = [returning(HUGE, "huge"), returning(LARGE, "large")]

    script = await run(
        server, OffloadPlugin(offloader, scope="mine"), tools, [("huge", {}), ("large", {})], reading(offset=-10)
    )

    huge, large, found = script.shown[-1]
    assert large == LARGE
    assert len(huge) < 6_000
    assert offloader.load(shown_references(huge)[0], scope="mine").text == HUGE
    assert "huge  END\n" in found
    assert sum("could not offload" in record.message for record in caplog.records) == 2


@ERRORS
async def test_a_huge_result_that_cannot_be_stored_is_cut(server: GeminiServer, error: Exception) -> None:
    plugin = OffloadPlugin(FailingOffloader(error, storage=FullStorage()))

    script = await run(server, plugin, [returning(HUGE)], call())

    assert is_cut(script.shown[-1][0])


@pytest.mark.parametrize(
    "result",
    [
        {"rows": HUGE},
        [{"rows": HUGE}],
        {"error": HUGE},
        {"result": ["a", HUGE, Part(text="b")]},
        {"content": [{"type": "text", "text": HUGE}], "isError": False},
    ],
    ids=["object", "list", "error", "parts", "mcp"],
)
async def test_whatever_a_tool_returns_is_limited(server: GeminiServer, result: object) -> None:
    plugin = OffloadPlugin(FailingOffloader(RuntimeError(), storage=FullStorage()))

    script = await run(server, plugin, [returning(result)], call())

    assert CUT in script.shown[-1][0]
    assert len(script.shown[-1][0]) <= 20_000


async def test_images_stay_unless_one_alone_is_too_large(server: GeminiServer) -> None:
    def image(size: int) -> Part:
        return Part(inline_data=Blob(data=b"q" * size, mime_type="image/png"))

    plugin = OffloadPlugin(FailingOffloader(RuntimeError()))
    results: list[Any] = []

    class Keeping(OffloadPlugin):
        async def after_tool_callback(self, **given: Any) -> Any:
            results.append(await plugin.after_tool_callback(**given))
            return results[-1]

    tool = returning(["a caption", image(3_000), image(30_000)])
    await run(server, Keeping(name="keeping"), [tool], call())

    text, kept = results[0]["result"]
    assert kept == image(3_000)
    assert "a caption" in text
    assert "is not shown]" in text


async def test_a_failed_conversion_does_not_bypass_the_limit(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "_blocks_in", broken)
    plugin = OffloadPlugin(Offloader(max_inline_tokens=5_000))

    script = await run(server, plugin, [returning(HUGE)], call())

    assert shown_references(script.shown[-1][0])


async def test_nothing_is_stored_if_the_scope_cannot_be_found(server: GeminiServer) -> None:
    def broken(_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()
    plugin = OffloadPlugin(Offloader(storage, max_inline_tokens=5_000), scope=broken)

    script = await run(server, plugin, [returning(HUGE)], call())

    assert is_cut(script.shown[-1][0])
    assert list(storage.entries("")) == []


TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    "shape",
    [
        TEXT,
        {"type": "image", "data": ENCODED, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "a", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": ENCODED, "mimeType": "image/png"}},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "a"},
    ],
    ids=repr,
)
async def test_no_odd_mcp_part_raises_or_exceeds_the_limit(shape: object) -> None:
    plugin = OffloadPlugin(scope="mine", max_inline_tokens=MAX_TOKENS)
    context: Any = SimpleNamespace(
        actions=SimpleNamespace(skip_summarization=None),
        agent_name="agent",
        function_call_id="call",
        get_invocation_context=lambda: SimpleNamespace(agent=None),
        run_config=None,
        session=SimpleNamespace(app_name="app", user_id="ada", id="session-1"),
    )

    for part in odd_forms(shape):
        for result in (
            {"content": [TEXT, part], "isError": False},
            {"content": [TEXT], "isError": False, "structuredContent": part, "_meta": part},
            {"error": part, "status": part},
            {"result": [Part(text="a"), part]},
        ):
            changed = await plugin.after_tool_callback(
                tool=returning(result), tool_args={}, tool_context=context, result=result
            )
            assert len(json.dumps(result if changed is None else changed, default=repr)) <= LIMIT, result
