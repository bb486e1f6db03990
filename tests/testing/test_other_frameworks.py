"""The kit fits unusual frameworks: ids that are unique only per user, or another provider's wire format."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from coatcheck.testing import (
    SCENARIOS,
    AdapterContract,
    Conversation,
    ModelCall,
    Received,
    Response,
    Run,
    ScriptedServer,
)
from coatcheck.testing.toy import ToyHarness
from tests.testing.test_leaking_adapters import with_

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from coatcheck import Scope
    from coatcheck.testing import Scenario, Transcript

OF_ERRORS = [scenario for scenario in SCENARIOS if scenario.needs & {"errors", "marked answers"}]
OF_IDENTITIES = [scenario for scenario in SCENARIOS if scenario.scope_from in {"identity", "both"}]


class KnowsTheUserToo(ToyHarness):
    """An adapter that derives a user and a session from the framework's session id."""

    def run(self, case: Run) -> Transcript:
        return super().run(with_(case, identity=case.identity and ("ada", case.identity)))


class SaysSo(KnowsTheUserToo):
    """Its harness says which scope the adapter must derive."""

    def scope_of(self, identity: str) -> Scope:
        return ("ada", identity)


def check(harness: ToyHarness, scenario: Scenario, folder: Path) -> None:
    AdapterContract().test_scenario(harness, scenario=scenario, delivery="sync, memory", tmp_path=folder)


@pytest.mark.parametrize("scenario", OF_IDENTITIES, ids=lambda scenario: str(scenario.name))
def test_a_harness_may_say_that_an_id_is_a_part_of_the_scope(scenario: Scenario, tmp_path: Path) -> None:
    check(SaysSo(), scenario, tmp_path)


def test_the_scope_must_be_the_id_unless_the_harness_says_otherwise(tmp_path: Path) -> None:
    (scenario,) = (scenario for scenario in SCENARIOS if scenario.name == "identity from the framework")

    with pytest.raises(AssertionError):
        check(KnowsTheUserToo(), scenario, tmp_path)


class MarksNothingButErrors(ToyHarness):
    """A framework whose messages have a mark only if they are errors, such as ``is_error`` of the Anthropic API."""

    def run(self, case: Run) -> Transcript:
        ran = super().run(case)
        return replace(ran, received=tuple(replace(one, is_error=one.is_error or None) for one in ran.received))


@pytest.mark.parametrize("scenario", OF_ERRORS, ids=lambda scenario: str(scenario.name))
def test_a_message_without_a_mark_is_no_error(scenario: Scenario, tmp_path: Path) -> None:
    check(MarksNothingButErrors(), scenario, tmp_path)


class Shouting(Conversation):
    """Another provider's wire format: one word per call, and a path of its own."""

    def takes(self, path: str) -> bool:
        return path == "shout"

    def received_in(self, body: dict[str, Any]) -> tuple[Received, ...]:
        return tuple(Received(text=word, raw=word) for word in body["heard"])

    def offered_in(self, body: dict[str, Any]) -> frozenset[str]:
        return frozenset(body["tools"])

    def respond(self, body: dict[str, Any], calls: Sequence[ModelCall], *, says: str | None, path: str) -> Response:
        return Response(json.dumps([says or call.tool.upper() for call in calls] or [says]))


class ShoutingServer(ScriptedServer):
    speaks: ClassVar[type[Conversation]] = Shouting


def ask(url: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    with urlopen(Request(url, json.dumps(body).encode())) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def test_a_server_may_speak_another_providers_wire_format() -> None:
    def model(received: Sequence[Received]) -> Sequence[ModelCall]:
        return () if received else [ModelCall(tool="fetch", arguments={}, call_id=None)]

    with ShoutingServer().serving() as server, server.conversation(model) as conversation:
        first = ask(f"{conversation.base_url}/shout", {"heard": [], "tools": ["fetch"]})
        second = ask(f"{conversation.base_url}/shout", {"heard": ["a page"], "tools": ["fetch"]})
        with pytest.raises(HTTPError, match="404") as refused:
            ask(f"{conversation.base_url}/chat/completions", {})
        refused.value.close()

    assert (first, second) == (["FETCH"], ["done"])
    assert conversation.transcript().received[0].text == "a page"
    assert conversation.transcript().offered == {"fetch"}
