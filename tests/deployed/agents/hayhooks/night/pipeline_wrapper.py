"""A Haystack agent with the hook, for Hayhooks. The ``user`` of an OpenAI client identifies the conversation."""

import os
from collections.abc import AsyncGenerator
from typing import Any

from hayhooks import BasePipelineWrapper, async_streaming_generator
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret

from coatcheck import FileStorage
from coatcheck.testing.samples import numbered_lines
from coatcheck_haystack import RetrievalTool, ToolResultOffloadHook


@tool
def fetch() -> str:
    """Give a large result."""
    return numbered_lines(2_000)


class PipelineWrapper(BasePipelineWrapper):  # type: ignore[misc]
    """The wrapper that Hayhooks deploys."""

    def setup(self) -> None:
        """Make the agent once."""
        hook = ToolResultOffloadHook(FileStorage(os.environ["COATCHECK_ARTIFACTS"]))
        model = OpenAIChatGenerator(
            model="m", api_base_url=os.environ["COATCHECK_MODEL"], api_key=Secret.from_token("none"), max_retries=0
        )
        self.agent = Agent(chat_generator=model, tools=[fetch, RetrievalTool(hook)], hooks={"after_tool": [hook]})
        self.agent.warm_up()

    async def run_api_async(self, text: str, conversation: str) -> str:
        """Answer one request."""
        question = ChatMessage.from_user(text)
        answer = await self.agent.run_async(messages=[question], hook_context={"coatcheck_scope": conversation})
        return str(answer["last_message"].text)

    async def run_chat_completion_async(
        self, model: str, messages: list[dict[str, Any]], body: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Stream an answer to an OpenAI client."""
        question = ChatMessage.from_user(str(messages[-1]["content"]))
        arguments = {"messages": [question], "hook_context": {"coatcheck_scope": body["user"]}}
        stream: AsyncGenerator[Any, None] = async_streaming_generator(self.agent, pipeline_run_args=arguments)
        return stream
