"""A storage of its own for each test."""

from __future__ import annotations

from itertools import count

import pytest

from coatcheck import S3Storage
from tests.storage.seaweed import BUCKET, Server

NUMBERS = count()


@pytest.fixture
def prefix() -> str:
    return f"test-{next(NUMBERS)}/artifacts"


@pytest.fixture
def storage(server: Server, prefix: str) -> S3Storage:
    return S3Storage(BUCKET, prefix, **server.settings())
