"""In Haystack: its own ``ToolResultOffloadHook``, and ours with the same interface. Each with its own file store."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from typing import TYPE_CHECKING

from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.tool_result_offloading import OffloadOverChars

from benchmarks.systems.system import CHARACTERS_PER_TOKEN, PREVIEW_TOKENS, THRESHOLD_TOKENS, System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("CoatcheckInHaystack", "Haystack")


class Haystack(System):
    """Haystack's own hook. It counts characters."""

    distributions = ("haystack-ai",)
    cannot_read = "ships no tool that reads"
    library = "haystack.hooks.tool_result_offloading"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        module = import_module(self.library)
        self.store = module.FileSystemToolResultStore(str(folder))
        over = OffloadOverChars(THRESHOLD_TOKENS * CHARACTERS_PER_TOKEN)
        self._hook = module.ToolResultOffloadHook(
            self.store, {"*": over}, preview_chars=PREVIEW_TOKENS * CHARACTERS_PER_TOKEN
        )

    def passing(self, text: str) -> Callable[[], object]:
        """Run the hook on a step with one result."""
        state = _state(text)
        return lambda: self._hook.run(state)

    def offloading(self, text: str) -> Callable[[], str]:
        """Run the hook on a step with one result."""
        state = _state(text)

        def step() -> str:
            self._hook.run(state)
            return _shown(state)

        return step

    async def aoffload(self, text: str) -> str:
        """Run the hook as Haystack does in an async run, where a sync-only hook runs on a thread."""
        state = _state(text)
        if inspect.iscoroutinefunction(getattr(self._hook, "run_async", None)):
            await self._hook.run_async(state)
        else:
            await asyncio.to_thread(self._hook.run, state)
        return _shown(state)

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Write one more entry."""
        content = f"{number} {text}"
        return lambda: self.store.write(key=f"1_search_call{number}.txt", content=content)


class CoatcheckInHaystack(Haystack):
    """Our hook in its place."""

    distributions = ("coatcheck", "haystack-ai")
    library = "coatcheck_haystack"


def _state(text: str) -> State:
    call = ToolCall("search", {}, id="1")
    messages = [
        ChatMessage.from_user("Search."),
        ChatMessage.from_assistant(tool_calls=[call]),
        ChatMessage.from_tool(text, origin=call),
    ]
    return State(schema={"messages": {"type": list[ChatMessage]}}, data={"messages": messages})


def _shown(state: State) -> str:
    result = state.data["messages"][-1].tool_call_result
    assert result is not None
    return str(result.result)
