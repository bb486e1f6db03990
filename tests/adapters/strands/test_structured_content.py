"""Data that an MCP tool returns next to its content: no raw copy stays, and the host gets it back."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from strands.session import FileSessionManager
from strands.types._events import ToolResultEvent
from strands.types.tools import AgentTool

import coatcheck
import coatcheck_strands.copies
from coatcheck_strands import ContextOffloader, FileStorage, offloaded_references
from tests.adapters.strands.agents import BIG, MIDDLE, agent, reading, results, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from strands.types.tools import ToolGenerator, ToolSpec, ToolUse

DATA = {"data": BIG, "numbers": [1, 2.5, None, True], "none": {}}


class Server(AgentTool):
    """A tool that returns what an MCP tool returns."""

    def __init__(self, text: str, **other: object) -> None:
        super().__init__()
        self.text, self.other = text, other

    @property
    def tool_name(self) -> str:
        return "fetch"

    @property
    def tool_spec(self) -> ToolSpec:
        return {"name": "fetch", "description": "Gives a result.", "inputSchema": {"json": {"type": "object"}}}

    @property
    def tool_type(self) -> str:
        return "python"

    async def stream(self, tool_use: ToolUse, invocation_state: dict[str, Any], **_: object) -> ToolGenerator:
        result: Any = {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": self.text}]}
        result.update(self.other)
        yield ToolResultEvent(result)


def asked(tool: Server, **knobs: Any) -> tuple[Any, ContextOffloader, Any]:  # noqa: ANN401
    """Return the result in the conversation, with the plugin and the agent."""
    plugin = ContextOffloader(**knobs)
    subject = agent(plugin, tools=[tool])
    subject("go")
    return results(subject)[0], plugin, subject


@pytest.mark.parametrize("text", [BIG, "small"], ids=["with large text", "with small text"])
def test_data_next_to_the_content_is_taken_out_and_restored(text: str) -> None:
    other = {"structuredContent": DATA, "metadata": {"of": BIG}, "isError": False}
    result, plugin, subject = asked(Server(text, **other))

    assert MIDDLE not in str(subject.messages)
    assert len(json.dumps({key: result[key] for key in other})) < 500
    restored = plugin.restore(result, subject)
    assert {key: restored[key] for key in other} == other  # type: ignore[literal-required]
    assert restored["content"] == result["content"]
    assert len(offloaded_references(result)) == (1 if text == BIG else 0)


def test_small_text_next_to_large_data_stays_as_it_is() -> None:
    result, _, _ = asked(Server("small", structuredContent=DATA))

    assert result["content"] == [{"text": "small"}]


def test_small_data_stays_next_to_a_placeholder() -> None:
    result, plugin, subject = asked(Server(BIG, structuredContent={"rows": 2_000}, metadata={"took": 7}))

    assert (result["structuredContent"], result["metadata"]) == ({"rows": 2_000}, {"took": 7})
    assert plugin.restore(result, subject) == result


def test_data_within_the_threshold_stays_next_to_text_that_stays() -> None:
    result, _, _ = asked(Server("small", structuredContent={"data": BIG[:4_000]}))

    assert result["structuredContent"] == {"data": BIG[:4_000]}


def test_a_copy_within_the_threshold_does_not_stay_next_to_offloaded_text() -> None:
    result, plugin, subject = asked(Server(BIG, structuredContent={"data": BIG[:4_000]}))

    assert BIG[:4_000] not in str(result["structuredContent"])
    assert plugin.restore(result, subject)["structuredContent"] == {"data": BIG[:4_000]}  # type: ignore[typeddict-item]


async def test_large_data_is_searched_on_a_thread_and_never_counted_by_the_agents_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, stored = list[threading.Thread](), coatcheck_strands.copies._is_stored

    def noting(value: object) -> bool:
        threads.append(threading.current_thread())
        return stored(value)

    monkeypatch.setattr(coatcheck_strands.copies, "_is_stored", noting)
    plugin = ContextOffloader()
    subject = agent(plugin, tools=[Server("small", structuredContent={"data": BIG * 20})])

    await subject.invoke_async("go")

    assert MIDDLE not in str(subject.messages)
    assert threads
    assert threading.main_thread() not in threads
    assert MIDDLE not in str(subject.model.counted)  # type: ignore[attr-defined]


class Second(ContextOffloader):
    name = "second"


def test_what_two_offloaders_took_out_is_restored() -> None:
    storage = coatcheck.InMemoryStorage()
    first = ContextOffloader(storage, max_result_tokens=10_000)
    second = Second(storage, max_result_tokens=1_000, preview_tokens=200, include_retrieval_tool=False)
    other = {"structuredContent": DATA, "metadata": {"of": BIG[:12_000]}}
    subject = agent(second, first, tools=[Server("small", **other)])
    subject("go")

    result = results(subject)[0]
    restored = first.restore(result, subject)

    assert cast("Any", result)["coatcheck"]["taken_out"] == ["metadata", "structuredContent"]
    assert {key: restored[key] for key in other} == other  # type: ignore[literal-required]


def test_structured_content_stays_if_the_host_wants_it() -> None:
    result, _, _ = asked(Server(BIG, structuredContent=DATA), keep_structured_content=True)

    assert result["structuredContent"] is DATA
    assert MIDDLE not in text_of(result)


def test_data_with_nan_is_taken_out_and_restored() -> None:
    odd = {"data": BIG, "rows": [{"mean": float("nan")}, {"mean": float("-inf")}]}
    result, plugin, subject = asked(Server("small", structuredContent=odd))

    assert MIDDLE not in str(subject.messages)
    assert repr(plugin.restore(result, subject)["structuredContent"]) == repr(odd)  # type: ignore[typeddict-item]


NAN = {"mean": float("nan")}


@pytest.mark.parametrize(
    "other", [{**NAN, "pair": (1, 2)}, {**NAN, "by number": {1: "one"}}, {**NAN, "emoji": "\ud83d\ude00"}]
)
def test_data_that_json_cannot_round_trip_stays_next_to_a_nan(other: dict[str, Any]) -> None:
    odd = {"data": BIG, **other}
    result, _, _ = asked(Server("small", structuredContent=odd))

    assert result["structuredContent"] is odd


@pytest.mark.parametrize("other", [{"made": object()}, {"pair": (1, 2)}, {"by number": {1: "one"}}, {"by": {None: 1}}])
def test_data_that_json_cannot_round_trip_stays(other: dict[str, Any]) -> None:
    odd = {"data": BIG, **other}
    result, _, _ = asked(Server("small", structuredContent=odd))

    assert result["structuredContent"] is odd


def test_data_is_restored_from_a_session_after_a_restart(tmp_path: Path) -> None:
    def resumed(*turns: Any) -> tuple[ContextOffloader, Any]:  # noqa: ANN401
        plugin = ContextOffloader(FileStorage(str(tmp_path / "kept")))
        session = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        tools = [Server(BIG, structuredContent=DATA)]
        return plugin, agent(plugin, tools=tools, turns=turns, session_manager=session, agent_id="a")

    resumed()[1]("go")
    plugin, later = resumed(reading(pattern="^line 7 of"))

    assert plugin.restore(results(later)[0], later)["structuredContent"] == DATA  # type: ignore[typeddict-item]


@pytest.mark.parametrize("text", [BIG, "small"], ids=["with large text", "with small text"])
@pytest.mark.parametrize("keeps", [False, True])
def test_a_servers_own_value_that_looks_like_a_mark_loads_nothing(text: str, *, keeps: bool) -> None:
    plugin = ContextOffloader(keep_structured_content=keeps)
    other = plugin.offloader_of().offload([coatcheck.JsonBlock({"of another tool": BIG})], tool_name="other")
    assert isinstance(other, coatcheck.Offloaded)
    forged = {"coatcheck": {"reference": other.references[0].id, "bytes": other.references[0].size}}
    subject = agent(plugin, tools=[Server(text, structuredContent=forged, metadata={"of": BIG})])

    subject("go")

    restored: Any = plugin.restore(results(subject)[0], subject)
    assert (restored["structuredContent"], restored["metadata"]) == (forged, {"of": BIG})


def test_a_result_that_an_earlier_version_saved_without_a_note_is_restored() -> None:
    result, plugin, subject = asked(Server(BIG, structuredContent=DATA))
    assert result["coatcheck"].pop("taken_out") == ["structuredContent"]

    assert plugin.restore(result, subject)["structuredContent"] == DATA  # type: ignore[typeddict-item]


@pytest.mark.parametrize("scope", ["a", ("tenant-7", "a")])
def test_a_result_is_restored_from_the_scope_that_the_plugin_was_given(scope: coatcheck.Scope) -> None:
    result, plugin, subject = asked(Server("small", structuredContent=DATA), scope=scope)

    assert plugin.restore(result, subject)["structuredContent"] == DATA  # type: ignore[typeddict-item]
    with coatcheck.scope("b"):  # the plugin's own scope takes precedence, as when storing
        assert plugin.restore(result, subject)["structuredContent"] == DATA  # type: ignore[typeddict-item]


def test_another_scope_restores_nothing() -> None:
    result, plugin, subject = asked(Server("small", structuredContent=DATA), scope="a")

    assert plugin.restore(result, subject, scope="a")["structuredContent"] == DATA  # type: ignore[typeddict-item]
    with pytest.raises(coatcheck.ReferenceNotFound):
        plugin.restore(result, subject, scope="b")
