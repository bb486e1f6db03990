"""``coatcheck replay`` on the folders that a session manager of Strands leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from strands.session.file_session_manager import FileSessionManager

from coatcheck import InMemoryStorage, TiktokenCounter
from coatcheck_strands import ContextOffloader
from tests.adapters.recordings import SCOPE, already_offloaded, in_view, read, recorded, said_to_stay
from tests.adapters.strands.agents import BIG, agent, call, returning

if TYPE_CHECKING:
    from pathlib import Path

    from strands import Agent

PICTURE = {"image": {"format": "png", "source": {"bytes": b"picture"}}}


def run(folder: Path, *plugins: Any) -> Agent:  # noqa: ANN401
    tools = [returning(BIG, name="search"), returning({"json": {"a": 1}}, PICTURE, name="picture")]
    manager = FileSessionManager("one", storage_dir=str(folder))
    subject = agent(*plugins, turns=[call("search") + call("picture"), "done"], tools=tools, session_manager=manager)
    subject("go")
    return subject


def offloading() -> ContextOffloader:
    # Strands' models estimate tokens; the replay, and so this test, counts them.
    return ContextOffloader(InMemoryStorage(), scope=SCOPE, token_counter=TiktokenCounter())


def test_a_replay_predicts_exactly_what_stays(tmp_path: Path) -> None:
    run(tmp_path / "before")
    run(tmp_path / "after", offloading())

    before, after = read(tmp_path / "before"), read(tmp_path / "after")

    assert before.name == "session_one/agent_default"
    assert [name for name, _ in in_view(before)] == ["search", "picture"]
    assert said_to_stay(before, preview_tokens=1_000) == in_view(after) != in_view(before)
    assert already_offloaded(after) == 1


def test_an_agents_messages_are_read_like_its_session(tmp_path: Path) -> None:
    subject = run(tmp_path / "session")
    messages = json.loads(json.dumps(subject.messages, default=lambda data: {"data": "cGljdHVyZQ=="}))

    assert recorded(tmp_path / "messages", messages).parts == read(tmp_path / "session").parts
