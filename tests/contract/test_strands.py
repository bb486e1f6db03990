"""The contract through Strands Agents: what reaches the model over the wire."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import strands.telemetry.tracer
from opentelemetry import trace
from strands.models.anthropic import AnthropicModel
from strands.models.bedrock import BedrockModel

import coatcheck_strands.hook
import coatcheck_strands.retrieval
from coatcheck.testing import ScriptedServer
from coatcheck_strands import ContextOffloader, InMemoryStorage
from coatcheck_strands.convert import rewrite
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, raising, silent, without_arguments
from tests.contract.definition import MAX_TOKENS, tokens_on_the_wire
from tests.contract.deliveries import SYNC_ON_FILES
from tests.contract.golden import Contract
from tests.contract.inexpressible import STRANDS
from tests.contract.strands_harness import StrandsHarness
from tests.contract.telemetry import parents
from tests.contract.wires import FILE, ON_EACH_WIRE, check_native_media, check_wire
from tests.core.telemetry import Telemetry
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strands.models import Model

    from coatcheck.testing.server import Conversation


class TestAgent(Contract):
    lacks = STRANDS
    deliveries = SYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> StrandsHarness:
        return StrandsHarness(server)


class OnAnthropic(StrandsHarness):
    def model(self, conversation: Conversation) -> Model:
        arguments = {"base_url": conversation.base_url, "api_key": "none", "max_retries": 0, "timeout": CLIENT_SECONDS}
        return AnthropicModel(client_args=arguments, model_id="scripted", max_tokens=100)


class OnBedrock(StrandsHarness):
    def model(self, conversation: Conversation) -> Model:
        return BedrockModel(model_id="anthropic.scripted", endpoint_url=conversation.base_url, streaming=False)


@ON_EACH_WIRE
def test_anthropic_and_bedrock_clients_carry_the_same_content(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = OnBedrock if wire == "bedrock" else OnAnthropic

    check_wire(wire, harness, lacks=STRANDS, patch=monkeypatch, folder=tmp_path)


@ON_EACH_WIRE
def test_both_providers_accept_a_document_that_is_read_back_twice(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = OnBedrock if wire == "bedrock" else OnAnthropic

    @strands.tool(description="Gives a report.")
    def fetch() -> dict[str, Any]:
        document = {"format": "pdf", "name": "report", "source": {"bytes": FILE}}
        return {"status": "success", "content": [{"document": document}]}

    def run(conversation: Conversation) -> None:
        model, plugin = harness(ScriptedServer()).model(conversation), ContextOffloader(InMemoryStorage())
        strands.Agent(model, tools=[fetch], plugins=[plugin], callback_handler=None)("Find out.")

    check_native_media(wire, run, patch=monkeypatch)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_our_spans_are_children_of_the_spans_that_strands_makes(
    server: ScriptedServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    # Strands asks for the global provider once per process, and it can be set only once per process.
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: telemetry.tracer_provider)
    monkeypatch.setattr(strands.telemetry.tracer, "_tracer_instance", None)

    found = await parents(StrandsHarness(server), telemetry, mode=mode)

    assert found["retrieve offloaded content"] == "execute_tool retrieve_offloaded_content"
    # Strands 1.54 calls its hooks before it ends the tool's span, 1.62 after that.
    assert found["offload search"] in {"execute_tool search", "execute_event_loop_cycle"}
    assert len(found) == 2


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(StrandsHarness) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_strands.hook, "identity_of", nothing)
    patch.setattr(coatcheck_strands.retrieval, "identity_of", nothing)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_strands.hook, "Arrival", without_arguments)


def patches_tools(patch: pytest.MonkeyPatch) -> None:
    def patching(self: Any, agent: Any) -> None:
        for tool in agent.tool_registry.registry.values():
            tool._tool_spec = {**tool.tool_spec, "description": "Gives a preview."}

    patch.setattr(coatcheck_strands.hook.ContextOffloader, "init_agent", patching)


def changes_what_the_tool_returned(patch: pytest.MonkeyPatch) -> None:
    def rewriting(result: Any, outcome: Any) -> Any:
        result["content"] = rewrite(result, outcome)["content"]
        return result

    patch.setattr(coatcheck_strands.hook, "rewrite", rewriting)


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "has no guard for reads": (
        lambda patch: patch.setattr(coatcheck_strands.retrieval, "failure_for_model", raising),
        "reading back fails",
    ),
    "changes what the tool returned": (changes_what_the_tool_returned, "just above the threshold"),
    "patches tools": (patches_tools, "the user's own tools"),
    "takes any name": (silent("coatcheck_strands"), "a tool of the user's with the retrieval tool's name"),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_strands.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: ScriptedServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, StrandsHarness(server), patch=monkeypatch, folder=tmp_path)
