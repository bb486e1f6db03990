"""A Strands agent with the plugin, in the runtime of Bedrock AgentCore, which names the session of each request."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from bedrock_agentcore import BedrockAgentCoreApp, RequestContext
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from coatcheck.testing.samples import numbered_lines
from coatcheck_strands import ContextOffloader, FileStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

app = BedrockAgentCoreApp()
storage = FileStorage(os.environ["COATCHECK_ARTIFACTS"])


@tool
def fetch() -> str:
    """Give a large result."""
    return numbered_lines(2_000)


@app.entrypoint  # type: ignore[untyped-decorator]
async def invoke(payload: dict[str, Any], context: RequestContext) -> AsyncIterator[object]:
    """Stream an answer to one request."""
    wire = {"base_url": os.environ["COATCHECK_MODEL"], "api_key": "none"}
    model = OpenAIModel(client_args=wire, model_id="m")
    offload = ContextOffloader(storage, scope=context.session_id)
    agent = Agent(model, tools=[fetch], plugins=[offload], callback_handler=None)
    async for event in agent.stream_async(payload["prompt"]):
        if "data" in event:
            yield event["data"]


app.run(host="127.0.0.1", port=int(sys.argv[1]))
