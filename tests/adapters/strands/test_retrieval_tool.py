"""The retrieval tool in Strands: the schema of all adapters, and the same arguments for a host that calls it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from coatcheck import retrieval_schema
from coatcheck_strands import ContextOffloader


def test_the_schema_is_that_of_all_adapters() -> None:
    (tool,) = ContextOffloader().tools

    assert tool.tool_spec["inputSchema"]["json"] == retrieval_schema()


def test_a_host_can_pass_every_argument() -> None:
    taken = inspect.signature(ContextOffloader().retrieve_offloaded_content).parameters

    assert set(taken) - {"tool_context"} == set(retrieval_schema()["properties"])


@pytest.mark.parametrize("name", [name for name in retrieval_schema()["properties"] if name != "reference"])
async def test_what_a_host_passes_arrives(name: str) -> None:
    sent: dict[str, Any] = {"pattern": "x", name: object()}

    with pytest.raises(ValueError, match=rf"^{name} must "):
        await ContextOffloader().retrieve_offloaded_content("any", **sent)
