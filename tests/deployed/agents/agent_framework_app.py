"""An agent of the Microsoft Agent Framework for AG-UI clients."""

import os
import sys

import uvicorn
from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from fastapi import FastAPI

from coatcheck import FileStorage
from coatcheck.testing.samples import numbered_lines
from coatcheck_agent_framework import ToolOffloader


@tool(approval_mode="never_require")
def fetch() -> str:
    """Give a large result."""
    return numbered_lines(2_000)


client = OpenAIChatCompletionClient(model="m", base_url=os.environ["COATCHECK_MODEL"], api_key="none")
offload = ToolOffloader(FileStorage(os.environ["COATCHECK_ARTIFACTS"]))
agent = Agent(client, name="night", tools=[fetch], middleware=offload.middleware, context_providers=[offload])
app = FastAPI()
add_agent_framework_fastapi_endpoint(app, agent, "/", single_user=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]))
