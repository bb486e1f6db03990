# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[agent-framework]", "agent-framework-openai"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A Microsoft Agent Framework agent whose tool returns far too much: middleware keeps the conversation small.

    python examples/agent_framework_agent.py

Runs offline with a scripted model. With OPENAI_API_KEY set, it uses a real one.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.openai import OpenAIChatClient

from coatcheck import FileStorage
from coatcheck_agent_framework import ToolOffloader


@tool(approval_mode="never_require")
def read_log() -> str:
    """Return last night's log."""
    lines = [f"12:{number % 60:02} INFO job={number} done" for number in range(50_000)]
    lines[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(lines)


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Plays the model: asks for the log, searches the stored result, answers with what the search found."""

    async def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> ChatResponse:  # type: ignore[override]  # noqa: ANN401
        last = messages[-1].contents[-1]
        if last.type != "function_result":
            content = self.call("read_log")
        elif last.result.startswith("Tool result offloaded."):
            reference = re.findall(r"^  (\S+) \(", last.result, re.MULTILINE)[0]
            content = self.call("retrieve_offloaded_content", reference=reference, pattern="ERROR", context_lines=0)
        else:
            found = re.findall("> *[0-9]+[|] (.*)", last.result)[0]
            content = Content.from_text(f"It went wrong here: {found}")
        return ChatResponse(messages=[Message("assistant", [content])])

    def call(self, name: str, **arguments: object) -> Content:
        """Return a tool call."""
        return Content.from_function_call(f"call_{name}", name, arguments=arguments)


async def main() -> None:
    """Run the agent once."""
    with tempfile.TemporaryDirectory() as folder:
        client: Any = OpenAIChatClient(model="gpt-4.1-mini") if os.environ.get("OPENAI_API_KEY") else Scripted()
        offload = ToolOffloader(FileStorage(folder))
        agent = Agent(client=client, tools=[read_log], middleware=offload.middleware, context_providers=[offload])
        session = agent.create_session(session_id="conversation-1")
        response = await agent.run("What went wrong last night?", session=session)

    for message in response.messages:
        for item in message.contents:
            print(f"{message.role}, {item.type}: {str(item.text or item.result or item.arguments)[:400]} ...\n")
    assert "31337" in response.text


asyncio.run(main())
