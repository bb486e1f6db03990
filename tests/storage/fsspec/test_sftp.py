"""FsspecBridge over SFTP, on a real server: many saves at once, and a restart. ``nox -s clouds`` runs the contract."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from fsspec.implementations.sftp import SFTPFileSystem
from paramiko import SSHException

from coatcheck.storage import FsspecBridge
from coatcheck.testing.samples import make_entry, noise
from coatcheck.testing.storage import check_holds, save
from tests.storage.sftp_server import running_sftp, sftp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30.0
"""Seconds. The thread of a closed connection ends at once; a test that waits this long has failed."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with running_sftp() as port:
        yield port
    SFTPFileSystem.clear_instance_cache()


def until_the_end_is_seen(filesystem: SFTPFileSystem) -> None:
    """Wait for paramiko's thread: the bridge reconnects only once that has seen the connection end."""
    filesystem.client.get_transport().join(PATIENCE)


def test_many_threads_can_create_the_same_folders_at_once(port: int, tmp_path: Path) -> None:
    # SFTP answers "Failure" if a folder exists already, and fsspec looks before it creates one.
    for number in range(5):
        storage = FsspecBridge(sftp(port), str(tmp_path / f"{number}"))
        entries = [make_entry(noise(10, seed=seed), scope="new") for seed in range(8)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda entry: save(storage, entry), entries))  # noqa: B023 - done before the next

        assert {listed.key for listed in storage.entries("")} == {entry.key for entry in entries}


@pytest.mark.parametrize("options", [{}, {"skip_instance_cache": True}], ids=["kept by fsspec", "as it was given"])
def test_the_bridge_reconnects_to_a_server_that_was_away(tmp_path: Path, options: dict[str, Any]) -> None:
    entry = make_entry(b"from before")
    with running_sftp() as port:
        filesystem = sftp(port, **options)
        storage = FsspecBridge(filesystem, str(tmp_path / "artifacts"))
        save(storage, entry)
    # paramiko raises EOFError until its thread has seen that the connection ended.
    with pytest.raises((OSError, SSHException, EOFError)):
        storage.load(entry.key)
    until_the_end_is_seen(filesystem)
    with running_sftp(port):
        check_holds(storage, entry, "after the server was away")
        save(storage, make_entry(b"from after"))


def test_a_login_refused_after_an_outage_leaves_no_connection_open(tmp_path: Path) -> None:
    entry = make_entry(b"from before")
    with running_sftp() as port:
        filesystem = sftp(port)
        storage = FsspecBridge(filesystem, str(tmp_path / "artifacts"))
        save(storage, entry)
    until_the_end_is_seen(filesystem)
    with running_sftp(port, lets_in=False):
        before = set(threading.enumerate())
        for _ in range(5):
            with pytest.raises(Exception, match="Authentication"):
                storage.load(entry.key)
        for thread in set(threading.enumerate()) - before:
            thread.join(PATIENCE)

        assert set(threading.enumerate()) <= before
