"""The contract, through the proxy, for agents of four frameworks as MCP clients: ``nox -s mcp_clients``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from coatcheck.testing import AdapterContract
from tests.contract.inexpressible import MCP, PYDANTIC_AI_CANNOT
from tests.contract.inexpressible import OPENAI_AGENTS as FOR_OPENAI
from tests.contract.inexpressible import STRANDS as FOR_STRANDS
from tests.mcp_clients.foreign import ENVIRONMENTS
from tests.mcp_clients.harness import ForeignHarness, without_frame, without_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


class BehindTheProxy(AdapterContract):
    """Subclasses choose the framework and the transport."""

    framework: ClassVar[str]
    transport: ClassVar[str]

    def bare(self, text: str) -> str:
        return without_prefix(text)

    @pytest.fixture
    def harness(self, server: ScriptedServer, agents: Callable[[str], ForeignAgent]) -> ForeignHarness:
        return ForeignHarness(server, agents(self.framework), transport=self.transport, bare=self.bare)


class TestLangChainOnStdio(BehindTheProxy):
    framework, transport = "langchain", "stdio"
    lacks = LANGCHAIN
    deliveries = ("async, memory",)


class TestLangChainOverHttp(BehindTheProxy):
    framework, transport = "langchain", "http"
    lacks = LANGCHAIN
    deliveries = ("async, files",)


class TestStrandsOnStdio(BehindTheProxy):
    framework, transport = "strands", "stdio"
    lacks = STRANDS
    deliveries = ("sync, memory",)


class TestStrandsOverHttp(BehindTheProxy):
    framework, transport = "strands", "http"
    lacks = STRANDS
    deliveries = ("async, files",)


class TestOpenAIOnStdio(BehindTheProxy):
    framework, transport = "openai", "stdio"
    lacks = OPENAI
    deliveries = ("async, memory",)


class TestOpenAIOverHttp(BehindTheProxy):
    framework, transport = "openai", "http"
    lacks = OPENAI
    deliveries = ("async, files",)


class BehindTheProxyInPydanticAI(BehindTheProxy):
    framework = "pydantic"
    lacks = PYDANTIC
    cannot = PYDANTIC_AI_CANNOT

    def bare(self, text: str) -> str:
        return without_frame(text)


class TestPydanticOnStdio(BehindTheProxyInPydanticAI):
    transport = "stdio"
    deliveries = ("async, memory",)


class TestPydanticOverHttp(BehindTheProxyInPydanticAI):
    transport = "http"
    deliveries = ("async, files",)
