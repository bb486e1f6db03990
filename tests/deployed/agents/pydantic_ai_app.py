"""A Pydantic AI agent for AG-UI clients."""

import os
import sys

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from coatcheck import FileStorage
from coatcheck.testing.samples import numbered_lines
from coatcheck_pydantic_ai import ToolOffloader


def fetch() -> str:
    """Give a large result."""
    return numbered_lines(2_000)


provider = OpenAIProvider(base_url=os.environ["COATCHECK_MODEL"], api_key="none")
offload = ToolOffloader(FileStorage(os.environ["COATCHECK_ARTIFACTS"]))
agent = Agent(OpenAIChatModel("m", provider=provider), tools=[fetch], capabilities=[offload])


async def run(request: Request) -> Response:
    """Answer one request."""
    return await AGUIAdapter.dispatch_request(request, agent=agent)


uvicorn.run(Starlette(routes=[Route("/", run, methods=["POST"])]), host="127.0.0.1", port=int(sys.argv[1]))
