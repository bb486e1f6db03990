"""The contract, through the proxy, for agents of four frameworks as MCP clients: ``nox -s mcp_clients``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import AdapterContract
from tests.contract.inexpressible import MCP, PYDANTIC_AI_CANNOT
from tests.contract.inexpressible import OPENAI_AGENTS as FOR_OPENAI
from tests.contract.inexpressible import STRANDS as FOR_STRANDS
from tests.mcp_clients.foreign import ENVIRONMENTS
from tests.mcp_clients.harness import ForeignHarness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.testing import Capability, ScriptedServer
    from tests.mcp_clients.foreign import ForeignAgent

pytestmark = pytest.mark.skipif(not ENVIRONMENTS.name, reason="needs the frameworks that `nox -s mcp_clients` installs")

LANGCHAIN: Mapping[Capability, str] = {
    **MCP,
    "audio": "langchain-mcp-adapters raises where a result has audio",
    "missing call ids": "langchain-mcp-adapters ends the run where a call has no id",
    "sync": "tools of langchain-mcp-adapters are async only",
    "unknown blocks": "OpenAI's client refuses resource links, of which langchain-mcp-adapters makes files at a URL",
}
STRANDS: Mapping[Capability, str] = {
    **MCP,
    **{name: FOR_STRANDS[name] for name in ("any tool names", "missing call ids")},
    "unknown blocks": "Strands' MCP client drops resource links, without a word",
}
OPENAI: Mapping[Capability, str] = {
    **MCP,
    **{name: FOR_OPENAI[name] for name in ("missing call ids", "repeated call ids")},
    "unknown blocks": "the OpenAI Agents SDK shows resource links as JSON text",
}
PYDANTIC: Mapping[Capability, str] = {
    **MCP,
    "unknown blocks": "Pydantic AI shows the address of resource links as text",
}


class TestLangChainOnStdio(AdapterContract):
    lacks = LANGCHAIN
    deliveries = ("async, memory",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, langchain: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, langchain, transport="stdio")


class TestLangChainOverHttp(AdapterContract):
    lacks = LANGCHAIN
    deliveries = ("async, files",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, langchain: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, langchain, transport="http")


class TestStrandsOnStdio(AdapterContract):
    lacks = STRANDS
    deliveries = ("sync, memory",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, strands: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, strands, transport="stdio")


class TestStrandsOverHttp(AdapterContract):
    lacks = STRANDS
    deliveries = ("async, files",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, strands: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, strands, transport="http")


class TestOpenAIOnStdio(AdapterContract):
    lacks = OPENAI
    deliveries = ("async, memory",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, openai: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, openai, transport="stdio")


class TestOpenAIOverHttp(AdapterContract):
    lacks = OPENAI
    deliveries = ("async, files",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, openai: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, openai, transport="http")


class TestPydanticOnStdio(AdapterContract):
    lacks = PYDANTIC
    cannot = PYDANTIC_AI_CANNOT
    deliveries = ("async, memory",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, pydantic: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, pydantic, transport="stdio")


class TestPydanticOverHttp(AdapterContract):
    lacks = PYDANTIC
    cannot = PYDANTIC_AI_CANNOT
    deliveries = ("async, files",)

    @pytest.fixture
    def harness(self, server: ScriptedServer, pydantic: ForeignAgent) -> ForeignHarness:
        return ForeignHarness(server, pydantic, transport="http")
