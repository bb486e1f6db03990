"""Sessions and storages that earlier versions saved: the session continues, and the storages can be read."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from strands.session import FileSessionManager
from strands.storage import LocalFileStorage
from strands.vended_plugins.context_offloader import FileStorage as Theirs

from coatcheck import StrandsOffloaderStorageBridge, StrandsStorageBridge
from coatcheck_strands import ContextOffloader, FileStorage, offloaded_references
from tests.adapters.strands.agents import RETRIEVE, agent, call, results, text_of
from tests.formats.kept import check_conversation, check_storage, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path


@every_version
def test_a_session_from_an_earlier_version_continues(version: str, tmp_path: Path) -> None:
    left = left_by(version, "strands", tmp_path)
    plugin = ContextOffloader(FileStorage(str(tmp_path / "artifacts")))
    reads = call(RETRIEVE, reference=left.references[0][0], pattern="^line 1,000 of")
    session = FileSessionManager(session_id="session-1", storage_dir=str(tmp_path / "sessions"))
    subject = agent(plugin, turns=(reads,), session_manager=session)
    before = copy.deepcopy(results(subject))

    subject("go on")

    assert results(subject)[:-1] == before, "nothing is offloaded again"
    assert [list(offloaded_references(result)) for result in before] == left.references
    assert "> 1000| line 1,000 of 2,000" in text_of(results(subject)[-1])
    check_conversation(plugin.offloader_of(subject), left)


@every_version
def test_a_unified_storage_from_an_earlier_version_is_read(version: str, tmp_path: Path) -> None:
    left = left_by(version, "strands-unified", tmp_path)

    check_storage(StrandsStorageBridge(LocalFileStorage(str(tmp_path / "storage"))), left)


@every_version
def test_a_storage_of_strands_own_offloader_is_read(version: str, tmp_path: Path) -> None:
    left = left_by(version, "strands-offloader", tmp_path)

    check_storage(StrandsOffloaderStorageBridge(Theirs(str(tmp_path / "artifacts"))), left)
