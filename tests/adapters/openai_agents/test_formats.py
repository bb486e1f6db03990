"""Sessions that earlier versions saved: the conversation continues, and its content can be read."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from agents import SQLiteSession

from coatcheck import FileStorage
from coatcheck_openai import ToolOffloader, offloaded_references
from tests.adapters.openai_agents.agents import MIDDLE, reading, run
from tests.formats.kept import check_conversation, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.testing import ScriptedServer


@every_version
async def test_a_session_from_an_earlier_version_continues(
    server: ScriptedServer, version: str, tmp_path: Path
) -> None:
    left, offload = left_by(version, "openai-agents", tmp_path), ToolOffloader(FileStorage(tmp_path / "artifacts"))
    with closing(SQLiteSession("session-1", tmp_path / "sessions.sqlite")) as session:
        before = await session.get_items()

        script = await run(server, offload.tools(), reading(pattern="^line 1,000 of"), session=session)

        after = await session.get_items()
    assert [list(found) for item in before if (found := offloaded_references(item))] == left.references
    assert after[: len(before)] == before, "nothing is offloaded again"
    assert MIDDLE in script.shown[-1][-1]
    check_conversation(offload.offloader, left)
