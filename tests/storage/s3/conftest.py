"""Gives each test a storage of its own."""

from __future__ import annotations

from uuid import uuid4

import pytest

from coatcheck import S3Storage
from tests.storage.seaweed import BUCKET, Server


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid4().hex}/artifacts"


@pytest.fixture
def storage(server: Server, prefix: str) -> S3Storage:
    return S3Storage(BUCKET, prefix, **server.settings())
