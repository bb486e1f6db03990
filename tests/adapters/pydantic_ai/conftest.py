"""One scripted server for all tests of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer().serving() as serving:
        yield serving
