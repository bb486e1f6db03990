"""One S3 server for all tests of a process that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.storage.seaweed import Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("seaweed")) as server:
        yield server
