# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[strands]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A Strands agent whose tool returns far too much: one plugin keeps the conversation small.

    python examples/strands_agent.py

Runs offline with a scripted model. With OPENAI_API_KEY set and strands-agents[openai] installed, it uses a real one.
"""

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.models import Model

from coatcheck_strands import ContextOffloader, FileStorage


@tool
def read_log() -> str:
    """Return last night's log."""
    lines = [f"12:{number % 60:02} INFO job={number} done" for number in range(50_000)]
    lines[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(lines)


class Scripted(Model):
    """Plays the model: asks for the log, searches the stored result, answers with what the search found."""

    def update_config(self, **_: Any) -> None:  # noqa: ANN401, D102
        pass

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401, D102
        raise NotImplementedError

    async def stream(self, messages: list[Any], *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: ANN401, D102
        last = messages[-1]["content"][0]
        said = last["toolResult"]["content"][0]["text"] if "toolResult" in last else ""
        call: tuple[str, dict[str, object]] | None = None
        if not said:
            call = "read_log", {}
        elif said.startswith("Tool result offloaded."):
            reference = re.findall(r"^  (\S+) \(", said, re.MULTILINE)[0]
            call = "retrieve_offloaded_content", {"reference": reference, "pattern": "ERROR", "context_lines": 0}
        yield {"messageStart": {"role": "assistant"}}
        if call is not None:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call[0], "toolUseId": str(len(messages))}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call[1])}}}}
        else:
            answer = f"It went wrong here: {re.findall('> *[0-9]+[|] (.*)', said)[0]}"
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if call is not None else "end_turn"}}


def model_of_choice() -> Model:
    """Return a real model if its key is set, else the scripted one."""
    if not os.environ.get("OPENAI_API_KEY"):
        return Scripted()
    from strands.models.openai import OpenAIModel  # noqa: PLC0415 - offline, its client need not be installed

    return OpenAIModel(model_id="gpt-4.1-mini")


with tempfile.TemporaryDirectory() as folder:
    agent = Agent(
        model_of_choice(), tools=[read_log], plugins=[ContextOffloader(FileStorage(folder))], callback_handler=None
    )
    agent("What went wrong last night?")

for message in agent.messages:
    print(f"{message['role']:>9}: {json.dumps(message['content'])[:400]} ...\n")
assert "31337" in str(agent.messages[-1]["content"])
