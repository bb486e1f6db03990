# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[haystack]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A Haystack agent whose tool returns far too much: one hook keeps the conversation small, and can be serialized.

    python examples/haystack_agent.py

Runs offline with a scripted generator. With OPENAI_API_KEY set, it uses a real one.
"""

import os
import re
import tempfile
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator, OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import tool

from coatcheck import FileStorage
from coatcheck_haystack import NeverOffload, OffloadOverTokens, RetrievalTool, ToolResultOffloadHook


@tool
def read_log(lines: Annotated[int, "How many lines"]) -> str:
    """Return last night's log."""
    log = [f"12:{number % 60:02} INFO job={number} done" for number in range(lines)]
    log[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(log)


def scripted(messages: list[ChatMessage]) -> ChatMessage:
    """Play the model: ask for the log, search the stored result, answer with what the search found."""
    result = messages[-1].tool_call_result
    if result is None:
        return ChatMessage.from_assistant(tool_calls=[ToolCall("read_log", {"lines": 50_000}, id="1")])
    said = str(result.result)
    if said.startswith("Tool result offloaded."):
        reference = re.findall(r"^  (\S+) \(", said, re.MULTILINE)[0]
        arguments = {"reference": reference, "pattern": "ERROR", "context_lines": 0}
        return ChatMessage.from_assistant(tool_calls=[ToolCall("retrieve_offloaded_content", arguments, id="2")])
    return ChatMessage.from_assistant(f"It went wrong here: {re.findall('> *[0-9]+[|] (.*)', said)[0]}")


with tempfile.TemporaryDirectory() as folder:
    hook = ToolResultOffloadHook(
        FileStorage(folder), {"read_log": OffloadOverTokens(2_500), "*": NeverOffload()}, preview_tokens=500
    )
    model = OpenAIChatGenerator() if os.environ.get("OPENAI_API_KEY") else MockChatGenerator(response_fn=scripted)
    agent = Agent(chat_generator=model, tools=[read_log, RetrievalTool(hook)], hooks={"after_tool": [hook]})
    question = ChatMessage.from_user("What went wrong last night? The log has 50,000 lines.")
    answer = agent.run(messages=[question], hook_context={"coatcheck_scope": "conversation-1"})

for message in answer["messages"]:
    shown = message.text or message.tool_call_result or message.tool_call
    print(f"{message.role.value:>9}: {str(shown)[:400]} ...\n")
assert "31337" in answer["last_message"].text

written = hook.to_dict()
assert ToolResultOffloadHook.from_dict(written).to_dict() == written
