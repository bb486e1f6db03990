"""In Strands Agents: its own ``ContextOffloader``, and ours with the same interface. Each with its ``FileStorage``."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from strands import Agent, tool
from strands.hooks import AfterToolCallEvent
from strands.models import Model
from strands.types.tools import ToolContext

from benchmarks.systems.system import PREVIEW_TOKENS, THRESHOLD_TOKENS, System

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

__all__ = ("CoatcheckInStrands", "Strands")

_REFERENCES = "[Stored references:]\n"


class NeverAsked(Model):
    """Only counts tokens, as Strands' models without their own counter do."""

    update_config = get_config = structured_output = stream = NotImplemented


class Strands(System):
    """Strands' own plugin."""

    distributions = ("strands-agents",)
    library = "strands.vended_plugins.context_offloader"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        module = import_module(self.library)
        self.storage = self.make_storage(module)
        self._plugin = module.ContextOffloader(
            self.storage, max_result_tokens=THRESHOLD_TOKENS, preview_tokens=PREVIEW_TOKENS
        )
        self._agent = Agent(NeverAsked(), plugins=[self._plugin], callback_handler=None)
        self._hook = next(found for found in self._plugin.hooks if "AfterToolCallEvent" in str(found.__annotations__))
        self._loop = asyncio.new_event_loop()
        self._reference = ""

    def make_storage(self, module: Any) -> Any:  # noqa: ANN401 - a module of either library
        """Return the plugin's storage."""
        return module.FileStorage(str(self.folder))

    def passing(self, text: str) -> Callable[[], object]:
        """Call the hook for one result."""
        event = self._event(text)

        def step() -> None:
            with suppress(StopIteration):  # it awaits nothing, so no loop is needed
                self._hook(event).send(None)

        step()
        assert event.result["content"][0]["text"] == text
        return step

    def offloading(self, text: str) -> Callable[[], str]:
        """Call the hook for one result, in an event loop as Strands does."""
        event = self._event(text)
        return lambda: self._loop.run_until_complete(self._offloaded(event))

    async def aoffload(self, text: str) -> str:
        """Call the hook for one result."""
        return await self._offloaded(self._event(text))

    def find(self, pattern: str) -> str:
        """Search through the retrieval tool, in an event loop as Strands does."""
        return self._retrieved(pattern=pattern)

    def read(self, first: int, last: int) -> str:
        """Read through the retrieval tool."""
        return self._retrieved(line_range={"start": first, "end": last})

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Store one more entry."""
        content = f"{number} {text}".encode()
        return lambda: self._loop.run_until_complete(self.storage.store(f"call{number}_0", content, "text/plain"))

    def _retrieved(self, **selector: object) -> str:
        use = {"name": "retrieve_offloaded_content", "toolUseId": "2", "input": {}}
        context = ToolContext(tool_use=use, agent=self._agent, invocation_state={})
        asked: Awaitable[Any] = self._plugin.retrieve_offloaded_content(
            reference=self._reference, tool_context=context, **selector
        )
        return str(self._loop.run_until_complete(asked))

    async def _offloaded(self, event: AfterToolCallEvent) -> str:
        await self._hook(event)
        shown = event.result["content"][0]["text"]
        self._reference = re.split(r"\s", shown.partition(_REFERENCES)[2].strip(), maxsplit=1)[0]
        return shown

    def _event(self, text: str) -> AfterToolCallEvent:
        return AfterToolCallEvent(
            agent=self._agent,
            selected_tool=search,
            tool_use={"name": "search", "toolUseId": "1", "input": {}},
            invocation_state={"event_loop_cycle_id": "1"},
            result={"toolUseId": "1", "status": "success", "content": [{"text": text}]},
        )


class CoatcheckInStrands(Strands):
    """Our plugin in its place."""

    distributions = ("coatcheck", "strands-agents")
    library = "coatcheck_strands"


@tool
def search() -> str:
    """Return a result."""
    return ""
