"""The sessions that coding agents record: what was sent to the model, and where a new conversation begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.blocks import TextBlock
from coatcheck.replay.conversation import Call, Result, Turn, Words
from coatcheck.replay.files import read_conversations
from coatcheck.replay.sessions import sessions_in
from tests.replay.samples import ANSWER, ARGUMENTS, QUESTION, TOOL, anthropic, responses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from coatcheck.replay.conversation import Conversation

SUMMARY = "The user asked for an umbrella."


def claude_line(message: dict[str, Any], **more: object) -> dict[str, Any]:
    """Return a line as Claude Code 2.1 writes it, with a part of its fields."""
    fields = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "version": "2.1.332", "uuid": "u"}
    return {**fields, "type": message["role"], "message": message, **more}


def claude_code(result: str) -> list[dict[str, Any]]:
    question, call, returned, answer = anthropic(result)
    called = {"id": "msg_1", "role": "assistant"}
    return [
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "go"},
        claude_line(question),
        {"type": "attachment", "sessionId": "s", "attachment": {"type": "todo"}},
        claude_line({**called, "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}]}),
        claude_line({**called, "content": call["content"]}),
        claude_line(returned, toolUseResult={"stdout": result}),
        claude_line(answer),
        {"type": "summary", "summary": "Umbrellas", "leafUuid": "u"},
    ]


def codex_line(payload: dict[str, Any], kind: str = "response_item") -> dict[str, Any]:
    return {"timestamp": "2026-11-26T00:00:00Z", "type": kind, "payload": payload}


def codex(result: str) -> list[dict[str, Any]]:
    question, call, returned, answer = responses(result)
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
    return [
        codex_line({"id": "s", "cli_version": "0.146.0"}, "session_meta"),
        codex_line({"type": "message", **question}),
        codex_line({"model": "gpt-5"}, "turn_context"),
        codex_line(thought),
        codex_line(call),
        codex_line({"type": "ghost_snapshot"}),
        codex_line({"type": "token_count"}, "event_msg"),
        codex_line(returned),
        codex_line(answer),
    ]


def read(path: Path, lines: Sequence[object]) -> list[Conversation]:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    left_out: list[str] = []
    found = read_conversations(path, left_out)
    assert not left_out
    return found


@pytest.mark.parametrize("recorded", [claude_code, codex])
def test_a_session_reads_as_the_conversation_that_the_model_had(
    recorded: Callable[[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    (found,) = read(tmp_path / "session.jsonl", recorded("found it"))

    question, turn, result, answer = found.parts
    assert question == Words((TextBlock(QUESTION),))
    assert turn == Turn((TextBlock("hm"),), (Call(TOOL, json.dumps(ARGUMENTS)),)), "one turn, in several lines"
    assert isinstance(result, Result)
    assert (result.result.tool_name, result.result.blocks) == (TOOL, (TextBlock("found it"),))
    assert answer == Turn((TextBlock(ANSWER),))
    assert found.name == "session.jsonl"


COMPACTED = [
    pytest.param(
        claude_code,
        [
            {"type": "system", "subtype": "compact_boundary", "sessionId": "s"},
            claude_line({"role": "user", "content": SUMMARY}, isCompactSummary=True),
        ],
        id="Claude Code",
    ),
    pytest.param(codex, [codex_line({"message": SUMMARY}, "compacted")], id="Codex, a summary"),
    pytest.param(
        codex,
        [codex_line({"message": "", "replacement_history": [{"role": "user", "content": SUMMARY}]}, "compacted")],
        id="Codex, what the model got",
    ),
]


@pytest.mark.parametrize(("recorded", "boundary"), COMPACTED)
def test_a_summary_begins_a_conversation_of_its_own(
    recorded: Callable[[str], list[dict[str, Any]]], boundary: list[dict[str, Any]], tmp_path: Path
) -> None:
    first, second = read(tmp_path / "session.jsonl", [*recorded("one"), *boundary, *recorded("two")])

    assert len(first.parts) == 4
    assert second.parts == (Words((TextBlock(SUMMARY),)), *read(tmp_path / "b.jsonl", recorded("two"))[0].parts)
    assert [first.name, second.name] == ["session.jsonl, part 1", "session.jsonl, part 2"]


def test_items_that_codex_keeps_for_itself_do_not_end_the_conversation(tmp_path: Path) -> None:
    kept = [{"role": "user", "content": SUMMARY}, {"type": "ghost_snapshot"}, {"type": "compaction_summary"}]
    summary = codex_line({"message": "", "replacement_history": kept}, "compacted")

    _, second = read(tmp_path / "session.jsonl", [*codex("one"), summary, *codex("two")])

    assert second.parts[0] == Words((TextBlock(SUMMARY),))
    assert len(second.parts) == 5


def test_a_message_written_by_claude_code_itself_is_not_a_turn(tmp_path: Path) -> None:
    said = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}

    (found,) = read(tmp_path / "session.jsonl", [*claude_code("one"), claude_line(said, isApiErrorMessage=True)])

    assert found.parts == read(tmp_path / "a.jsonl", claude_code("one"))[0].parts


def test_conversations_in_a_file_are_read_even_if_a_line_looks_like_one_of_a_session(tmp_path: Path) -> None:
    request = {
        "type": "user",
        "sessionId": "s",
        "message": {"role": "user", "content": "x"},
        "messages": anthropic("y"),
    }

    first, second = read(tmp_path / "log.jsonl", [request, {"messages": anthropic("z")}])

    assert [len(first.parts), len(second.parts)] == [4, 4]


def test_a_subagents_messages_are_a_conversation_of_their_own(tmp_path: Path) -> None:
    main = claude_code("one")
    of_agent = [{**line, "isSidechain": True, "agentId": "a7"} for line in claude_code("two") if "message" in line]

    first, second = read(tmp_path / "session.jsonl", [*main[:3], *of_agent[:2], *main[3:], *of_agent[2:]])

    assert first.parts == read(tmp_path / "a.jsonl", main)[0].parts
    assert second.parts == read(tmp_path / "b.jsonl", claude_code("two"))[0].parts


def test_a_line_that_was_cut_off_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join([*map(json.dumps, codex("one")), '{"timestamp": "2026']), encoding="utf-8")
    left_out: list[str] = []

    (found,) = read_conversations(path, left_out)

    assert len(found.parts) == 4
    assert left_out == [f"{path}: line 10 is not JSON: Unterminated string starting at: line 1 column 15 (char 14)"]


JSON = st.recursive(
    st.none() | st.sampled_from(["user", "assistant", "response_item", "compacted", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "payload", "message", "sessionId", "role", "isSidechain", "replacement_history"]),
            inner,
        )
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=5))
def test_no_conversation_is_empty_whatever_the_lines_hold(lines: list[Any]) -> None:
    assert all(sessions_in(lines))
