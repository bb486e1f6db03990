# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[pydantic-ai]", "pydantic-ai-slim[openai]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A Pydantic AI agent whose tool returns far too much: one capability keeps the conversation small.

    python examples/pydantic_ai_agent.py

Runs offline with a scripted model. With OPENAI_API_KEY set, it uses a real one.
"""

import os
import re
import tempfile

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from coatcheck import FileStorage
from coatcheck_pydantic_ai import ToolOffloader


def read_log() -> str:
    """Return last night's log."""
    lines = [f"12:{number % 60:02} INFO job={number} done" for number in range(50_000)]
    lines[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(lines)


def script(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Play the model: ask for the log, search the stored result, answer with what the search found."""
    said = str(getattr(messages[-1].parts[-1], "content", ""))
    if said.startswith("Tool result offloaded."):
        reference = re.findall(r"^  (\S+) \(", said, re.MULTILINE)[0]
        wanted = {"reference": reference, "pattern": "ERROR", "context_lines": 0}
        return ModelResponse(parts=[ToolCallPart("retrieve_offloaded_content", wanted)])
    if found := re.findall("> *[0-9]+[|] (.*)", said):
        return ModelResponse(parts=[TextPart(f"It went wrong here: {found[0]}")])
    return ModelResponse(parts=[ToolCallPart("read_log", {})])


with tempfile.TemporaryDirectory() as folder:
    model = "openai-chat:gpt-4.1-mini" if os.environ.get("OPENAI_API_KEY") else FunctionModel(script)
    agent = Agent(model, tools=[read_log], capabilities=[ToolOffloader(FileStorage(folder))])
    result = agent.run_sync("What went wrong last night?", conversation_id="conversation-1")

for message in result.all_messages():
    for part in message.parts:
        print(f"{part.part_kind}: {str(getattr(part, 'content', '') or getattr(part, 'args', ''))[:400]} ...\n")
assert "31337" in result.output
