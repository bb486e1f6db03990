"""The contract through Google ADK: what reaches the model over the wire."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events import EventActions
from google.adk.telemetry import tracing

import coatcheck_adk.hook
import coatcheck_adk.retrieval
from coatcheck import TiktokenCounter
from coatcheck_adk import OffloadPlugin
from tests.contract.breaking import EVERYWHERE, Break, check_killed, nothing, silent, without_arguments
from tests.contract.definition import MAX_TOKENS
from tests.contract.deliveries import ASYNC_ON_FILES
from tests.contract.gemini import GeminiServer
from tests.contract.golden import Contract
from tests.contract.google_adk_harness import GoogleAdkHarness
from tests.contract.inexpressible import GOOGLE_ADK
from tests.contract.telemetry import parents
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@pytest.fixture(scope="session")
def server() -> Iterator[GeminiServer]:
    with GeminiServer().serving() as serving:
        assert isinstance(serving, GeminiServer)
        yield serving


PASSES_CONTEXT = tuple(map(int, version("google-adk").split(".")[:2])) >= (2, 10)
"""Whether the sync ``Runner.run`` passes context variables to its thread."""


class TestApp(Contract):
    lacks = GOOGLE_ADK if PASSES_CONTEXT else {**GOOGLE_ADK, "shared adapters": "its thread sees no ambient scope"}
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self, server: GeminiServer) -> GoogleAdkHarness:
        return GoogleAdkHarness(server)


async def test_our_spans_are_children_of_the_spans_that_adk_makes(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    real, tracer = tracing.tracer, telemetry.tracer_provider.get_tracer("google.adk")
    for module in [name for name in sys.modules if name.startswith("google.adk")]:
        if getattr(sys.modules[module], "tracer", None) is real:
            monkeypatch.setattr(sys.modules[module], "tracer", tracer)

    found = await parents(GoogleAdkHarness(server), telemetry, mode="async")

    assert found == {
        "offload search": "execute_tool search",
        "retrieve offloaded content": "execute_tool retrieve_offloaded_content",
    }


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    declaration = OffloadPlugin().retrieval_tool._get_declaration().model_dump(exclude_none=True)

    # Google's client puts spaces between the values; no model sees them.
    assert TiktokenCounter("o200k_base").count(json.dumps(declaration, separators=(",", ":"))) <= MAX_TOKENS


def ignores_the_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_adk.hook, "identity_of", nothing)
    patch.setattr(coatcheck_adk.retrieval, "identity_of", nothing)


def knows_the_session_alone(patch: pytest.MonkeyPatch) -> None:
    def session_of(context: Any) -> str:
        return str(context.session.id)

    patch.setattr(coatcheck_adk.hook, "identity_of", session_of)
    patch.setattr(coatcheck_adk.retrieval, "identity_of", session_of)


def drops_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coatcheck_adk.hook, "Arrival", without_arguments)


def to_the_model(patch: pytest.MonkeyPatch) -> None:
    def looking(result: Any) -> Any:
        object.__setattr__(result, "context", Blind(result.context))
        return look(result)

    look = coatcheck_adk.hook.Result.look
    patch.setattr(coatcheck_adk.hook.Result, "look", looking)


class Blind:
    """A call's context that does not say that the answer is final."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.actions = EventActions()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


BREAKS: Mapping[str, Break] = {
    **EVERYWHERE,
    "ignores the identity": (ignores_the_identity, "reference from another conversation of the framework"),
    "knows the session alone": (knows_the_session_alone, "identity from the framework"),
    "says nothing": (silent("coatcheck_adk"), "a tool of the user's with the retrieval tool's name"),
    "drops arguments": (drops_arguments, "policy function that looks at arguments"),
    "keeps nothing": (
        lambda patch: patch.setattr(coatcheck_adk.hook, "asks_to_keep", nothing),
        "a result that the host keeps",
    ),
    "takes no result for an error": (lambda patch: patch.setattr(coatcheck_adk.hook, "is_error", nothing), "error"),
    "offloads final answers": (to_the_model, "a final answer"),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_contract_kills_a_broken_adapter(
    server: GeminiServer, broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed(broken, GoogleAdkHarness(server), patch=monkeypatch, folder=tmp_path)
