"""Runs the demo: a real agent with ``OffloadMiddleware``, one conversation for each question.

Only running belongs here. Questions come as cases, models from ``demo_model``; ``demo_report`` says what happened.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langsmith import tracing_context

from coatcheck.cli.demo_model import ScriptedModel, one_line, real_model
from coatcheck.cli.demo_report import part_report
from coatcheck.cli.demo_script import NotFound, states
from coatcheck.cli.failure import CannotRun
from coatcheck.core.references import resolve_reference
from coatcheck.core.settings import MAX_INLINE_TOKENS, MAX_RESULT_TOKENS
from coatcheck.core.tokens import TiktokenCounter
from coatcheck.storage.file import FileStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import BaseMessage

    from coatcheck.cli.demo_report import PartReport
    from coatcheck.cli.demo_script import Case
    from coatcheck.engine.events import Event

__all__ = ("Demo",)

SCOPE = "demo"

_MIN_RETRIEVAL_TOKENS = MAX_RESULT_TOKENS
"""The lowest budget of a read-back, even with a lower threshold: the scripts read 50 lines or a whole record."""


class Demo:
    """Answers cases with one model and one storage."""

    def __init__(self, folder: Path | None, *, max_result_tokens: int, model: str | None = None) -> None:
        """Prepare what all cases share.

        Args:
            folder: where content is stored. None: a new folder among the user's temporary files.
            max_result_tokens: the largest tool result that stays in the conversation.
            model: a real model, as LangChain names it. None: the scripted one.

        Raises:
            CannotRun: the folder or the model cannot be used.

        """
        self._model = None if model is None else real_model(model)
        self.folder: Path = _made(folder)
        self._storage = FileStorage(self.folder)
        self._max_result_tokens = max_result_tokens
        self._counter = TiktokenCounter()
        self._counter.warm_up()  # 0.3 s, once per process, which must not count as offloading

    def run(self, case: Case) -> PartReport:
        """Ask the agent the question of a case, and report what happened.

        Raises:
            CannotRun: the data does not hold what is asked for, or a real model failed.

        """
        try:
            facts = case.script.facts_in(case.result)
        except NotFound as error:
            msg = f"{case.tool_name} returned no {error}: show the demo a file of your own with --input FILE"
            raise CannotRun(msg) from None
        events: list[Event] = []
        started = time.perf_counter()
        messages = self._converse(case, events.append)
        seconds = time.perf_counter() - started
        return part_report(
            case,
            messages,
            events,
            counter=self._counter,
            seconds=seconds,
            answer_in_data=all(states(str(messages[-1].text), fact) for fact in facts),
            path=self._stored(events),
        )

    def _converse(self, case: Case, on_event: Callable[[Event], object]) -> list[BaseMessage]:
        def tool() -> str:
            return case.result

        agent = create_agent(
            self._model or ScriptedModel(script=case.script, tool_name=case.tool_name),
            tools=[StructuredTool.from_function(tool, name=case.tool_name, description=case.tool_description)],
            middleware=[self._middleware(on_event)],
        )
        try:
            # No tracing, whatever the environment says: the demo sends the user's data nowhere but to the model.
            with tracing_context(enabled=False):
                state = agent.invoke({"messages": [HumanMessage(case.script.question)]})
        except Exception as error:
            if self._model is None:
                raise
            msg = f"the model failed: {one_line(error)}"
            raise CannotRun(msg) from error
        messages: list[BaseMessage] = state["messages"]
        return messages

    def _middleware(self, on_event: Callable[[Event], object]) -> AgentMiddleware:
        # Not at the top: the library must import without any adapter.
        from coatcheck_langchain import OffloadMiddleware

        return OffloadMiddleware(
            self._storage,
            scope=SCOPE,
            max_result_tokens=self._max_result_tokens,
            max_retrieval_tokens=max(self._max_result_tokens, _MIN_RETRIEVAL_TOKENS),
            max_inline_tokens=max(self._max_result_tokens, MAX_INLINE_TOKENS),
            token_counter=self._counter,
            on_event=on_event,
        )

    def _stored(self, events: list[Event]) -> Path | None:
        """Return the file that holds the offloaded result, which is a single ``TextBlock``."""
        offloaded = next((event for event in events if event.kind == "offloaded"), None)
        if offloaded is None:
            return None
        return self._storage.local_path(
            str(resolve_reference(offloaded.references[0], SCOPE)), content_type="text/plain"
        )


def _made(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="coatcheck-demo-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be used as storage: {error.strerror}"
        raise CannotRun(msg) from None
    return folder.absolute()
