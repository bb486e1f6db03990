"""Offloading to Azure: many results at once, two processes, a restart, and errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from coatcheck import Always, Kept, Offloaded, Offloader, ReferenceExpired, StorageError, TextBlock
from coatcheck.storage import FsspecBridge
from coatcheck.testing.samples import make_entry, numbered_lines
from coatcheck.testing.storage import check_holds, save
from tests.clouds.servers import BUCKET, KEY, azure, running_azurite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRONG_KEY = KEY.replace("Eby", "Abc")
BIG = TextBlock(numbered_lines(3_000))


@pytest.fixture
def folder() -> str:
    return f"{BUCKET}/{uuid4().hex}"


async def test_many_results_at_once_are_stored_and_read_back(azurite: int, folder: str) -> None:
    offloader = Offloader(FsspecBridge(azure(azurite), folder))
    texts = [f"result {number}\n{numbered_lines(500)}" for number in range(200)]
    outcomes = await asyncio.gather(
        *(offloader.aoffload([TextBlock(text)], tool_name="t", scope="s", policy=Always()) for text in texts)
    )
    references = [outcome.references[0].id for outcome in outcomes if isinstance(outcome, Offloaded)]
    contents = await asyncio.gather(*(offloader.aload(reference, scope="s") for reference in references))

    assert [content.text for content in contents] == texts
    assert len(offloader.list(scope="s", limit=500).contents) == 200
    assert offloader.delete_scope("s") == 200


PROGRAM = """
import sys
from coatcheck import Offloader, TextBlock
from coatcheck.storage import FsspecBridge
from coatcheck.testing.samples import numbered_lines
from tests.clouds.servers import azure

offloader = Offloader(FsspecBridge(azure(int(sys.argv[1])), sys.argv[2]))
for number in range(20):
    text = f"result {number}\\n{numbered_lines(3_000)}"
    reference = offloader.offload([TextBlock(text)], tool_name="t", scope="shared").references[0].id
    assert offloader.load(reference, scope="shared").text == text
"""


def test_two_processes_save_the_same_entries_at_once(azurite: int, folder: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(azurite), folder]
    processes = [subprocess.Popen(command) for _ in range(2)]

    assert [process.wait() for process in processes] == [0, 0]
    assert len(Offloader(FsspecBridge(azure(azurite), folder)).list(scope="shared").contents) == 20


def test_the_bridge_reconnects_to_a_restarted_server_and_finds_everything(tmp_path: Path, folder: str) -> None:
    entry = make_entry(b"from before")
    with running_azurite(tmp_path) as port:
        storage = FsspecBridge(azure(port), folder)
        save(storage, entry)
    with running_azurite(tmp_path, port):
        check_holds(storage, entry, "after the server was started again")
        save(storage, make_entry(b"from after"))


@pytest.mark.parametrize(
    ("bucket", "key", "words"),
    [
        ("no-such-container", KEY, "ResourceNotFoundError 404 ContainerNotFound"),
        (BUCKET, WRONG_KEY, "HttpResponseError 403 AuthorizationFailure"),
    ],
    ids=["no container", "wrong key"],
)
def test_the_log_names_the_error_of_the_service(
    azurite: int, caplog: pytest.LogCaptureFixture, bucket: str, key: str, words: str
) -> None:
    outcome = Offloader(FsspecBridge(azure(azurite, key), f"{bucket}/f")).offload([BIG], tool_name="t")

    assert outcome == Kept(blocks=(BIG,), reason="storage failed")
    assert f"failed: {words}, in FsspecBridge(AzureBlobFileSystem, '{bucket}/f')" in caplog.text


def test_a_missing_container_is_an_expired_reference_and_a_wrong_key_is_not(azurite: int, folder: str) -> None:
    reference = Offloader(FsspecBridge(azure(azurite), folder)).offload([BIG], tool_name="t").references[0].id

    with pytest.raises(ReferenceExpired):
        Offloader(FsspecBridge(azure(azurite), "no-such-container/f")).load(reference)
    wrong = Offloader(FsspecBridge(azure(azurite, WRONG_KEY), folder))
    attempts: tuple[Callable[[], object], ...] = (
        lambda: wrong.load(reference),
        lambda: wrong.list(scope="s"),
        lambda: wrong.sweep(max_age_seconds=0),
    )
    for attempt in attempts:
        with pytest.raises(StorageError, match="403 AuthorizationFailure"):
            attempt()
