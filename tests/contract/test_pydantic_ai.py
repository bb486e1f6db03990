"""The contract through Pydantic AI: what reaches the model over the wire."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider

import coatcheck_pydantic_ai.hook
import coatcheck_pydantic_ai.offloader
import coatcheck_pydantic_ai.retrieval
from coatcheck import InMemoryStorage
from coatcheck.testing import ScriptedServer
from coatcheck_pydantic_ai import ToolOffloader
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, without_arguments
from tests.contract.definition import MAX_TOKENS, tokens_on_the_wire
from tests.contract.deliveries import ASYNC_ON_FILES
from tests.contract.golden import Contract
from tests.contract.inexpressible import PYDANTIC_AI, PYDANTIC_AI_CANNOT
from tests.contract.loops import on_a_loop
from tests.contract.pydantic_ai_harness import PydanticAIHarness
from tests.contract.wires import FILE, ON_EACH_WIRE, check_native_media, check_wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_ai.models import Model

    from coatcheck.testing.server import Conversation


class TestContract(Contract):
    lacks = PYDANTIC_AI
    cannot = PYDANTIC_AI_CANNOT
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> PydanticAIHarness:
        return PydanticAIHarness(server)


class OnAnthropic(PydanticAIHarness):
    def model(self, conversation: Conversation) -> Model:
        return AnthropicModel("scripted", provider=AnthropicProvider(api_key="none", base_url=conversation.base_url))


class OnBedrock(PydanticAIHarness):
    def model(self, conversation: Conversation) -> Model:
        return BedrockConverseModel("anthropic.scripted", provider=BedrockProvider(base_url=conversation.base_url))


@ON_EACH_WIRE
def test_anthropic_and_bedrock_clients_carry_the_same_content(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = OnBedrock if wire == "bedrock" else OnAnthropic

    check_wire(wire, harness, lacks=PYDANTIC_AI, patch=monkeypatch, folder=tmp_path)


@ON_EACH_WIRE
def test_both_providers_accept_a_file_that_is_read_back_twice(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = OnBedrock if wire == "bedrock" else OnAnthropic

    def fetch() -> BinaryContent:
        return BinaryContent(FILE, media_type="application/pdf")

    def run(conversation: Conversation) -> None:
        offload = ToolOffloader(InMemoryStorage(), native_media=True, max_result_tokens=100)
        model = harness(ScriptedServer()).model(conversation)
        on_a_loop(partial(Agent(model, tools=[fetch], capabilities=[offload]).run_sync, "Find out."))

    check_native_media(wire, run, patch=monkeypatch)


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(PydanticAIHarness) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_pydantic_ai.hook, "identity_of", nothing)
    patch.setattr(coatcheck_pydantic_ai.retrieval, "identity_of", nothing)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_pydantic_ai.hook, "Arrival", without_arguments)


def patches_tools(patch: pytest.MonkeyPatch) -> None:
    inner = ToolOffloader.wrap_tool_execute

    async def patching(self: ToolOffloader, ctx: Any, **given: Any) -> Any:
        tools = ctx.agent.toolsets[0].tools
        for tool in tools.values():
            tool.description = "Gives a placeholder."
        return await inner(self, ctx, **given)

    patch.setattr(ToolOffloader, "wrap_tool_execute", patching)


def drops_content(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "coatcheck_pydantic_ai.convert._halves_of", lambda result: (getattr(result, "return_value", result), ())
    )


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "patches tools": (patches_tools, "the user's own tools"),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_pydantic_ai.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
    "sees no errors": (
        lambda patch: patch.setattr(coatcheck_pydantic_ai.offloader, "FAILURES", ()),
        "errors may leave",
    ),
    "drops what comes next to a value": (drops_content, "several texts"),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: ScriptedServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, PydanticAIHarness(server), patch=monkeypatch, folder=tmp_path)
