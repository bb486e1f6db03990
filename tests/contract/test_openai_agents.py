"""The contract through the OpenAI Agents SDK: what reaches the model over the wire."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import coatcheck_openai.hook
import coatcheck_openai.offloader
import coatcheck_openai.retrieval
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, without_arguments
from tests.contract.definition import MAX_TOKENS, tokens_on_the_wire
from tests.contract.deliveries import ASYNC_ON_FILES
from tests.contract.golden import Contract
from tests.contract.inexpressible import OPENAI_AGENTS, OPENAI_AGENTS_BY_CHAT, OPENAI_AGENTS_CANNOT
from tests.contract.openai_agents_harness import OpenAIAgentsHarness
from tests.contract.telemetry import HOST, parents
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from coatcheck.testing.server import ScriptedServer


class TestResponses(Contract):
    lacks = OPENAI_AGENTS
    cannot = OPENAI_AGENTS_CANNOT
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> OpenAIAgentsHarness:
        return OpenAIAgentsHarness(server)


class TestChatCompletions(Contract):
    lacks = OPENAI_AGENTS_BY_CHAT
    cannot = OPENAI_AGENTS_CANNOT
    deliveries = ASYNC_ON_FILES[-1:]

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> OpenAIAgentsHarness:
        return OpenAIAgentsHarness(server, "chat completions")


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_our_spans_are_children_of_the_hosts(server: ScriptedServer, mode: str) -> None:
    found = await parents(OpenAIAgentsHarness(server), Telemetry(), mode=mode)

    assert found == {"offload search": HOST, "retrieve offloaded content": HOST}


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(OpenAIAgentsHarness) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_openai.hook, "identity_of", nothing)
    patch.setattr(coatcheck_openai.retrieval, "identity_of", nothing)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_openai.hook, "Arrival", without_arguments)


def patches_tools(patch: pytest.MonkeyPatch) -> None:
    def patching(tool: Any, hook: Any) -> Any:
        tool.on_invoke_tool = coatcheck_openai.hook.Invoker(tool, hook)
        return tool

    patch.setattr(coatcheck_openai.offloader, "wrap_tool", patching)


def to_the_model(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_openai.hook, "is_for_others", nothing)


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "patches tools": (patches_tools, "the user's own tools"),
    "takes any name": (
        lambda patch: patch.setattr(coatcheck_openai.offloader, "refuse_name_clash", nothing),
        "a tool of the user's with the retrieval tool's name",
    ),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_openai.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
    "offloads final answers": (to_the_model, "a final answer"),
    "offloads results for code": (to_the_model, "a result for code"),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: ScriptedServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, OpenAIAgentsHarness(server), patch=monkeypatch, folder=tmp_path)
