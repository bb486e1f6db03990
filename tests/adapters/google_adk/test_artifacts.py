"""The bridge to ADK's artifact services: the whole storage contract, and an agent that uses one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.artifacts import FileArtifactService, InMemoryArtifactService

from coatcheck import InvalidRequest
from coatcheck.testing import DeletesContract, ListsContract, StorageContract
from coatcheck.testing.samples import make_entry
from coatcheck.testing.storage import save
from coatcheck.testing.suite import wait_for
from coatcheck_adk import ArtifactServiceBridge, OffloadPlugin
from tests.adapters.google_adk.agents import APP, USER, returning, run
from tests.adapters.scripts import BIG, MIDDLE, call, reading

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck import Storage
    from tests.contract.gemini import GeminiServer


class ServiceContract(StorageContract, DeletesContract, ListsContract):
    now = 1_000.0

    def make_older(self, storage: Storage, key: str) -> bool:
        self.now += 60
        return True


class TestInMemory(ServiceContract):
    @pytest.fixture
    def storage(self) -> ArtifactServiceBridge:
        return ArtifactServiceBridge(InMemoryArtifactService(), clock=lambda: self.now)


class TestInFiles(ServiceContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> ArtifactServiceBridge:
        return ArtifactServiceBridge(FileArtifactService(tmp_path), clock=lambda: self.now)


async def test_an_agent_reads_back_from_the_services_files(server: GeminiServer, tmp_path: Path) -> None:
    service = FileArtifactService(tmp_path)
    plugin = OffloadPlugin(ArtifactServiceBridge(service))

    script = await run(server, plugin, [returning(BIG)], call(), reading(pattern="line 1,000 "))

    assert MIDDLE in script.shown[-1][1]
    assert await service.list_artifact_keys(app_name=APP, user_id=USER, session_id="session-1") == []
    assert len(await service.list_artifact_keys(app_name="coatcheck", user_id="coatcheck")) > 0


def test_a_file_that_is_not_an_entry_is_not_listed() -> None:
    service = InMemoryArtifactService()
    storage = ArtifactServiceBridge(service)
    entry = make_entry(b"content")
    save(storage, entry)
    wait_for(
        service.save_artifact(
            app_name="coatcheck", user_id="coatcheck", filename="user:notes.txt", artifact={"text": "notes"}
        )
    )

    assert [listed.key for listed in wait_for(storage.entries(""))] == [entry.key]
    assert repr(storage) == "ArtifactServiceBridge(InMemoryArtifactService)"


@pytest.mark.parametrize("wrong", [None, "./artifacts", InMemoryArtifactService])
def test_an_object_that_is_not_an_artifact_service_is_refused_at_once(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^ArtifactServiceBridge needs an artifact service, such as"):
        ArtifactServiceBridge(wrong)


@pytest.mark.parametrize("what", ["app_name", "user_id"])
def test_a_name_that_the_service_cannot_keep_is_refused(what: str) -> None:
    wrong: dict[str, Any] = {what: None}
    with pytest.raises(InvalidRequest, match=f"^{what} must be a non-empty str, not None"):
        ArtifactServiceBridge(InMemoryArtifactService(), **wrong)
