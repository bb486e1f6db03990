"""ADK's summary of older events drops references; the line of ``keep_references`` keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Blob, Content, Part

from coatcheck import InvalidRequest, keep_references
from coatcheck.testing.scripting import shown_references
from coatcheck_adk import OffloadPlugin, offloaded_references
from tests.adapters.google_adk.agents import APP, CONVERSATION, SESSION, USER, Talk, playing, returning
from tests.adapters.scripts import BIG, MIDDLE, Script, call
from tests.contract.google_adk_harness import message

if TYPE_CHECKING:
    from google.adk.events import Event

    from tests.contract.gemini import GeminiServer


pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")


class KeepingReferences(LlmEventSummarizer):
    """The summarizer on the docs page about ADK."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        summary = await super().maybe_summarize_events(events=events)
        line = keep_references([event.content for event in events if event.content])
        if line and summary and summary.actions.compaction:
            content = summary.actions.compaction.compacted_content
            content.parts = [*(content.parts or ()), Part(text=line)]
        return summary


async def summaries_of(server: GeminiServer, summarizer: type[LlmEventSummarizer]) -> tuple[str, list[Any]]:
    """Return the reference that a run stored, and the summaries that ADK wrote of the run."""
    script, plugin, service = Script(call()), OffloadPlugin(), InMemorySessionService()
    with playing(server, script, [returning(BIG)]) as agent:
        compaction = EventsCompactionConfig(
            summarizer=summarizer(agent.canonical_model), compaction_interval=1, overlap_size=0
        )
        app = App(name=APP, root_agent=agent, plugins=[plugin], events_compaction_config=compaction)
        session = await service.create_session(app_name=APP, user_id=USER, session_id=SESSION)
        runner = Runner(app=app, session_service=service)
        async for _ in runner.run_async(user_id=USER, session_id=SESSION, new_message=message("Go.")):
            pass
        found = await service.get_session(app_name=APP, user_id=USER, session_id=session.id)
    assert found is not None
    (reference,) = shown_references(script.shown[1][0])
    assert MIDDLE in plugin.offloader.retrieve(reference, scope=CONVERSATION, pattern=MIDDLE).text
    compacted = [event.actions.compaction for event in found.events if event.actions.compaction]
    return reference, [one.compacted_content for one in compacted]


async def test_a_summary_that_does_not_repeat_the_reference_loses_it(server: GeminiServer) -> None:
    reference, (summary,) = await summaries_of(server, LlmEventSummarizer)

    assert reference not in str(summary)


async def test_a_summarizer_that_adds_the_line_of_keep_references_keeps_the_reference(server: GeminiServer) -> None:
    reference, (summary,) = await summaries_of(server, KeepingReferences)

    assert reference in summary.parts[-1].text
    assert keep_references([summary]) == summary.parts[-1].text


async def test_a_result_with_a_file_keeps_the_references_of_all_that_it_held(server: GeminiServer) -> None:
    result = [BIG, Part(inline_data=Blob(data=b"%PDF" * 9_000, mime_type="application/pdf"))]
    with playing(server, Script(call()), [returning(result)]) as agent:
        events = await Talk(agent=agent, plugins=[OffloadPlugin()]).ask()

    references = [found for event in events for found in offloaded_references(event)]
    line = keep_references([event.content for event in events if event.content])

    assert len(references) == 2
    assert all(reference in line for reference in references)


def test_one_content_instead_of_several_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^messages must be a list of messages, not Content"):
        keep_references(Content(role="user", parts=[Part(text="a word")]))
