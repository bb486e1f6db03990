"""Puts a hook into each agent of an installed framework: coatcheck's, or one that does nothing.

This is a pytest plugin for a separate process: the folder of a framework's tests has a package ``tests`` too.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

__all__ = ()


def into_tool_nodes(note: Callable[[], None], *, ours: bool) -> None:
    """Wrap the tool calls of each LangGraph ``ToolNode`` that has no wrapper."""
    from langgraph.prebuilt import tool_node  # noqa: PLC0415 - only if it is installed

    from coatcheck_langchain import offload_tool_calls  # noqa: PLC0415 - as above

    def call(request: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - LangGraph's
        return handler(request)

    async def acall(request: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - LangGraph's
        return await handler(request)

    make = tool_node.ToolNode.__init__

    def make_with_hook(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - LangGraph's
        if options.get("wrap_tool_call") is None and options.get("awrap_tool_call") is None:
            key = options.get("messages_key", "messages")
            wrappers = offload_tool_calls(InMemoryStorage(), retrieval_tool=None, messages_key=key)
            note()
            options |= wrappers if ours else {"wrap_tool_call": call, "awrap_tool_call": acall}
        make(self, *arguments, **options)

    tool_node.ToolNode.__init__ = make_with_hook  # type: ignore[method-assign]


def into_create_agent(note: Callable[[], None], *, ours: bool) -> None:
    """Add a middleware to each agent that LangChain's ``create_agent`` makes."""
    from langchain import agents  # noqa: PLC0415 - only if it is installed
    from langchain.agents import factory  # noqa: PLC0415 - as above
    from langchain.agents.middleware import AgentMiddleware  # noqa: PLC0415 - as above

    from coatcheck_langchain import OffloadMiddleware  # noqa: PLC0415 - as above

    class Nothing(AgentMiddleware[Any, Any, Any]):
        name = "hook"

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - LangChain's
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - LangChain's
            return await handler(request)

    make = factory.create_agent

    def make_with_hook(*arguments: Any, middleware: Any = (), **options: Any) -> Any:  # noqa: ANN401 - LangChain's
        note()
        hook = OffloadMiddleware(InMemoryStorage(), include_retrieval_tool=False, name="hook") if ours else Nothing()
        return make(*arguments, middleware=[*middleware, hook], **options)

    factory.create_agent = agents.create_agent = make_with_hook


def into_tools_of_openai(note: Callable[[], None], *, ours: bool) -> None:
    """Wrap the function tools of each ``Agent`` of the OpenAI Agents SDK, or copy them."""
    from agents import Agent, FunctionTool  # noqa: PLC0415 - only if it is installed

    from coatcheck_openai import ToolOffloader  # noqa: PLC0415 - as above

    offloader = ToolOffloader(InMemoryStorage())
    begin: Callable[[Any], None] = Agent.__post_init__

    def begin_with_hook(self: Any) -> None:  # noqa: ANN401 - the SDK's
        begin(self)
        if self.tools:
            note()
        copies = [copy.copy(tool) if isinstance(tool, FunctionTool) else tool for tool in self.tools]
        self.tools = [tool for tool in offloader.tools(copies) if tool.name != RETRIEVAL_TOOL] if ours else copies

    Agent.__post_init__ = begin_with_hook  # type: ignore[method-assign]


def into_agents_of_strands(note: Callable[[], None], *, ours: bool) -> None:
    """Add a plugin to each ``Agent`` of Strands that has no plugin of this name."""
    from strands import Agent  # noqa: PLC0415 - only if it is installed
    from strands.hooks import AfterToolCallEvent, MessageAddedEvent  # noqa: PLC0415 - as above
    from strands.plugins import Plugin  # noqa: PLC0415 - as above

    from coatcheck_strands import ContextOffloader  # noqa: PLC0415 - as above

    class Nothing(Plugin):
        name = ContextOffloader.name

        def init_agent(self, agent: Any) -> None:  # noqa: ANN401 - Strands'
            agent.add_hook(self.look_on, AfterToolCallEvent)
            agent.add_hook(self.look_on, MessageAddedEvent)

        async def look_on(self, event: object) -> None:
            pass

    # One test returns 6,000 tokens, which Strands' own context manager must cut.
    large, make = 20_000, Agent.__init__

    def make_with_hook(self: Any, *arguments: Any, plugins: Any = None, **options: Any) -> None:  # noqa: ANN401 - Strands'
        given = [*(plugins or ())]
        if all(plugin.name != Nothing.name for plugin in given):
            note()
            plugin = ContextOffloader(InMemoryStorage(), large, include_retrieval_tool=False) if ours else Nothing()
            given.append(plugin)
        make(self, *arguments, plugins=given, **options)

    Agent.__init__ = make_with_hook  # type: ignore[method-assign]


HOOKS = {
    "langgraph-prebuilt": into_tool_nodes,
    "langchain": into_create_agent,
    "openai-agents": into_tools_of_openai,
    "strands-agents": into_agents_of_strands,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options for the package, the hook and the report. A file next to the report shows that a hook was used."""
    parser.addoption("--package", required=True)
    parser.addoption("--in-every-agent", choices=("coatcheck", "nothing"), required=True)
    parser.addoption("--outcomes", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Put the hook in place before a test is imported."""
    report = config.getoption("--outcomes")
    put_in_place = HOOKS.get(config.getoption("--package"))
    if put_in_place is not None:  # otherwise another plugin does it
        put_in_place(report.with_suffix(".used").touch, ours=config.getoption("--in-every-agent") == "coatcheck")
    if not hasattr(config, "workerinput"):  # the main process collects the reports of xdist's workers
        config.pluginmanager.register(_Recorder(report))


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of a test."""
        self._passed[report.nodeid] = self._passed.get(report.nodeid, True) and not report.failed

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes."""
        self._path.write_text(json.dumps(self._passed), encoding="utf-8")
