"""If rewriting a result fails, the hard limit still holds."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import SKIP_PARSING, Content

from coatcheck import InMemoryStorage, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader
from coatcheck_agent_framework import convert as module
from tests.adapters.agent_framework.agents import returning, run
from tests.adapters.failing import CUT, ERRORS, HUGE, LARGE, FailingOffloader, FullStorage
from tests.adapters.odd import ENCODED, LIMIT, MAX_TOKENS, odd_forms
from tests.adapters.scripts import call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer


@ERRORS
async def test_a_result_above_the_hard_limit_is_stored_raw_and_can_be_read_back(
    server: ScriptedServer, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)
    tools = [returning(HUGE, "huge"), returning(LARGE, "large")]

    script = await run(
        server, ToolOffloader(offloader, scope="mine"), tools, [("huge", {}), ("large", {})], reading(offset=-10)
    )

    huge, large, found = script.shown[-1]
    assert large == LARGE
    assert len(huge) < 6_000
    assert offloader.load(shown_references(huge)[0], scope="mine").text == HUGE
    assert "huge  END\n" in found
    assert sum("could not offload" in record.message for record in caplog.records) == 2


@pytest.mark.parametrize(
    "result",
    [HUGE, {"rows": HUGE}, [{"rows": HUGE}], Content.from_text(HUGE), [Content.from_text(HUGE)], LookupError(HUGE)],
    ids=["str", "dict", "list", "Content", "Contents", "error"],
)
@pytest.mark.parametrize("parser", [None, SKIP_PARSING], ids=["parsed", "raw"])
async def test_whatever_a_tool_returns_or_raises_is_limited(
    server: ScriptedServer, result: object, parser: object
) -> None:
    offload = ToolOffloader(FailingOffloader(RuntimeError(), storage=FullStorage()))

    script = await run(server, offload, [returning(result, result_parser=parser)], call())

    assert CUT in script.shown[-1][0]
    assert len(script.shown[-1][0]) <= 20_100


async def test_a_failed_conversion_does_not_bypass_the_limit(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "_block_of", broken)
    offload = ToolOffloader(Offloader(max_inline_tokens=5_000))

    script = await run(server, offload, [returning(HUGE)], call())

    assert shown_references(script.shown[-1][0])


async def test_nothing_is_stored_if_the_scope_cannot_be_found(server: ScriptedServer) -> None:
    def broken(_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()
    offload = ToolOffloader(Offloader(storage, max_inline_tokens=5_000), scope=broken)

    script = await run(server, offload, [returning(HUGE)], call())

    assert script.shown[-1][0].startswith(CUT)
    assert list(storage.entries("")) == []


async def test_a_single_error_content_is_offloaded(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    script = await run(
        server, offload, [returning(Content.from_error(message=HUGE), result_parser=SKIP_PARSING)], call()
    )

    (reference,) = shown_references(script.shown[-1][0])
    assert offload.offloader.load(reference, scope="conversation-1").text == HUGE


def is_contents(result: object) -> bool:
    return isinstance(result, list) and all(isinstance(item, Content) for item in result)


def content_of(fields: dict[str, Any]) -> Content:
    """Return a ``Content`` with these fields, whatever their types."""
    content = Content("text", text="")
    content.text = None
    for name, value in fields.items():
        setattr(content, name, value)
    return content


@pytest.mark.parametrize(
    "shape",
    [
        {"type": "text", "text": "a", "additional_properties": {}},
        {"type": "data", "uri": f"data:image/png;base64,{ENCODED}", "media_type": "image/png"},
        {"type": "uri", "uri": "https://a", "media_type": "image/png"},
        {"type": "error", "message": "a", "error_code": "b"},
        {"type": "hosted_file", "file_id": "a"},
    ],
    ids=repr,
)
async def test_no_odd_content_raises_or_exceeds_the_limit(shape: dict[str, Any]) -> None:
    offload = ToolOffloader(scope="mine", max_inline_tokens=MAX_TOKENS)
    middleware: Any = offload.middleware[1]
    contents = [content_of(form) for form in odd_forms(shape) if isinstance(form, dict)]

    for result in (*contents, *([Content.from_text("a"), content] for content in contents), *odd_forms(shape)):
        context = SimpleNamespace(function=returning(None), arguments={}, kwargs={}, tools=None, session=None)

        async def give(result: object = result, context: Any = context) -> None:  # noqa: ANN401 - as above
            context.result = result

        await middleware.process(context, give)

        shown = context.result
        texts = [[item.text, item.uri, item.file_id] for item in shown] if is_contents(shown) else shown
        assert len(json.dumps(texts, default=repr)) <= LIMIT, result
