"""The framework's compaction drops placeholders; the line of ``keep_references`` keeps their references."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from agent_framework import (
    CharacterEstimatorTokenizer,
    ContextWindowCompactionStrategy,
    Message,
    SelectiveToolCallCompactionStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    apply_compaction,
)

from coatcheck import keep_references
from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader, offloaded_references
from tests.adapters.agent_framework.agents import agent_on, playing, results_in, returning
from tests.adapters.scripts import BIG, MIDDLE, Script, call

if TYPE_CHECKING:
    from agent_framework import CompactionStrategy

    from coatcheck.testing import ScriptedServer

STRATEGIES = {
    "collapsed tool calls": ToolResultCompactionStrategy(keep_last_tool_call_groups=0),
    "dropped tool calls": SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=0),
    "dropped messages": TruncationStrategy(max_n=1, compact_to=1),
    "a small window": ContextWindowCompactionStrategy(
        max_context_window_tokens=300,
        max_output_tokens=100,
        keep_last_tool_call_groups=0,
        tokenizer=CharacterEstimatorTokenizer(),
    ),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
async def test_after_any_compaction_the_line_of_references_still_reads_back(
    strategy: CompactionStrategy, server: ScriptedServer
) -> None:
    offload, script = ToolOffloader(), Script(call())
    with playing(server, script) as client:
        agent = agent_on(client, offload, [returning(BIG)])
        session = agent.create_session(session_id="conversation-1")
        messages = [Message("user", ["Go."]), *(await agent.run("Go.", session=session)).messages]
    (reference,) = shown_references(script.shown[-1][0])
    line = keep_references(messages)

    compacted = await apply_compaction([*messages], strategy=strategy)

    assert reference in line
    assert results_in(compacted) == []
    assert keep_references([*compacted, Message("user", [line])]) == line
    assert MIDDLE in offload.offloader.retrieve(reference, scope="conversation-1", pattern=MIDDLE).text


async def test_the_references_of_an_offloaded_error_are_found_behind_the_frameworks_words(
    server: ScriptedServer,
) -> None:
    offload, script = ToolOffloader(offload_errors=True), Script(call())
    with playing(server, script) as client:
        client.function_invocation_configuration["include_detailed_errors"] = True
        messages = (await agent_on(client, offload, [returning(LookupError(BIG))]).run("Go.")).messages

    (shown,) = results_in(messages)
    (reference,) = offloaded_references(shown)
    assert shown.result.startswith("Error: ")
    assert reference in keep_references(messages)
    assert reference in script.shown[-1][0]
