"""Replaces Strands' own offloader by ours, for those of Strands' tests that use it.

This is a pytest plugin for a separate process: the folder of those tests has a package ``tests`` too. Only the
replacements belong here. If a test uses a private name for something public, a subclass here has that name and does the
same in the public way. Nothing else of theirs is imitated, so a test of their internals fails, and is listed.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import MagicMock

from strands.hooks import AfterToolCallEvent, BeforeModelCallEvent
from strands.types.tools import ToolContext

import coatcheck_strands

if TYPE_CHECKING:
    import pytest
    from strands import Agent

__all__ = ()

PACKAGE = "strands.vended_plugins.context_offloader"
USES_IT = ("ContextOffloader", "OffloaderInMemoryStorage")
"""A test outside the offloader's folder belongs here if its source names one of these."""


class ContextOffloader(coatcheck_strands.ContextOffloader):
    """Our plugin, with the names of their hooks."""

    async def _handle_tool_result(self, event: AfterToolCallEvent) -> None:
        self.init_agent(event.agent)
        event.invocation_state.setdefault("event_loop_cycle_id", "1")  # as a real agent's event loop does
        await self.offload_result(event)

    async def _on_before_model_call(self, event: BeforeModelCallEvent) -> None:
        await self.evict_unused(event)


class InMemoryStorage(coatcheck_strands.InMemoryStorage):
    """Our storage, with the references that it gave, and with an agent whose cycles their tests count."""

    def __init__(self, evict_after_turns: int | None = 20) -> None:
        super().__init__(evict_after_turns)
        self._store: dict[str, str] = {}
        self._agent = MagicMock()
        self._agent.event_loop_metrics.cycle_count = 0

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        reference = await super().store(key, content, content_type)
        self._store[reference] = key
        return reference

    @property
    def _current_cycle(self) -> int:
        return int(self._agent.event_loop_metrics.cycle_count)

    def _evict(self, cycle: int) -> None:
        self._agent.event_loop_metrics.cycle_count = cycle
        event = BeforeModelCallEvent(agent=self._agent, invocation_state={})
        in_another_thread(ContextOffloader(self).evict_unused(event))

    def _bind(self, agent_id: int) -> None:
        agent = MagicMock()
        agent.agent_id = agent_id
        ContextOffloader(self).init_agent(agent)


def search(
    text: str,
    *,
    pattern: str | None = None,
    line_range: tuple[int, int] | None = None,
    context_lines: int = 5,
    max_chars: int = 10_000,
) -> Any:  # noqa: ANN401 - a string, or whatever else a host gets
    """Search with the tool. In theirs, the search is a function of its own."""
    chosen: dict[str, Any] = {"context_lines": context_lines}
    if pattern is not None:
        chosen["pattern"] = pattern
    if line_range is not None:
        chosen["line_range"] = {"start": line_range[0], "end": line_range[1]}
    return retrieved(text.encode(), "text/plain", max_tokens=max_chars // 4, **chosen)


def is_searchable(content_type: str) -> bool:
    """Return whether the tool searches content of this type."""
    try:
        retrieved(b"x", content_type, max_tokens=2_500, pattern="x")
    except ValueError:
        return False
    return True


def retrieved(content: bytes, content_type: str, *, max_tokens: int, **chosen: Any) -> Any:  # noqa: ANN401
    """Store content as a host does, and read it with the tool."""
    storage = coatcheck_strands.InMemoryStorage()
    plugin = ContextOffloader(storage, max_result_tokens=max_tokens, preview_tokens=1)
    context = ToolContext(
        tool_use={"toolUseId": "1", "name": "retrieve_offloaded_content", "input": {}},
        agent=cast("Agent", MagicMock()),
        invocation_state={},
    )

    async def read() -> Any:  # noqa: ANN401
        reference = await storage.store("key", content, content_type)
        return await plugin.retrieve_offloaded_content(reference, context, **chosen)

    return in_another_thread(read())


def in_another_thread(coroutine: Any) -> Any:  # noqa: ANN401
    """Run a coroutine to its end, even if a loop is already running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def put_in_place() -> None:
    """Make the names of their package refer to ours."""
    package = importlib.import_module(PACKAGE)
    ours = ModuleType(PACKAGE)
    ours.__path__ = package.__path__
    for name in coatcheck_strands.__all__:
        setattr(ours, name, getattr(coatcheck_strands, name))
    ours.ContextOffloader, ours.InMemoryStorage = ContextOffloader, InMemoryStorage  # type: ignore[attr-defined]
    sys.modules[PACKAGE] = ours
    importlib.import_module("strands.vended_plugins").context_offloader = ours  # type: ignore[attr-defined]
    for name in ("plugin", "storage"):
        sys.modules[f"{PACKAGE}.{name}"] = ours
    searching = ModuleType(f"{PACKAGE}.search")
    searching._search_content, searching._is_searchable_content = search, is_searchable  # type: ignore[attr-defined]
    sys.modules[f"{PACKAGE}.search"] = searching


# The hooks of pytest.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file of outcomes."""
    parser.addoption("--outcomes", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Put ours in place before a test is imported."""
    put_in_place()
    config.pluginmanager.register(_Recorder(config.getoption("--outcomes")))


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: dict[str, bool] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that use the offloader."""
        items[:] = [item for item in items if "context_offloader" in item.nodeid or _uses_it(item)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of a test. A parametrized test passes if all its cases do."""
        name = report.nodeid.partition("[")[0].removeprefix("tests/strands/")
        self._passed[name] = self._passed.get(name, True) and not report.failed

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes."""
        self._path.write_text(json.dumps(self._passed), encoding="utf-8")


def _uses_it(item: pytest.Item) -> bool:
    source = inspect.getsource(getattr(item, "function", item.__class__))
    return any(name in source for name in USES_IT)
