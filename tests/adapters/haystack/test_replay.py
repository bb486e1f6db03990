"""``coatcheck replay`` on what ``ChatMessage.to_dict`` makes of conversations of real Haystack agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coatcheck import InMemoryStorage
from coatcheck_haystack import SCOPE_CONTEXT_KEY, ToolResultOffloadHook
from tests.adapters.haystack.agents import IMAGE, LONG, agent_of, call, say, tool
from tests.adapters.recordings import SCOPE, already_offloaded, in_view, recorded, said_to_stay

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.replay.conversation import Conversation


def run(path: Path, hook: ToolResultOffloadHook | None) -> Conversation:
    tools = [tool("search", LONG), tool("picture", [IMAGE], raw=True)]
    script = (call(("search", {}), ("picture", {})), say())
    agent, _ = agent_of(tools, *script, hook=hook, hooks=None if hook else [])
    context: dict[str, Any] = {SCOPE_CONTEXT_KEY: SCOPE}
    answer = agent.run(messages=[], system_prompt="be brief", hook_context=context)
    return recorded(path, [message.to_dict() for message in answer["messages"]])


def test_a_replay_predicts_exactly_what_stays(tmp_path: Path) -> None:
    before = run(tmp_path / "before", None)
    after = run(tmp_path / "after", ToolResultOffloadHook(InMemoryStorage()))

    assert before.recorded_as == "Haystack messages"
    assert [name for name, _ in in_view(before)] == ["search", "picture"]
    assert said_to_stay(before) == in_view(after) != in_view(before)
    assert already_offloaded(after) == 1
