"""In LangChain agents: deepagents' ``FilesystemMiddleware``, and our ``OffloadMiddleware``. Each with files on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from benchmarks.systems.system import PREVIEW_TOKENS, THRESHOLD_TOKENS, System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("CoatcheckInLangChain", "Deepagents")


class _InLangChain(System):
    """Any middleware that wraps tool calls."""

    middleware: Any

    def passing(self, text: str) -> Callable[[], object]:
        """Wrap a call of a tool whose result is ready."""
        request, message = _request(), _message(text)

        def handler(_: object) -> ToolMessage:
            return message

        assert self.middleware.wrap_tool_call(request, handler) is message
        return lambda: self.middleware.wrap_tool_call(request, handler)

    def offloading(self, text: str) -> Callable[[], str]:
        """Wrap a call of a tool whose result is ready."""
        request, message = _request(), _message(text)
        return lambda: self._shown(self.middleware.wrap_tool_call(request, lambda _: message))

    async def aoffload(self, text: str) -> str:
        """Wrap a call of a tool whose result is ready."""
        message = _message(text)

        async def handler(_: object) -> ToolMessage:
            return message

        return self._shown(await self.middleware.awrap_tool_call(_request(), handler))

    def _shown(self, message: Any) -> str:  # noqa: ANN401 - a message, or deepagents' command with one
        return str(message.text)


class Deepagents(_InLangChain):
    """deepagents' own middleware. Its preview is always ten lines."""

    distributions = ("deepagents", "langchain", "langgraph")

    def __init__(self, folder: Path) -> None:
        from deepagents.backends import FilesystemBackend  # noqa: PLC0415 - ours is measured without it
        from deepagents.middleware.filesystem import FilesystemMiddleware  # noqa: PLC0415

        super().__init__(folder)
        self.backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        self.middleware = FilesystemMiddleware(backend=self.backend, tool_token_limit_before_evict=THRESHOLD_TOKENS)

    def find(self, pattern: str) -> str:
        """Search with its grep, which takes literals and uses ripgrep if that is installed."""
        return self._asked("grep", pattern=pattern, output_mode="content")

    def read(self, first: int, last: int) -> str:
        """Read with its read_file."""
        return self._asked("read_file", file_path=_PATH, offset=first - 1, limit=last - first + 1)

    def storing(self, number: int, text: str) -> Callable[[], object]:
        """Write one more entry."""
        content = f"{number} {text}"
        return lambda: self.backend.write(f"/large_tool_results/{number}", content)

    def _asked(self, name: str, **arguments: object) -> str:
        tool = next(tool for tool in self.middleware.tools if tool.name == name)
        return str(tool.func(runtime=_runtime(), **arguments).text)


_PATH = "/large_tool_results/1"


class CoatcheckInLangChain(_InLangChain):
    """Our middleware in its place."""

    distributions = ("coatcheck", "langchain", "langgraph")

    def __init__(self, folder: Path) -> None:
        from coatcheck import FileStorage, TiktokenCounter  # noqa: PLC0415 - deepagents is measured without it
        from coatcheck_langchain import OffloadMiddleware  # noqa: PLC0415

        super().__init__(folder)
        TiktokenCounter().warm_up()
        self.middleware = OffloadMiddleware(
            FileStorage(folder), max_result_tokens=THRESHOLD_TOKENS, preview_tokens=PREVIEW_TOKENS
        )


def _runtime() -> ToolRuntime:
    return ToolRuntime(
        state={"messages": []},
        context=None,
        config={"configurable": {"thread_id": "1"}},
        stream_writer=lambda _: None,
        tool_call_id="1",
        store=None,
    )


def _request() -> ToolCallRequest:
    call = {"name": "search", "args": {}, "id": "1", "type": "tool_call"}
    return ToolCallRequest(tool_call=call, tool=None, state={"messages": []}, runtime=_runtime())


def _message(text: str) -> ToolMessage:
    return ToolMessage(text, name="search", tool_call_id="1")
