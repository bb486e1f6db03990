"""The contract through LangChain: what reaches the model over the wire, for the three ways to build an agent."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_aws import ChatBedrockConverse

import coatcheck_langchain.hook
import coatcheck_langchain.messages
import coatcheck_langchain.retrieval
from coatcheck.testing import SCENARIOS, AdapterContract
from coatcheck_langchain.hook import CallWrapper
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, silent, without_arguments
from tests.contract.definition import MAX_TOKENS, tokens_on_the_wire
from tests.contract.deliveries import ASYNC_ON_FILES, SYNC_ONLY
from tests.contract.golden import Contract
from tests.contract.inexpressible import LANGCHAIN, LANGCHAIN_BY_CALL
from tests.contract.langgraph_harness import (
    CreateAgentHarness,
    LangChainHarness,
    ToolNodeHarness,
    WrappedNodeHarness,
)
from tests.contract.telemetry import HOST, parents
from tests.contract.wires import ON_EACH_WIRE, check_wire
from tests.core.telemetry import Telemetry
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import httpx
    from langchain_core.language_models import BaseChatModel

    from coatcheck.testing import Scenario
    from coatcheck.testing.server import Conversation, ScriptedServer

STREAMED = [scenario for scenario in SCENARIOS if scenario.name in {"parallel calls", "read by pattern"}]


class TestCreateAgent(Contract):
    lacks = LANGCHAIN_BY_CALL
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> CreateAgentHarness:
        return CreateAgentHarness(server)


class TestToolNode(Contract):
    lacks = LANGCHAIN_BY_CALL
    deliveries = SYNC_ONLY  # `ToolNode` calls the same hook as the middleware above

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> ToolNodeHarness:
        return ToolNodeHarness(server)


class TestWrappedNode(Contract):
    lacks = LANGCHAIN
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> WrappedNodeHarness:
        return WrappedNodeHarness(server)


class OnAnthropic(CreateAgentHarness):
    def model(self, conversation: Conversation, sync: httpx.Client, asynchronous: httpx.AsyncClient) -> BaseChatModel:
        made: Any = ChatAnthropic  # pydantic defines the types of its arguments
        model: BaseChatModel = made(
            model="scripted", base_url=conversation.base_url, api_key="none", max_retries=0, timeout=CLIENT_SECONDS
        )
        return model


class OnBedrock(CreateAgentHarness):
    def model(self, conversation: Conversation, sync: httpx.Client, asynchronous: httpx.AsyncClient) -> BaseChatModel:
        made: Any = ChatBedrockConverse  # as above
        model: BaseChatModel = made(model="anthropic.scripted", base_url=conversation.base_url)
        return model


@ON_EACH_WIRE
def test_anthropic_and_bedrock_clients_carry_the_same_content(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = OnBedrock if wire == "bedrock" else OnAnthropic

    check_wire(wire, harness, lacks=LANGCHAIN_BY_CALL, patch=monkeypatch, folder=tmp_path)


@pytest.mark.parametrize("delivery", ["sync, memory", "async, memory"])
@pytest.mark.parametrize("scenario", STREAMED, ids=lambda scenario: scenario.name)
def test_a_streaming_client_gets_the_same_results(
    server: ScriptedServer, scenario: Scenario, delivery: str, tmp_path: Path
) -> None:
    harness = CreateAgentHarness(server, streaming=True)

    AdapterContract().test_scenario(harness, scenario=scenario, delivery=delivery, tmp_path=tmp_path)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("kind", [CreateAgentHarness, ToolNodeHarness, WrappedNodeHarness])
async def test_our_spans_are_children_of_the_hosts(
    server: ScriptedServer, kind: type[LangChainHarness], mode: str
) -> None:
    assert await parents(kind(server), Telemetry(), mode=mode) == {
        "offload search": HOST,
        "retrieve offloaded content": HOST,
    }


@pytest.mark.parametrize("kind", [CreateAgentHarness, ToolNodeHarness, WrappedNodeHarness])
def test_the_definition_of_the_tool_costs_at_most_150_tokens(kind: type[LangChainHarness]) -> None:
    assert tokens_on_the_wire(kind) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_langchain.hook, "identity_of", nothing)
    patch.setattr(coatcheck_langchain.retrieval, "identity_of", nothing)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_langchain.hook, "Arrival", without_arguments)


def patches_tools(patch: pytest.MonkeyPatch) -> None:
    before = CallWrapper.awrap_tool_call

    async def patching(self: CallWrapper, request: Any, handler: Any) -> Any:
        request.tool.description = "Gives a preview."
        return await before(self, request, handler)

    patch.setattr(CallWrapper, "awrap_tool_call", patching)


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "patches tools": (patches_tools, "the user's own tools"),
    "takes any name": (silent("coatcheck_langchain"), "a tool of the user's with the retrieval tool's name"),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_langchain.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
    "offloads for code": (
        lambda patch: patch.setattr(coatcheck_langchain.messages, "is_for_code_only", nothing),
        "a result for code",
    ),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: ScriptedServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, CreateAgentHarness(server), patch=monkeypatch, folder=tmp_path)
