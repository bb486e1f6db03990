"""Loops and threads: nothing blocks the loop, each call may have its own, and parallel tools do not mix up results."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from strands import tool

from coatcheck import ByteCounter, FileStorage, Offloader
from coatcheck import InMemoryStorage as CoreStorage
from coatcheck_strands import ContextOffloader, InMemoryStorage
from coatcheck_strands import FileStorage as StrandsFileStorage
from tests.adapters.strands.agents import BIG, MIDDLE, agent, call, reading, references, results, run, text_of

if TYPE_CHECKING:
    from pathlib import Path

FOUND = ">  7| line 7 of"


@pytest.mark.parametrize("kind", [FileStorage, StrandsFileStorage], ids=["core", "strands"])
async def test_nothing_blocks_the_loop(kind: Any, tmp_path: Path) -> None:  # noqa: ANN401
    subject = agent(ContextOffloader(kind(str(tmp_path))), turns=(call(), reading(pattern="^line 7 of")))

    with blockbuster_ctx():
        await subject.invoke_async("go")

    assert FOUND in text_of(results(subject)[-1])


async def test_direct_use_of_a_storage_does_not_block_the_loop(tmp_path: Path) -> None:
    storage = StrandsFileStorage(str(tmp_path))

    with blockbuster_ctx():
        reference = await storage.store("key", b"x" * 3_000_000)
        content, _ = await storage.retrieve(reference)
        with pytest.raises(KeyError):
            await storage.retrieve("1700000000000_1_old.txt")

    assert content == b"x" * 3_000_000


async def test_a_streaming_agent_offloads_and_reads_back() -> None:
    subject = agent(ContextOffloader(), turns=(call(), reading(pattern="^line 7 of")))

    events = [event async for event in subject.stream_async("go")]

    assert events[-1]["result"].stop_reason == "end_turn"
    assert FOUND in text_of(results(subject)[-1])
    messages = [event["message"] for event in events if "message" in event]
    assert messages
    assert MIDDLE not in str(messages)


def test_each_call_may_run_on_another_loop(tmp_path: Path) -> None:
    plugin = ContextOffloader(FileStorage(tmp_path))
    subject = agent(plugin, turns=(call(), "first", reading(pattern="^line 7 of"), "second", call(), "third"))

    subject("sync, which makes a loop on a thread")
    asyncio.run(subject.invoke_async("async"))
    asyncio.run(subject.invoke_async("async, on another loop"))

    assert FOUND in text_of(results(subject)[1])
    assert text_of(results(subject)[2]) == text_of(results(subject)[0])


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_parallel_calls_each_get_their_own_result(*, is_async: bool) -> None:
    @tool
    def fetch(number: int) -> str:
        """Give a result."""
        return BIG.replace("line", f"row{number}")

    turns = ([("fetch", {"number": number}) for number in range(8)],)
    subject = agent(ContextOffloader(InMemoryStorage()), tools=[fetch], turns=turns)

    asyncio.run(subject.invoke_async("go")) if is_async else subject("go")

    found = results(subject)
    assert [f"row{number} 1 of" in text_of(result) for number, result in enumerate(found)] == [True] * 8
    assert len({references(result)[0] for result in found}) == 8


def test_one_plugin_serves_agents_on_many_threads() -> None:
    plugin = ContextOffloader(InMemoryStorage())
    answers: list[str] = []

    def converse() -> None:
        subject = agent(plugin, turns=(call(), reading(pattern="^line 7 of")))
        subject("go")
        answers.append(text_of(results(subject)[-1]))

    threads = [threading.Thread(target=converse) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 6
    assert all(FOUND in answer for answer in answers)


# Options that only ours has.


def test_a_token_counter_measures_instead_of_the_model() -> None:
    subject = agent(ContextOffloader(token_counter=ByteCounter(), max_result_tokens=30_000))

    subject("go")

    assert text_of(results(subject)[0]) == BIG
    assert subject.model.counted == []  # type: ignore[attr-defined]


def test_a_ready_offloader_decides_by_its_own_knobs() -> None:
    offloader = Offloader(CoreStorage(), max_result_tokens=30_000, token_counter=ByteCounter())

    assert text_of(run(ContextOffloader(offloader))) == BIG
    assert ContextOffloader(offloader).offloader_of() is offloader
    assert offloader.stats().results == 1


@pytest.mark.parametrize("knobs", [{"max_result_tokens": 9}, {"preview_tokens": 9}, {"offload_errors": True}], ids=str)
def test_a_ready_offloader_takes_no_knobs(knobs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a ready Offloader has its own \w+; set them on the Offloader"):
        ContextOffloader(Offloader(), **knobs)


def test_a_step_budget_in_a_ready_offloader_does_nothing_and_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ContextOffloader(Offloader(max_step_tokens=9_000))

    assert "max_step_tokens of this Offloader does nothing here: Strands passes on one call at a time" in caplog.text


def test_a_wrong_knob_is_named() -> None:
    with pytest.raises(ValueError, match="max_step_tokens would do nothing here"):
        ContextOffloader(InMemoryStorage(), max_step_tokens=5_000)
    with pytest.raises(TypeError, match="max_tokens"):
        ContextOffloader(max_tokens=5)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="scope must be"):
        ContextOffloader(scope=7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="should_offload must be a callable or None, not 'no'"):
        ContextOffloader(should_offload="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="include_retrieval_tool must be True or False, not 'false'"):
        ContextOffloader(include_retrieval_tool="false")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="native_media must be"):
        ContextOffloader(native_media="false")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="keep_structured_content must be"):
        ContextOffloader(keep_structured_content="false")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_inline_tokens"):
        ContextOffloader(max_inline_tokens=5)


def test_unknown_keywords_of_later_versions_are_logged_and_harmless(caplog: pytest.LogCaptureFixture) -> None:
    result = run(ContextOffloader(preview_strategy="head", reranker=None))  # type: ignore[call-arg]

    assert references(result)
    assert "coatcheck does not need preview_strategy, reranker" in caplog.text


def test_errors_stay_without_offload_errors() -> None:
    @tool
    def fetch() -> str:
        """Fail with a long story."""
        raise RuntimeError(BIG)

    assert MIDDLE in text_of(run(ContextOffloader(offload_errors=False), tools=[fetch]))


async def test_the_host_loads_what_a_reference_names() -> None:
    plugin = ContextOffloader()
    subject = agent(plugin)
    await subject.invoke_async("go")

    content = await plugin.offloader_of(subject).aload(references(results(subject)[0])[0])

    assert content.text == BIG
