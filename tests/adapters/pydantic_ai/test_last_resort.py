"""If rewriting a result fails, the hard limit still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel
from pydantic_ai import BinaryContent, ToolReturn
from pydantic_ai.exceptions import ToolFailed

from coatcheck import InMemoryStorage, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_pydantic_ai import ToolOffloader
from coatcheck_pydantic_ai import convert as module
from tests.adapters.failing import CUT, ERRORS, HUGE, LARGE, FailingOffloader, FullStorage
from tests.adapters.odd import LIMIT, MAX_TOKENS, odd_forms
from tests.adapters.pydantic_ai.agents import parts_of, returning, run
from tests.adapters.scripts import call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer


class Row(BaseModel):
    text: str


@ERRORS
async def test_a_result_above_the_hard_limit_is_stored_raw_and_can_be_read_back(
    server: ScriptedServer, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)
    tools = [returning(HUGE, "huge"), returning(LARGE, "large")]

    script, _ = await run(
        server, ToolOffloader(offloader, scope="mine"), [("huge", {}), ("large", {})], reading(offset=-10), tools=tools
    )

    huge, large, found = script.shown[-1]
    assert large == LARGE
    assert len(huge) < 6_000
    assert offloader.load(shown_references(huge)[0], scope="mine").text == HUGE
    assert "huge  END\n" in found
    assert sum("could not offload" in record.message for record in caplog.records) == 2


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(HUGE, id="text"),
        pytest.param({"rows": HUGE}, id="object"),
        pytest.param([{"rows": HUGE}], id="list"),
        pytest.param(Row(text=HUGE), id="model"),
        pytest.param(10**60_000, id="number"),
        pytest.param([10**5_000, HUGE], id="list with a number of thousands of digits"),
        pytest.param(ToolReturn(return_value="few", content=HUGE), id="content"),
        pytest.param(ToolReturn(return_value="few", content=["a", HUGE]), id="parts of a content"),
        pytest.param(ToolFailed(HUGE), id="failure"),
    ],
)
async def test_whatever_a_tool_returns_or_raises_is_limited_if_it_cannot_be_stored(
    server: ScriptedServer, output: object
) -> None:
    offload = ToolOffloader(FailingOffloader(RuntimeError(), storage=FullStorage()))

    script, result = await run(server, offload, call(), tools=[returning(output)])

    assert CUT in script.shown[-1][0]
    assert len(result.all_messages_json()) <= 40_000


async def test_images_stay_unless_one_alone_is_too_large(server: ScriptedServer) -> None:
    def image(size: int) -> BinaryContent:
        return BinaryContent(b"x" * size, media_type="image/png")

    offload = ToolOffloader(FailingOffloader(RuntimeError()))
    small, large = image(3_000), image(30_000)

    _, result = await run(server, offload, call(), tools=[returning(["a caption", small, large])])

    (files,) = (part.content for part in parts_of(result) if isinstance(getattr(part, "content", None), list))
    (text,) = (part.content for part in parts_of(result) if hasattr(part, "outcome"))
    assert files == [small]
    assert "a caption" in text
    assert "is not shown]" in text


async def test_a_failed_conversion_does_not_bypass_the_limit(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "_block_of", broken)
    offload = ToolOffloader(Offloader(max_inline_tokens=5_000))

    script, _ = await run(server, offload, call(), tools=[returning(HUGE)])

    assert shown_references(script.shown[-1][0])


async def test_nothing_is_stored_if_the_scope_cannot_be_found(server: ScriptedServer) -> None:
    def broken(_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()
    offload = ToolOffloader(Offloader(storage, max_inline_tokens=5_000), scope=broken)

    script, _ = await run(server, offload, call(), tools=[returning(HUGE)])

    assert script.shown[-1][0].startswith(CUT)
    assert list(storage.entries("")) == []


async def test_values_are_cut_as_the_json_that_the_model_would_get(server: ScriptedServer) -> None:
    offload = ToolOffloader(Offloader(max_inline_tokens=5_000, require_scope=True), scope=lambda _: "")

    script, _ = await run(server, offload, call(), tools=[returning({"more": False, "next": None, "rows": HUGE})])

    assert script.shown[-1][0].startswith(CUT)
    assert '{"more":false,"next":null,"rows":"' in script.shown[-1][0]


async def test_no_odd_result_raises_or_exceeds_the_limit(server: ScriptedServer) -> None:
    shape = {"data": "a", "media_type": "image/png", "url": "https://a", "kind": "image-url"}
    results = [*odd_forms(shape), *(ToolReturn(return_value=form, content=["a"]) for form in odd_forms(shape))]
    tools = [returning(result, f"fetch_{number}") for number, result in enumerate(results)]

    script, _ = await run(
        server, ToolOffloader(max_inline_tokens=MAX_TOKENS), [(tool.name, {}) for tool in tools], tools=tools
    )

    assert len(script.shown[-1]) == len(results)
    assert max(map(len, script.shown[-1])) <= LIMIT
