"""One scripted server for all tests of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.gemini import GeminiServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[GeminiServer]:
    with GeminiServer().serving() as serving:
        assert isinstance(serving, GeminiServer)
        yield serving
