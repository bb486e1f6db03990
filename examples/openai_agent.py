# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[openai-agents]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""An OpenAI Agents SDK agent whose tool returns far too much: wrapped tools keep the conversation small.

    python examples/openai_agent.py

Runs offline with a scripted model. With OPENAI_API_KEY set, it uses a real one.
"""

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from coatcheck import FileStorage
from coatcheck_openai import ToolOffloader


@function_tool
def read_log() -> str:
    """Return last night's log."""
    lines = [f"12:{number % 60:02} INFO job={number} done" for number in range(50_000)]
    lines[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(lines)


class Scripted(Model):
    """Plays the model: asks for the log, searches the stored result, answers with what the search found."""

    async def get_response(self, *arguments: Any, **named: Any) -> ModelResponse:  # noqa: ANN401, D102
        items = named["input"] if "input" in named else arguments[1]
        said = "" if isinstance(items, str) else str(items[-1].get("output", ""))
        if not said:
            item: Any = self.call("read_log")
        elif said.startswith("Tool result offloaded."):
            reference = re.findall(r"^  (\S+) \(", said, re.MULTILINE)[0]
            item = self.call("retrieve_offloaded_content", reference=reference, pattern="ERROR", context_lines=0)
        else:
            answer = f"It went wrong here: {re.findall('> *[0-9]+[|] (.*)', said)[0]}"
            text = ResponseOutputText(type="output_text", text=answer, annotations=[])
            item = ResponseOutputMessage(type="message", id="1", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def call(self, name: str, **arguments: object) -> ResponseFunctionToolCall:
        """Return a tool call."""
        sent = json.dumps(arguments)
        return ResponseFunctionToolCall(type="function_call", call_id=f"call_{name}", name=name, arguments=sent)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: ANN401, D102
        raise NotImplementedError


with tempfile.TemporaryDirectory() as folder:
    model = "gpt-4.1-mini" if os.environ.get("OPENAI_API_KEY") else Scripted()
    offload = ToolOffloader(FileStorage(folder))
    agent = Agent(name="operator", model=model, tools=offload.tools([read_log]))
    config = RunConfig(group_id="conversation-1", tracing_disabled=True)
    result = Runner.run_sync(agent, "What went wrong last night?", run_config=config)

for message in result.to_input_list():
    print(f"{json.dumps(message)[:400]} ...\n")
assert "31337" in result.final_output
