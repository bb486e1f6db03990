"""The contract through the Microsoft Agent Framework: what reaches the model over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from agent_framework import observability

import coatcheck_agent_framework.hook
from tests.contract.agent_framework_harness import AgentFrameworkHarness
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, without_arguments
from tests.contract.definition import MAX_TOKENS, tokens_on_the_wire
from tests.contract.deliveries import ASYNC_ONLY
from tests.contract.golden import Contract
from tests.contract.inexpressible import AGENT_FRAMEWORK, AGENT_FRAMEWORK_BY_CHAT
from tests.contract.telemetry import parents
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_framework import FunctionInvocationContext

    from coatcheck.testing.server import ScriptedServer


pytestmark = pytest.mark.filterwarnings("ignore:An actionable function_call had an empty call_id:FutureWarning")


class TestResponses(Contract):
    lacks = AGENT_FRAMEWORK
    deliveries = ASYNC_ONLY

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> AgentFrameworkHarness:
        return AgentFrameworkHarness(server)


class TestChatCompletions(Contract):
    lacks = AGENT_FRAMEWORK_BY_CHAT
    deliveries = ("async, memory",)

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> AgentFrameworkHarness:
        return AgentFrameworkHarness(server, "chat completions")


async def test_our_spans_are_children_of_the_spans_that_the_framework_makes(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    # The framework asks for the global provider, which can be set only once per process.
    monkeypatch.setattr(observability, "get_tracer", lambda: telemetry.tracer_provider.get_tracer("agent_framework"))
    monkeypatch.setattr(observability.OBSERVABILITY_SETTINGS, "enable_instrumentation", True)

    found = await parents(AgentFrameworkHarness(server), telemetry, mode="async")

    assert found["retrieve offloaded content"] == "execute_tool retrieve_offloaded_content"
    # The framework ends a tool's span before middleware gets the result.
    assert str(found["offload search"]).startswith("invoke_agent ")
    assert len(found) == 2


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(AgentFrameworkHarness) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_agent_framework.hook.Sessions, "identity_of", nothing)


def trusts_any_session(patch: pytest.MonkeyPatch) -> None:
    def identity_of(_: object, context: FunctionInvocationContext) -> str | None:
        return None if context.session is None else context.session.session_id

    patch.setattr(coatcheck_agent_framework.hook.Sessions, "identity_of", identity_of)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_agent_framework.hook, "Arrival", without_arguments)


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "takes a session of the framework's for one of the host's": (trusts_any_session, "no list without an identity"),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_agent_framework.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: ScriptedServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, AgentFrameworkHarness(server), patch=monkeypatch, folder=tmp_path)
