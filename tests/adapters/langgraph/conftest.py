"""LangGraph's store on a real PostgreSQL server, for the tests of the store bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langgraph.store.postgres import PostgresStore

from tests.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Yield the address of a server that has LangGraph's tables."""
    with running_postgres() as address:
        with PostgresStore.from_conn_string(address) as store:
            store.setup()
        yield address
