"""The contract through Haystack: what reaches the model over the wire from an ``Agent`` with the hook."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from haystack.tracing.tracer import tracer
from haystack.utils import Secret
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

import coatcheck_haystack.agents
import coatcheck_haystack.hook
from coatcheck_haystack.options import Source
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, silent, without_arguments
from tests.contract.definition import MAX_TOKENS, tokens_on_the_wire
from tests.contract.deliveries import ASYNC_ON_FILES
from tests.contract.golden import Contract
from tests.contract.haystack_harness import HaystackHarness
from tests.contract.inexpressible import HAYSTACK
from tests.contract.telemetry import parents
from tests.contract.wires import ON_EACH_WIRE, check_wire
from tests.core.telemetry import Telemetry
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from coatcheck.testing.server import Conversation, ScriptedServer


class TestAgent(Contract):
    lacks = HAYSTACK
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> HaystackHarness:
        return HaystackHarness(server)


def client_of(provider: str) -> Any:
    return pytest.importorskip(f"haystack_integrations.components.generators.{provider}", reason="needs Python 3.11")


@ON_EACH_WIRE
def test_anthropic_and_bedrock_clients_carry_the_same_content(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of("amazon_bedrock" if wire == "bedrock" else "anthropic")

    class Harness(HaystackHarness):
        def generator(self, conversation: Conversation) -> Any:
            # Neither generator accepts a server's address.
            if wire == "bedrock":
                monkeypatch.setenv("AWS_ENDPOINT_URL", conversation.base_url)
                return client.AmazonBedrockChatGenerator("anthropic.scripted")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", conversation.base_url)
            return client.AnthropicChatGenerator(
                Secret.from_token("none"), "scripted", timeout=CLIENT_SECONDS, max_retries=0
            )

    check_wire(wire, Harness, lacks=HAYSTACK, patch=monkeypatch, folder=tmp_path)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_our_spans_are_children_of_the_spans_that_haystack_makes(
    server: ScriptedServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    monkeypatch.setattr(tracer, "actual_tracer", OpenTelemetryTracer(telemetry.tracer))

    assert await parents(HaystackHarness(server), telemetry, mode=mode) == {
        "offload search": "haystack.agent.hook",
        "retrieve offloaded content": "haystack.agent.step.tool",
    }


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(HaystackHarness) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Source, "identity_of", nothing)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_haystack.hook, "Arrival", without_arguments)


def patches_tools(patch: pytest.MonkeyPatch) -> None:
    before = coatcheck_haystack.agents.tools_of

    def patching(state: Any) -> Any:
        tools = before(state)
        for tool in tools:
            tool.description = "Gives a preview."
        return tools

    patch.setattr(coatcheck_haystack.hook, "tools_of", patching)


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "patches tools": (patches_tools, "the user's own tools"),
    "takes any name": (silent("coatcheck_haystack"), "a tool of the user's with the retrieval tool's name"),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_haystack.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
    "offloads for code": (
        lambda patch: patch.setattr(coatcheck_haystack.hook, "is_called_by_code", nothing),
        "a result for code",
    ),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: ScriptedServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, HaystackHarness(server), patch=monkeypatch, folder=tmp_path)
