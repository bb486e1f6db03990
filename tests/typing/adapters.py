"""Uses the adapters the way users do. It never runs: mypy and pyright check it, both in strict mode."""

from __future__ import annotations

from coatcheck import FileStorage, Offloader
from coatcheck_adk import OffloadPlugin
from coatcheck_agent_framework import ToolOffloader as AgentFrameworkOffloader
from coatcheck_claude import hooks
from coatcheck_haystack import ToolResultOffloadHook
from coatcheck_langchain import OffloadMiddleware
from coatcheck_openai import ToolOffloader
from coatcheck_pydantic_ai import ToolOffloader as PydanticToolOffloader
from coatcheck_strands import Call, ContextOffloader

storage = FileStorage("artifacts")

OffloadMiddleware(storage, offer_tool="when needed")
ContextOffloader(storage, offer_tool="always")
OffloadMiddleware(storage, offer_tool="sometimes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ContextOffloader(storage, offer_tool="sometimes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def of_tenant(call: Call) -> tuple[str, str]:
    return call.invocation_state["tenant"], call.tool_use["name"]


ContextOffloader(storage, scope=of_tenant)

ToolOffloader(storage, max_result_tokens=4_000)
ToolOffloader(storage, max_result_tokens="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

OffloadPlugin(storage, max_result_tokens=4_000)
OffloadPlugin(storage, max_result_tokens="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
AgentFrameworkOffloader(storage, max_result_tokens=4_000)
AgentFrameworkOffloader(storage, max_result_tokens="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
PydanticToolOffloader(storage, max_result_tokens=4_000)
PydanticToolOffloader(storage, max_result_tokens="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolResultOffloadHook(storage, max_result_tokens=4_000)
ToolResultOffloadHook(storage, max_result_tokens="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
hooks(Offloader(storage), retrieval_tool="coatcheck get")
hooks(Offloader(storage), retrieval_tool=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
