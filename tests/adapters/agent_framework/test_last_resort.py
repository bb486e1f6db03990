"""Where our rewriting fails, a hard limit still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from agent_framework import SKIP_PARSING, Content

from coatcheck import InMemoryStorage, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader
from coatcheck_agent_framework import convert as module
from tests.adapters.agent_framework.agents import returning, run
from tests.adapters.failing import ERRORS, HUGE, LARGE, FailingOffloader, FullStorage
from tests.adapters.scripts import call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer

CUT = "Tool result cut."


@ERRORS
async def test_what_is_far_too_large_is_stored_raw_and_can_be_read_back(
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


async def test_a_conversion_that_fails_is_no_way_around_the_limit(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "_block_of", broken)
    offload = ToolOffloader(Offloader(max_inline_tokens=5_000))

    script = await run(server, offload, [returning(HUGE)], call())

    assert shown_references(script.shown[-1][0])


async def test_where_the_scope_cannot_be_found_nothing_is_stored(server: ScriptedServer) -> None:
    def broken(_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()
    offload = ToolOffloader(Offloader(storage, max_inline_tokens=5_000), scope=broken)

    script = await run(server, offload, [returning(HUGE)], call())

    assert script.shown[-1][0].startswith(CUT)
    assert list(storage.entries("")) == []
