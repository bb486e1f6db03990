"""Conversations, hooks, pipelines and stores that earlier versions left: they are read, and conversations continue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from haystack import Pipeline
from haystack.dataclasses import ChatMessage
from haystack.hooks.tool_result_offloading import FileSystemToolResultStore

from coatcheck import ToolResultStoreBridge
from coatcheck_haystack import ToolResultOffloadHook, offloaded_references
from tests.adapters.haystack.agents import agent_of, read, results, run, say, text_of, tool_messages
from tests.formats.kept import check_conversation, check_storage, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path


@every_version
@pytest.mark.parametrize("name", ["haystack", "haystack-with-a-store"])
async def test_a_conversation_from_an_earlier_version_continues(version: str, name: str, tmp_path: Path) -> None:
    left = left_by(version, name, tmp_path)
    hook = ToolResultOffloadHook.from_dict(json.loads((tmp_path / "hook.json").read_text()))
    before = [ChatMessage.from_dict(message) for message in json.loads((tmp_path / "messages.json").read_text())]
    agent, _ = agent_of([], read(pattern="^line 1,000 of"), say(), hook=hook)

    after = (await run(agent, question=[*before, ChatMessage.from_user("go on")]))["messages"]

    assert tool_messages(after)[:-1] == tool_messages(before), "nothing is offloaded again"
    assert [list(offloaded_references(message)) for message in tool_messages(before)] == left.references
    assert "> 1000| line 1,000 of 2,000" in text_of(results(after)[-1])
    check_conversation(hook.offloader, left)


@every_version
@pytest.mark.parametrize("name", ["haystack", "haystack-with-a-store"])
def test_a_pipeline_from_an_earlier_version_is_loaded(version: str, name: str, tmp_path: Path) -> None:
    left = left_by(version, name, tmp_path)

    agent: Any = Pipeline.loads((tmp_path / "pipeline.yaml").read_text()).get_component("agent")

    (hook,) = agent.hooks["after_tool"]
    check_conversation(hook.offloader, left)


@every_version
def test_a_store_from_an_earlier_version_is_read(version: str, tmp_path: Path) -> None:
    left = left_by(version, "haystack-store", tmp_path)

    check_storage(ToolResultStoreBridge(FileSystemToolResultStore(tmp_path / "results")), left)
