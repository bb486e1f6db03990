"""The retrieval tool in Strands: the schema of all adapters, and the same arguments for a host that calls it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from coatcheck import Always, InMemoryStorage, Offloaded, Offloader, TextBlock, retrieval_schema
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


@pytest.mark.parametrize("lines", [2, "2", " 2 ", 2.0], ids=repr)
async def test_a_number_of_context_lines_alone_means_the_first_lines(lines: Any) -> None:  # noqa: ANN401 - as sent
    storage = InMemoryStorage()
    outcome = Offloader(storage, policies={"*": Always()}).offload([TextBlock("a\nb\nc")], tool_name="t")
    assert isinstance(outcome, Offloaded)

    answer = await ContextOffloader(storage).retrieve_offloaded_content(outcome.references[0].id, context_lines=lines)

    assert answer == "[Lines 1-2 of 3]\n\n  1| a\n  2| b"


@pytest.mark.parametrize(
    "lines",
    ["ten", "2.5", 2.5, float("nan"), float("inf"), 10**15, [2], {"a": 1}],
    ids=repr,
)
async def test_context_lines_that_are_no_number_are_refused_by_their_name(lines: Any) -> None:  # noqa: ANN401 - as sent
    with pytest.raises(ValueError, match=r"^context_lines must be a whole number, not "):
        await ContextOffloader().retrieve_offloaded_content("any", context_lines=lines)
