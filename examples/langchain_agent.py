# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[langgraph]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A LangChain agent whose tool returns far too much: one middleware keeps the conversation small.

    python examples/langchain_agent.py

Runs offline with a scripted model. With OPENAI_API_KEY set and langchain-openai installed, it uses a real one.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from coatcheck import FileStorage
from coatcheck_langchain import OffloadMiddleware


@tool
def read_log() -> str:
    """Return last night's log."""
    lines = [f"12:{number % 60:02} INFO job={number} done" for number in range(50_000)]
    lines[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(lines)


class Scripted(FakeMessagesListChatModel):
    """Plays the model: asks for the log, searches the stored result, answers with what the search found."""

    responses: list[BaseMessage] = []  # noqa: RUF012 - a pydantic field

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> BaseChatModel:  # noqa: ANN401, ARG002, D102
        return self  # type: ignore[return-value]

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401
        said = str(messages[-1].content)
        if messages[-1].type == "human":
            turn = AIMessage("", tool_calls=[{"name": "read_log", "args": {}, "id": "1"}])
        elif said.startswith("Tool result offloaded."):
            reference = re.findall(r"^  (\S+) \(", said, re.MULTILINE)[0]
            arguments = {"reference": reference, "pattern": "ERROR", "context_lines": 0}
            turn = AIMessage("", tool_calls=[{"name": "retrieve_offloaded_content", "args": arguments, "id": "2"}])
        else:
            turn = AIMessage(f"It went wrong here: {re.findall('> *[0-9]+[|] (.*)', said)[0]}")
        return ChatResult(generations=[ChatGeneration(message=turn)])


with tempfile.TemporaryDirectory() as folder:
    model = init_chat_model("openai:gpt-4.1-mini") if os.environ.get("OPENAI_API_KEY") else Scripted()
    agent = create_agent(model, [read_log], middleware=[OffloadMiddleware(FileStorage(folder))])
    result = agent.invoke(
        {"messages": [("user", "What went wrong last night?")]}, {"configurable": {"thread_id": "conversation-1"}}
    )

for message in result["messages"]:
    print(f"{message.type:>5}: {str(message.content or message.tool_calls)[:400]} ...\n")
assert "31337" in result["messages"][-1].content
