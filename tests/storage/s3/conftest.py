"""One SeaweedFS for all tests of a process, and a storage of its own for each test."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from coatcheck import S3Storage
from tests.storage.seaweed import BUCKET, Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    return f"test-{next(NUMBERS)}/artifacts"


@pytest.fixture
def storage(server: Server, prefix: str) -> S3Storage:
    return S3Storage(BUCKET, prefix, **server.settings())
