"""Skips storages whose client library is not installed (nox has a session for each), and starts one S3 server."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.storage.seaweed import Server

collect_ignore = [
    *([] if find_spec("boto3") is not None else ["s3", "seaweed.py"]),
    *([] if find_spec("s3fs") is not None else ["fsspec"]),
    *([] if find_spec("asyncssh") and find_spec("paramiko") else ["fsspec/test_sftp.py", "sftp_server.py"]),
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    from tests.storage.seaweed import running_server  # noqa: PLC0415 - needs the extra, which not every test here has

    with running_server(tmp_path_factory.mktemp("seaweed")) as server:
        yield server
