"""Histories that earlier versions saved: the conversation continues, and its content can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelMessagesTypeAdapter

from coatcheck import FileStorage
from coatcheck_pydantic_ai import ToolOffloader, offloaded_references
from tests.adapters.pydantic_ai.agents import run
from tests.adapters.scripts import MIDDLE, reading
from tests.formats.kept import check_conversation, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.testing import ScriptedServer


@every_version
async def test_a_history_from_an_earlier_version_continues(
    server: ScriptedServer, version: str, tmp_path: Path
) -> None:
    left, offload = left_by(version, "pydantic-ai", tmp_path), ToolOffloader(FileStorage(tmp_path / "artifacts"))
    before = ModelMessagesTypeAdapter.validate_json((tmp_path / "messages.json").read_bytes())

    script, result = await run(server, offload, reading(pattern="^line 1,000 of"), message_history=[*before])

    parts = [part for message in before for part in message.parts]
    assert [list(found) for part in parts if (found := offloaded_references(part))] == left.references
    assert result.all_messages()[: len(before)] == before, "nothing is offloaded again"
    assert MIDDLE in script.shown[-1][-1]
    check_conversation(offload.offloader, left)
