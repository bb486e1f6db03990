"""Sessions and artifacts that earlier versions saved: the session continues, and the artifacts can be read."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from google.adk.artifacts import FileArtifactService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from coatcheck import FileStorage
from coatcheck_adk import ArtifactServiceBridge, OffloadPlugin, offloaded_references
from tests.adapters.google_adk.agents import APP, SESSION, USER, Talk, playing, returning
from tests.adapters.scripts import MIDDLE, Script, reading
from tests.formats.kept import check_conversation, check_storage, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.gemini import GeminiServer


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # ADK leaves it open after it checks the schema
@every_version
async def test_a_session_from_an_earlier_version_continues(server: GeminiServer, version: str, tmp_path: Path) -> None:
    left, plugin = left_by(version, "google-adk", tmp_path), OffloadPlugin(FileStorage(tmp_path / "artifacts"))
    service, script = SqliteSessionService(str(tmp_path / "sessions.sqlite")), Script(reading(pattern="^line 1,000 of"))
    saved = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    assert saved is not None

    with playing(server, script, [returning("few")]) as agent:
        await Talk(agent=agent, plugins=[plugin], service=service).ask()

    after = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    gc.collect()  # collect here, where the warning is ignored, and not in the middle of another test
    assert after is not None
    (found,) = filter(None, map(offloaded_references, saved.events))
    assert list(found) == [reference for contents in left.references for reference in contents]
    assert after.events[: len(saved.events)] == saved.events, "nothing is offloaded again"
    assert MIDDLE in script.shown[-1][-1]
    check_conversation(plugin.offloader, left)


@every_version
def test_artifacts_from_an_earlier_version_are_read(version: str, tmp_path: Path) -> None:
    left = left_by(version, "adk-artifacts", tmp_path)

    check_storage(ArtifactServiceBridge(FileArtifactService(tmp_path / "artifacts")), left)
