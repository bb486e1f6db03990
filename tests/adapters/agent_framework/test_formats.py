"""Sessions that earlier versions saved: the conversation continues, and its content can be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_framework import AgentSession, Content

from coatcheck import FileStorage
from coatcheck_agent_framework import ToolOffloader, offloaded_references
from tests.adapters.agent_framework.agents import run
from tests.adapters.scripts import MIDDLE, reading
from tests.formats.kept import check_conversation, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.testing import ScriptedServer


def contents_in(saved: Any) -> list[Any]:  # noqa: ANN401 - as JSON
    (messages,) = (value["messages"] for value in saved["state"].values() if "messages" in value)
    return [content for message in messages for content in message["contents"]]


@every_version
async def test_a_session_from_an_earlier_version_continues(
    server: ScriptedServer, version: str, tmp_path: Path
) -> None:
    left, offload = left_by(version, "agent-framework", tmp_path), ToolOffloader(FileStorage(tmp_path / "artifacts"))
    saved = json.loads((tmp_path / "session.json").read_text())
    known = vars(Content.from_text(""))
    for content in contents_in(saved):  # a later framework saved it, with fields that older versions do not know
        for name in content.keys() - known.keys():
            del content[name]
    session = AgentSession.from_dict(saved)

    script = await run(server, offload, [], reading(pattern="^line 1,000 of"), session=session)

    before = contents_in(saved)
    assert [list(found) for each in before if (found := offloaded_references(each))] == left.references
    assert contents_in(session.to_dict())[: len(before)] == before, "nothing is offloaded again"
    assert MIDDLE in script.shown[-1][-1]
    check_conversation(offload.offloader, left)
