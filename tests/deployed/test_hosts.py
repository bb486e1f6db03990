"""Agents in production servers: the same promises hold there, however a request arrives."""

from __future__ import annotations

import uuid
from abc import ABC
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.error import HTTPError

import pytest

from coatcheck import RETRIEVAL_TOOL
from coatcheck.testing import ModelCall
from coatcheck.testing.scripting import shown_references
from tests.adapters.scripts import MIDDLE, Script, call, reading
from tests.deployed.hosts import ANSWER, AdkServer, AgentCore, AgentFramework, Hayhooks, LangGraphServer, PydanticAi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from coatcheck.testing import Received
    from tests.deployed.hosts import Host

AT_ONCE = 8
WANTED: dict[str, Any] = {"pattern": "^line 1,000 ", "context_lines": 0}


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[type[Host]], Host]]:
    """Start each server when a test first asks for it: some take ten seconds."""
    with ExitStack() as until_the_end:
        yield cache(lambda runs: until_the_end.enter_context(runs.started(tmp_path_factory.mktemp("deployed"))))


class HostContract(ABC):
    """The promises that hold in every server."""

    runs: ClassVar[type[Host]]
    agent: ClassVar[str] = "night"

    @pytest.fixture
    def host(self, hosts: Callable[[type[Host]], Host]) -> Host:
        return hosts(self.runs)

    @pytest.fixture
    def session(self) -> str:
        return str(uuid.uuid4())

    def test_the_agent_reads_back_what_its_tool_returned(self, host: Host, session: str) -> None:
        host.model.plays = script = Script(call(), reading(**WANTED))

        assert ANSWER in host.ask(session, agent=self.agent)
        assert script.shown[1][0].startswith("Tool result offloaded.")
        assert MIDDLE not in script.shown[1][0]
        assert MIDDLE in script.shown[2][1]

    def test_the_answer_streams(self, host: Host, session: str) -> None:
        host.model.plays = script = Script(call(), reading(**WANTED))

        assert ANSWER in host.stream(session, agent=self.agent)
        assert MIDDLE in script.shown[2][1]

    def test_another_session_cannot_read_it(self, host: Host, session: str) -> None:
        host.model.plays = script = Script(call())
        host.ask(session, agent=self.agent)
        [reference] = shown_references(script.shown[1][0])

        for asks, finds in ((str(uuid.uuid4()), False), (session, True)):
            host.model.plays = script = Script(call(RETRIEVAL_TOOL, reference=reference, **WANTED))
            host.ask(asks, agent=self.agent)
            assert (MIDDLE in script.shown[1][-1]) is finds

    def test_many_concurrent_sessions_each_get_their_own_content(self, host: Host) -> None:
        host.model.plays = plays = WhateverComesNext()
        # Always the same names: references differ in four digits, which two of many random ones could share.
        sessions = [str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.agent} {number}")) for number in range(AT_ONCE)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = pool.map(lambda session: host.ask(session, agent=self.agent), sessions)
            assert all(ANSWER in answer for answer in answers)
        assert len(plays.references) == AT_ONCE, "sessions shared a scope"


class WhateverComesNext:
    """Fetches, reads back and answers, for whichever session asks."""

    def __init__(self) -> None:
        self.references: set[str] = set()

    def __call__(self, received: Sequence[Received]) -> list[ModelCall]:
        if not received:
            return [ModelCall(tool="fetch", arguments={}, call_id=f"call_{uuid.uuid4()}")]
        [reference, *_] = shown_references(received[0].text)
        self.references.add(reference)
        if len(received) == 1:
            arguments = {"reference": reference, **WANTED}
            return [ModelCall(tool=RETRIEVAL_TOOL, arguments=arguments, call_id=f"call_{uuid.uuid4()}")]
        assert MIDDLE in received[1].text
        return []


class TestAMiddlewareInLangGraphsServer(HostContract):
    runs, agent = LangGraphServer, "middleware"

    def test_the_server_notices_what_blocks_its_loop(self, host: Host, session: str) -> None:
        assert "BlockingError" in host.ask(session, agent="blocking")


class TestAWrappedToolNodeInLangGraphsServer(HostContract):
    runs, agent = LangGraphServer, "node"


class TestTheStoreOfLangGraphsServer(HostContract):
    runs, agent = LangGraphServer, "store"

    def test_the_server_can_keep_clients_out_of_the_store(self, host: Host, session: str) -> None:
        host.model.plays = Script(call())
        host.ask(session, agent=self.agent)

        with pytest.raises(HTTPError, match="403"):
            host.post("/store/items/search", {"namespace_prefix": ["coatcheck"]})


class TestTheApiServerOfGoogleAdk(HostContract):
    runs = AdkServer


class TestHayhooks(HostContract):
    runs = Hayhooks


class TestTheRuntimeOfAgentCore(HostContract):
    runs = AgentCore


class TestPydanticAiBehindAgUi(HostContract):
    runs = PydanticAi


class TestTheAgentFrameworkBehindAgUi(HostContract):
    runs = AgentFramework
