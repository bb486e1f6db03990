"""The files and folders that ``coatcheck replay`` reads, and what it says about those that it cannot read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import InvalidRequest
from coatcheck.core.blocks import JsonBlock, TextBlock
from coatcheck.replay.conversation import Words
from coatcheck.replay.files import ACCEPTED, read_conversations
from coatcheck.replay.formats import FORMATS
from tests.replay.samples import RECORDERS, anthropic, openai, responses, saved, session, strands

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONE, OTHER = openai("one"), openai("other")


def lines(path: Path, *values: object) -> Path:
    path.write_text("\n".join(json.dumps(value) for value in values) + "\n\n", encoding="utf-8")
    return path


def names(path: Path) -> list[str]:
    return [conversation.name for conversation in read_conversations(path, [])]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ONE, ["a.txt"]),
        ({"messages": ONE}, ["a.txt"]),
        ({"id": "c7", "messages": ONE}, ["c7"]),
        ({"session_id": 7, "messages": ONE}, ["7"]),
        ([ONE, OTHER], ["a.txt, conversation 1", "a.txt, conversation 2"]),
        ([{"id": "c1", "messages": ONE}, {"id": "c2", "messages": OTHER}], ["c1", "c2"]),
        (ONE[0], ["a.txt"]),
    ],
)
def test_json_holds_one_conversation_or_many(value: object, expected: list[str], tmp_path: Path) -> None:
    assert names(saved(tmp_path / "a.txt", value)) == expected


def test_a_line_may_hold_a_conversation(tmp_path: Path) -> None:
    path = lines(tmp_path / "a", {"id": "c1", "messages": ONE}, OTHER)

    assert names(path) == ["c1", "a, line 2"]


def test_a_line_may_hold_a_message(tmp_path: Path) -> None:
    (conversation,) = read_conversations(lines(tmp_path / "a", *ONE), [])

    assert len(conversation.parts) == len(ONE)


def test_a_byte_order_mark_and_a_lone_surrogate_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([{"role": "user", "content": "\ud800"}]).encode())

    (conversation,) = read_conversations(path, [])

    assert conversation.parts == (Words((TextBlock("\ud800"),)),)


def test_a_line_that_is_not_utf_8_is_named_and_left_out(tmp_path: Path) -> None:
    """A file may have been cut off in the middle of a character."""
    path, left_out = tmp_path / "a.jsonl", list[str]()
    line = json.dumps([{"role": "user", "content": "상태"}], ensure_ascii=False).encode()
    path.write_bytes(b"\n".join([line, line, line[:32]]))

    assert len(read_conversations(path, left_out)) == 2
    assert len(left_out) == 1
    assert left_out[0].startswith(f"{path}: line 3 is not JSON: 'utf-8' codec can't decode")


def test_system_prompt_and_tools_of_a_request_open_the_conversation(tmp_path: Path) -> None:
    request = {"system": [{"type": "text", "text": "be brief"}], "tools": [{"name": "t"}], "messages": anthropic("x")}

    (conversation,) = read_conversations(saved(tmp_path / "a", request), [])

    system, tools = Words((TextBlock("be brief"),), is_system=True), Words((JsonBlock([{"name": "t"}]),))
    assert conversation.parts[:2] == (system, tools)


def test_every_agent_of_a_strands_session_is_a_conversation_in_message_order(tmp_path: Path) -> None:
    many = [{"role": "user", "content": [{"text": str(number)}]} for number in range(11)]
    session(session(tmp_path, strands("x")), many, agent="other")

    first, second = read_conversations(tmp_path, [])

    assert (first.name, second.name) == ("session_1/agent_default", "session_1/agent_other")
    assert first.recorded_as == "Strands messages"
    assert second.parts == tuple(Words((TextBlock(str(number)),)) for number in range(11))


def test_a_redacted_message_of_a_session_is_read_as_redacted(tmp_path: Path) -> None:
    path = session(tmp_path, strands("x")) / "session_1/agents/agent_default/messages/message_0.json"
    redacted = {"role": "user", "content": [{"text": "[redacted]"}]}
    saved(path, {**json.loads(path.read_text()), "redact_message": redacted})

    (conversation,) = read_conversations(tmp_path, [])

    assert conversation.parts[0] == Words((TextBlock("[redacted]"),))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"[]", "there is no message"),
        (b'{"messages": []}', "there is no message"),
        (b'[[], [{"role": "user"}]]', "conversation 1: there is no message"),
        (b"7", "these are not messages: message 1 is a number, not an object"),
        (b"[1, 2]", "these are not messages: message 1 is a number, not an object"),
        (b'{"conversation": []}', "these are not messages: message 1 has no role"),
        (b"\xff\xfe\x00", "not text in UTF-8: see its byte 0"),
        (b"hello\n", "neither JSON nor JSON Lines"),
        (b'{"a": 1}\n{"a": 2}\n{"a": "b\n', "line 3 is not JSON"),
        (b'{"role": "user", "content": "a"}\n{"role": ', "line 2"),
        (b'[{"role": "user"', "neither JSON nor JSON Lines"),
        (
            b'{"role": "user", "content": "a"}\n\n{"role": "alien", "content": ""}',
            "up to line 3, which has the role 'alien'",
        ),
        (b'[]\n{"role": "user", "content": "a"}', "line 1: there is no message"),
        (b'{"role": "user", "content": "a"}\n[]', "line 1 holds no conversation, and other lines do"),
        (b'{"messages": [7]}\n{"messages": [{"role": "user"', "line 1: these are not messages"),
        (b"[" * 100_000, "nested too deeply"),
        (b'[{"role": "user", "content": ' + b"9" * 5_000 + b"}]", "neither JSON nor JSON Lines"),
    ],
)
def test_unreadable_input_is_reported_with_its_place_and_the_accepted_formats(
    content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "recording"
    path.write_bytes(content)

    with pytest.raises(InvalidRequest) as raised:
        read_conversations(path, [])

    assert str(raised.value).startswith(str(path))
    assert said in str(raised.value)
    assert str(raised.value).endswith(ACCEPTED)


def test_a_folder_without_sessions_yields_its_transcripts_by_name_and_no_other_files(tmp_path: Path) -> None:
    for name in "hgfedcb":  # no filesystem lists this many in name order by chance
        saved(tmp_path / f"{name}.json", OTHER)
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(ONE)}\n{json.dumps(OTHER)}\n")
    (tmp_path / "notes.txt").write_text("not a transcript")
    (tmp_path / "folder.json").mkdir()

    found = read_conversations(tmp_path, [])

    others = [f"{name}.json" for name in "bcdefgh"]
    assert [each.name for each in found] == ["a.jsonl, line 1", "a.jsonl, line 2", *others]
    assert [each.source for each in found] == [str(tmp_path / name) for name in ("a.jsonl", "a.jsonl", *others)]


def test_a_last_message_that_was_cut_off_is_named_and_left_out(tmp_path: Path) -> None:
    path, left_out = tmp_path / "a.jsonl", list[str]()
    lines = ({"role": "user", "content": "look"}, {"role": "assistant", "content": "there"})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"role": "user", "cont', encoding="utf-8")

    (conversation,) = read_conversations(path, left_out)
    assert left_out == [f"{path}: line 3 is not JSON: Unterminated string starting at: line 1 column 18 (char 17)"]
    assert len(conversation.parts) == len(lines)


def test_an_unreadable_transcript_in_a_folder_is_named_and_left_out(tmp_path: Path) -> None:
    saved(tmp_path / "b.json", ONE)
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "c.json").write_bytes(b"\xff")
    left_out: list[str] = []

    (conversation,) = read_conversations(tmp_path, left_out)

    assert conversation.name == "b.json"
    assert left_out[0].startswith(f"{tmp_path / 'a.json'} is neither JSON nor JSON Lines")
    assert left_out[1].startswith(f"{tmp_path / 'c.json'} is not text in UTF-8")


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ('{"messages": [{"role": "user", "cont', "line 2 is not JSON"),
        ('{"messages": [7]}', "line 2: these are not messages: message 1 is a number"),
        ('{"messages": []}', "line 2: there is no message"),
        ("7", "line 2 holds no conversation, and other lines do"),
    ],
)
def test_a_line_that_holds_no_conversation_is_named_and_the_others_are_read(
    odd: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(ONE)}\n{odd}\n{json.dumps(OTHER)}\n")
    left_out: list[str] = []

    found = read_conversations(path, left_out)

    assert [each.name for each in found] == ["a.jsonl, line 1", "a.jsonl, line 3"]
    assert [one.startswith(f"{path}: {said}") for one in left_out] == [True]


@pytest.mark.parametrize(
    "link", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"conversation": {"id": "conv_1"}}]
)
def test_a_request_that_holds_only_new_items_is_named_and_left_out(link: dict[str, object], tmp_path: Path) -> None:
    whole = {"model": "m", "input": responses("whole"), "previous_response_id": None, "conversation": None}
    path = lines(tmp_path / "a", whole, {"model": "m", "input": responses("new"), **link})
    left_out: list[str] = []

    (conversation,) = read_conversations(path, left_out)

    assert conversation.name == "a, line 1"
    assert re.search(f"line 2: .*{next(iter(link))}.*only what is new", left_out[0])


def test_a_conversation_of_messages_may_carry_a_conversation_id(tmp_path: Path) -> None:
    assert names(saved(tmp_path / "a.txt", {"conversation": "c", "messages": ONE})) == ["a.txt"]


@pytest.mark.parametrize("first", [True, False])
def test_a_line_that_is_nested_too_deeply_is_named_and_left_out(first: bool, tmp_path: Path) -> None:
    deep, path, left_out = "[" * 100_000, tmp_path / "a.jsonl", list[str]()
    path.write_text("\n".join([deep, json.dumps(ONE)] if first else [json.dumps(ONE), deep, json.dumps(OTHER)]))

    found = read_conversations(path, left_out)

    assert [each.name for each in found] == (["a.jsonl, line 2"] if first else ["a.jsonl, line 1", "a.jsonl, line 3"])
    assert len(left_out) == 1
    assert f"line {1 if first else 2} is not JSON: " in left_out[0]


@pytest.mark.parametrize("is_deep", [True, False])
def test_the_other_agents_of_a_session_are_read_if_one_message_is_too_deep_or_not_a_file(
    is_deep: bool,
    tmp_path: Path,
) -> None:
    odd = session(session(tmp_path, strands("x")), strands("y"), agent="other").rglob("*other/messages/message_1.json")
    (message,), left_out = odd, list[str]()
    message.unlink()
    if is_deep:
        message.write_text("[" * 100_000)
    else:
        message.mkdir()

    (conversation,) = read_conversations(tmp_path, left_out)

    assert conversation.name == "session_1/agent_default"
    assert [one.startswith(str(message)) for one in left_out] == [True]


def test_the_other_agents_of_a_session_are_read_if_one_is_unreadable(tmp_path: Path) -> None:
    session(session(tmp_path, strands("x")), [{"role": "alien"}], agent="other")
    left_out: list[str] = []

    (conversation,) = read_conversations(tmp_path, left_out)

    assert conversation.name == "session_1/agent_default"
    assert [one.split(": ")[0].endswith("agent_other") for one in left_out] == [True]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no Strands session"),
        ({"messages/message_x.json": ""}, "holds no Strands session"),
        ({"other/message_0.json": "{}"}, "holds no Strands session"),
        (
            {"notes/a.txt": "x"},
            "no file that ends in .json, .jsonl, .ndjson: name another one, such as one below",
        ),
        ({"a/messages/message_0.json": "{"}, "message_0.json is not JSON"),
        ({"a/messages/message_0.json": "7"}, "message 1 is null"),
        ({"a/messages/message_0.json": '{"message": {"role": "alien"}}'}, "message 1 has"),
    ],
)
def test_a_folder_that_is_not_a_session_is_reported(files: dict[str, str], said: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)

    with pytest.raises(InvalidRequest, match=said):
        read_conversations(tmp_path, [])


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_conversations(tmp_path / "missing", [])


def test_the_accepted_formats_are_all_named() -> None:
    assert all(name in ACCEPTED for name in FORMATS)


def test_one_file_may_hold_recordings_in_many_formats(tmp_path: Path) -> None:
    values: list[Any] = [openai("x"), anthropic("x"), strands("x")]

    found = [conversation.recorded_as for conversation in read_conversations(lines(tmp_path / "a", *values), [])]

    assert found == ["OpenAI messages", "Anthropic messages", "Strands messages"]


@pytest.mark.parametrize(
    "record",
    [
        record
        for name in ("OpenAI messages", "LangChain messages", "Haystack messages", "OpenAI Responses items")
        for record in RECORDERS[name]
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_the_system_message_of_each_format_is_recognised(
    is_there: bool, record: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    first, *others = record("x")
    told = json.loads(re.sub('"(user|human)"', '"system"', json.dumps(first)).replace("HumanMessage", "SystemMessage"))

    (read,) = read_conversations(saved(tmp_path / "a.json", [*([told] if is_there else []), first, *others]), [])

    assert read.counted == ({"system"} if is_there else set())


@pytest.mark.parametrize(
    ("message", "counted"),
    [({"type": "SystemMessage", "content": "be brief"}, {"system"}), ({"role": "system", "content": ""}, set())],
)
def test_a_system_message_counts_only_if_it_has_content(
    message: dict[str, str], counted: set[str], tmp_path: Path
) -> None:
    others = [{"type": "human", "content": "x"}] if "type" in message else [{"role": "user", "content": "x"}]

    (read,) = read_conversations(saved(tmp_path / "a.json", [message, *others]), [])

    assert read.counted == counted


def test_system_prompt_and_tools_of_a_request_are_recognised(tmp_path: Path) -> None:
    request = {
        "instructions": "be brief",
        "tools": [{"name": "t"}],
        "input": RECORDERS["OpenAI Responses items"][0]("x"),
    }

    (read,) = read_conversations(saved(tmp_path / "a.json", request), [])

    assert read.counted == {"system", "tools"}
