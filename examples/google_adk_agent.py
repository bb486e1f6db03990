# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[google-adk]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A Google ADK app with an agent whose tool returns far too much: a plugin keeps the conversation small.

    python examples/google_adk_agent.py

Runs offline with a scripted model. With GOOGLE_API_KEY set, it uses a real one.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

from coatcheck import FileStorage
from coatcheck_adk import OffloadPlugin


def read_log() -> str:
    """Return last night's log."""
    lines = [f"12:{number % 60:02} INFO job={number} done" for number in range(50_000)]
    lines[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(lines)


class Scripted(BaseLlm):
    """Plays the model: asks for the log, searches the stored result, answers with what the search found."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002, ARG002 - as ADK has it
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer one request."""
        response = (llm_request.contents[-1].parts or [Part()])[0].function_response
        said = "" if response is None else str((response.response or {})["result"])
        if not said:
            part = Part.from_function_call(name="read_log", args={})
        elif said.startswith("Tool result offloaded."):
            reference = re.findall(r"^  (\S+) \(", said, re.MULTILINE)[0]
            found = {"reference": reference, "pattern": "ERROR", "context_lines": 0}
            part = Part.from_function_call(name="retrieve_offloaded_content", args=found)
        else:
            part = Part(text=f"It went wrong here: {re.findall('> *[0-9]+[|] (.*)', said)[0]}")
        yield LlmResponse(content=Content(role="model", parts=[part]))


with tempfile.TemporaryDirectory() as folder:
    model = "gemini-2.5-flash" if os.environ.get("GOOGLE_API_KEY") else Scripted(model="scripted")
    agent = LlmAgent(name="operator", model=model, tools=[read_log])
    app = App(name="operations", root_agent=agent, plugins=[OffloadPlugin(FileStorage(folder))])
    run = InMemoryRunner(app=app).run_debug(
        "What went wrong last night?", user_id="ada", session_id="night-1", quiet=True
    )
    events = asyncio.run(run)

for event in events:
    print(f"{event.author}: {event.model_dump_json(include={'content'}, exclude_none=True)[:400]} ...\n")
assert "31337" in events[-1].content.parts[0].text
