"""What we must not disturb: direct calls, final answers, cancelled or interrupted calls, retries; and our failures."""

from __future__ import annotations

import asyncio
import copy
import re
from typing import TYPE_CHECKING, Any

import pytest
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent
from strands.session import FileSessionManager

from coatcheck import Offloader, keep_references
from coatcheck_strands import ContextOffloader, FileStorage, InMemoryStorage, offloaded_references
from tests.adapters.strands.agents import (
    BIG,
    MIDDLE,
    RETRIEVE,
    ScriptedModel,
    agent,
    call,
    reading,
    references,
    results,
    returning,
    run,
    text_of,
)

if TYPE_CHECKING:
    from pathlib import Path


class Broken:
    """A storage that raises an error that no storage should raise."""

    def save(self, *_: object, **__: object) -> None:
        raise RuntimeError

    def load(self, key: str) -> None:
        raise RuntimeError(key)


# Direct calls.


def test_a_direct_call_gets_the_real_result_and_records_the_placeholder() -> None:
    subject = agent(ContextOffloader(), turns=(reading(pattern="^line 7 of"),))

    result = subject.tool.fetch()

    assert result["content"] == [{"text": BIG}]
    (recorded,) = results(subject)
    assert MIDDLE not in str(subject.messages)
    assert offloaded_references(recorded)
    subject("what did it say?")
    assert ">  7| line 7 of" in text_of(results(subject)[1])


def test_a_direct_call_that_is_not_recorded_stores_nothing() -> None:
    storage = InMemoryStorage()
    subject = agent(ContextOffloader(storage))

    result = subject.tool.fetch(record_direct_tool_call=False)

    assert result["content"] == [{"text": BIG}]
    assert storage.entries("") == []


def test_a_recorded_direct_call_enters_the_session_as_its_placeholder(tmp_path: Path) -> None:
    def resumed(*turns: Any) -> Agent:  # noqa: ANN401
        session = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        plugin = ContextOffloader(FileStorage(str(tmp_path / "kept")))
        return agent(plugin, turns=turns, session_manager=session, agent_id="a")

    first = resumed()  # keep the agent alive: its tool caller has only a weak reference to it
    first.tool.fetch()

    assert not [path for path in (tmp_path / "sessions").rglob("*.json") if MIDDLE in path.read_text()]
    later = resumed(reading(pattern="^line 7 of"))
    later("what did it say?")
    assert ">  7| line 7 of" in text_of(results(later)[1])


def test_a_direct_call_whose_storage_fails_records_the_real_result() -> None:
    subject = agent(ContextOffloader(Broken()))

    assert subject.tool.fetch()["content"] == [{"text": BIG}]
    assert [text_of(result) for result in results(subject)] == [BIG]


def test_a_small_direct_call_is_recorded_as_it_is() -> None:
    subject = agent(ContextOffloader(), tools=[returning("small")])

    assert subject.tool.fetch()["content"] == [{"text": "small"}]
    assert results(subject)[0].keys() == {"toolUseId", "status", "content"}


def test_a_direct_call_inside_a_tool_gets_the_real_result() -> None:
    seen: list[str] = []

    @tool(context=True)
    def summarize(tool_context: Any) -> str:  # noqa: ANN401
        """Summarize what another tool gives."""
        result = tool_context.agent.tool.fetch(record_direct_tool_call=False)
        seen.append(result["content"][0]["text"])
        return "short"

    agent(ContextOffloader(), tools=[summarize, returning(BIG)], turns=(call("summarize"),))("go")

    assert seen == [BIG]


def test_the_retrieval_tool_can_be_called_directly() -> None:
    subject = agent(ContextOffloader())
    subject("go")

    result = subject.tool.retrieve_offloaded_content(
        reference=references(results(subject)[0])[0], pattern="^line 7 of", record_direct_tool_call=False
    )

    assert result["status"] == "success"
    assert ">  7| line 7 of" in result["content"][0]["text"]


# Results that code asked for.


def test_an_invocation_may_ask_to_keep_its_results() -> None:
    subject = agent(ContextOffloader(), turns=(call(), "done", call(), "done"))

    subject("go", invocation_state={"coatcheck": "keep"})
    subject("go")

    kept, left = results(subject)
    assert kept["content"] == [{"text": BIG}]
    assert offloaded_references(left)


def test_a_direct_call_may_ask_to_record_its_result_whole() -> None:
    subject = agent(ContextOffloader())

    subject.tool.fetch(coatcheck="keep")

    assert results(subject)[0]["content"] == [{"text": BIG}]


def test_strands_does_not_pass_on_that_code_made_a_call() -> None:
    """If this fails, Strands now passes on that code made a call, and we can keep such results automatically."""
    anthropic = pytest.importorskip("strands.models.anthropic")
    model = anthropic.AnthropicModel(client_args={"api_key": "none"}, model_id="m", max_tokens=1)
    made = {"type": "tool_use", "id": "1", "name": "fetch", "caller": {"type": "code_execution_20250825"}}

    chunk = model.format_chunk({"type": "content_block_start", "index": 0, "content_block": made})

    assert "caller" not in str(chunk)


# Final answers.


def test_the_answer_of_a_delegating_agent_stays() -> None:
    expert = Agent(ScriptedModel(BIG), name="expert", callback_handler=None)
    subject = agent(ContextOffloader(), tools=[expert.as_tool(delegate=True)], turns=(call("expert", input="go"),))

    result = subject("go")

    assert str(result).strip() == BIG.strip()


def test_the_answer_of_an_agent_as_a_tool_is_offloaded() -> None:
    expert = Agent(ScriptedModel(BIG), name="expert", callback_handler=None)
    subject = agent(
        ContextOffloader(), tools=[expert.as_tool()], turns=(call("expert", input="go"), reading(pattern="^line 7 of"))
    )

    subject("go")

    assert MIDDLE not in text_of(results(subject)[0])
    assert ">  7| line 7 of" in text_of(results(subject)[-1])


# Cancelled, interrupted and repeated calls.


def test_a_cancelled_call_stays() -> None:
    subject = agent(ContextOffloader(max_result_tokens=100, preview_tokens=10))

    def cancel(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = BIG

    subject.add_hook(cancel, BeforeToolCallEvent)
    subject("go")

    assert text_of(results(subject)[0]) == BIG


def test_an_interrupt_passes_through_and_finished_results_are_offloaded_once() -> None:
    runs: list[str] = []

    @tool
    def finished() -> str:
        """Give a large result."""
        runs.append("finished")
        return BIG

    @tool(context=True)
    def asking(tool_context: Any) -> str:  # noqa: ANN401
        """Ask the user first."""
        return f"{tool_context.interrupt('allowed', reason='may I?')}: {BIG}"

    subject = agent(ContextOffloader(), tools=[finished, asking], turns=([("finished", {}), ("asking", {})],))

    stopped = subject("go")
    assert stopped.stop_reason == "interrupt"
    (interrupt,) = stopped.interrupts or ()
    answer: Any = [{"interruptResponse": {"interruptId": interrupt.id, "response": "yes"}}]
    subject(answer)

    assert runs == ["finished"]
    assert all(MIDDLE not in text_of(result) and references(result) for result in results(subject))
    assert "yes: line 1 of" in text_of(results(subject)[1])


def test_a_cancelled_task_stays_cancelled() -> None:
    started = asyncio.Event()

    class Slow(Broken):
        async def save(self, *_: object, **__: object) -> None:  # type: ignore[override]
            started.set()
            await asyncio.Event().wait()

    async def main() -> None:
        running = asyncio.create_task(agent(ContextOffloader(Slow())).invoke_async("go"))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_a_retry_after_our_hook_offloads_the_result_of_the_last_try() -> None:
    given = iter([BIG, BIG.replace("line", "row")])

    @tool
    def fetch() -> str:
        """Give another result each time."""
        return next(given)

    subject = agent(ContextOffloader(), tools=[fetch])

    def again(event: AfterToolCallEvent) -> None:
        event.retry = "row 1 of" not in text_of(event.result)

    subject.add_hook(again, AfterToolCallEvent)
    subject("go")

    assert "row 1 of 2,000" in text_of(results(subject)[0])
    assert MIDDLE.replace("line", "row") not in text_of(results(subject)[0])


def test_hooks_of_the_agent_see_placeholders_and_hooks_that_are_added_later_see_whole_results() -> None:
    seen: dict[str, str] = {}

    def of_the_agent(event: AfterToolCallEvent) -> None:
        seen["of the agent"] = text_of(event.result)
        event.result["content"].append({"text": "more"})

    def added(event: AfterToolCallEvent) -> None:
        seen["added"] = text_of(event.result)
        event.result = {**event.result, "content": [{"text": BIG.replace("line", "row")}]}

    subject = agent(ContextOffloader(), hooks=[of_the_agent])
    subject.add_hook(added)
    subject("go")

    assert seen["added"] == BIG
    assert seen["of the agent"].startswith("Tool result offloaded.")
    assert "row 1 of 2,000" in seen["of the agent"]
    assert text_of(results(subject)[0]) == f"{seen['of the agent']}\nmore"


def test_the_result_of_a_background_tool_is_offloaded_and_read_back() -> None:
    pytest.importorskip("strands.background_tasks", reason="needs a newer Strands")

    def wait_or_read(messages: list[object]) -> list[tuple[str, dict[str, Any]]] | str:
        references = re.findall(r"fetch-[0-9a-f]{16}-[0-9a-f]{4}", keep_references(messages))
        if not references:  # the result may not be there yet
            return "waiting"
        return "done" if MIDDLE in str(messages) else call(RETRIEVE, reference=references[0], pattern="^line 1,000 ")

    turns = (call(), wait_or_read, wait_or_read)
    subject = agent(ContextOffloader(), turns=turns, background_tasks={"always": ["fetch"]})
    subject("go")

    _, delivered, found = results(subject)
    assert "Tool result offloaded." in text_of(delivered)
    assert MIDDLE not in text_of(delivered)
    assert MIDDLE in text_of(found)


def test_an_unknown_tool_does_no_harm() -> None:
    subject = agent(ContextOffloader(), turns=(call("unheard_of"),))

    subject("go")

    assert results(subject)[0]["status"] == "error"


def test_a_tool_that_raises_does_no_harm() -> None:
    @tool
    def fetch() -> str:
        """Fail with a long story."""
        raise RuntimeError(BIG)

    result = run(ContextOffloader(), tools=[fetch])

    assert result["status"] == "error"
    assert MIDDLE not in text_of(result)


# Our own failures.


@pytest.mark.parametrize(
    "knobs",
    [
        {"scope": lambda _: 1 / 0},
        {"scope": lambda _: 7},
        {"scope": lambda _: ""},
        {"require_scope": True},
    ],
    ids=["scope raises", "scope is a number", "scope is empty", "no scope"],
)
def test_a_rewrite_that_fails_leaves_the_raw_result(knobs: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    subject = agent(ContextOffloader(**knobs))

    result = subject("go")

    assert result.stop_reason == "end_turn"
    assert text_of(results(subject)[0]) == BIG
    assert "it is kept" in caplog.text


def test_a_storage_that_fails_leaves_the_raw_result(caplog: pytest.LogCaptureFixture) -> None:
    assert text_of(run(ContextOffloader(Broken()))) == BIG
    assert "RuntimeError" in caplog.text


def test_our_token_count_decides_if_the_models_count_fails() -> None:
    subject = agent(ContextOffloader())
    subject.model.tokens = ConnectionError("no network")  # type: ignore[attr-defined]

    subject("go")

    assert MIDDLE not in text_of(results(subject)[0])


def test_a_result_without_content_passes_through(caplog: pytest.LogCaptureFixture) -> None:
    subject = agent(ContextOffloader())
    subject.add_hook(lambda event: setattr(event, "result", {"toolUseId": "x"}), AfterToolCallEvent)

    subject("go")

    assert "it is kept" in caplog.text


def test_an_eviction_that_fails_does_no_harm(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    storage = InMemoryStorage(1)
    monkeypatch.setattr(storage, "delete", lambda _: 1 / 0)
    tools = [returning(BIG), returning("small", name="small")]

    agent(ContextOffloader(storage), tools=tools, turns=(call(), *[call("small")] * 3))("go")

    assert "failed to evict" in caplog.text


# The tool's own result.


def test_the_tools_own_result_is_never_changed() -> None:
    block = {"text": BIG}
    before = copy.deepcopy(block)
    tools = [returning(block)]

    for _ in range(2):
        assert MIDDLE not in text_of(run(ContextOffloader(), tools=tools))
    assert block == before


# A tool with the retrieval tool's name.


def test_a_tool_with_the_name_of_ours_is_replaced_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    subject = agent(ContextOffloader(), tools=[returning(BIG), returning("theirs", name=RETRIEVE)])

    assert "is replaced by coatcheck's" in caplog.text
    assert subject.tool.retrieve_offloaded_content(reference="x")["status"] == "error"


def test_without_our_tool_another_tool_may_have_its_name(caplog: pytest.LogCaptureFixture) -> None:
    plugin = ContextOffloader(include_retrieval_tool=False)
    subject = agent(plugin, tools=[returning(BIG, name=RETRIEVE)], turns=(call(RETRIEVE),))

    subject("go")

    assert caplog.text == ""
    assert references(results(subject)[0]), "its results are treated like any other"


def test_a_tool_that_takes_the_name_later_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    subject = agent(ContextOffloader(), turns=(call(RETRIEVE), call()))
    subject.tool_registry.register_tool(returning(BIG, name=RETRIEVE))

    subject("go")

    assert caplog.text.count("is taken by another tool") == 1
    assert all("To read more: use your available tools" in text_of(result) for result in results(subject))


# Offloaded only once.


def test_a_placeholder_from_another_agent_is_not_offloaded_again() -> None:
    storage = InMemoryStorage()
    inner = agent(ContextOffloader(storage))
    inner("go")
    placeholder = text_of(results(inner)[0])

    assert text_of(
        run(ContextOffloader(Offloader(storage, max_result_tokens=600)), tools=[returning(placeholder)])
    ) == (placeholder)
