"""Arguments of an offloader that host code gets wrong. Each is refused by name, before anything is done."""

from __future__ import annotations

from typing import Any

import pytest

from coatcheck import (
    Always,
    InMemoryStorage,
    InvalidRequest,
    Offloaded,
    Offloader,
    TextBlock,
    ToolResult,
    failure_for_model,
)
from coatcheck import scope as ambient_scope

RESULT = ToolResult(blocks=(TextBlock("a result"),), tool_name="t")
LARGE = "a line of a large result\n" * 40_000


async def test_deleting_without_a_scope_deletes_nothing_of_the_ambient_one() -> None:
    offloader = Offloader(InMemoryStorage(), policies={"*": Always()})
    kept = offloader.offload([TextBlock("a result\n")], tool_name="t", scope="mine").references[0]

    with ambient_scope("mine"):
        for nothing in (None, ""):
            with pytest.raises(InvalidRequest, match=r"^scope must be a str of 1 to .* not "):
                offloader.delete_scope(nothing)  # type: ignore[arg-type]
            with pytest.raises(InvalidRequest, match=r"^scope must be a str of 1 to .* not "):
                await offloader.adelete_scope(nothing)  # type: ignore[arg-type]

    assert offloader.load(kept, scope="mine").text == "a result\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"confirm": "yes"}, r"^confirm must be a callable or None, not 'yes'"),
        ({"retrieval_tool": b"read"}, r"^retrieval_tool must be a non-empty str or None, not b'read'"),
        ({"retrieval_tool": ""}, r"^retrieval_tool must be a non-empty str or None, not ''"),
    ],
)
@pytest.mark.parametrize("text", ["a small result", "a line of a large one\n" * 9_000])
async def test_a_wrong_argument_is_refused_whatever_the_size(wrong: dict[str, Any], said: str, text: str) -> None:
    storage = InMemoryStorage()
    offloader = Offloader(storage)

    with pytest.raises(InvalidRequest, match=said):
        offloader.offload([TextBlock(text)], tool_name="t", scope="s", **wrong)
    with pytest.raises(InvalidRequest, match=said):
        await offloader.aoffload([TextBlock(text)], tool_name="t", scope="s", **wrong)

    assert storage.entries("") == [], "nothing was done"


@pytest.mark.parametrize(
    ("results", "more", "said"),
    [
        (None, {}, r"^results must be a sequence, such as a list, not NoneType"),
        (RESULT, {}, r"^results must be a sequence, such as a list, not ToolResult"),
        ([TextBlock("x")], {}, r"^each of results must be a coatcheck.ToolResult, not TextBlock"),
        ([RESULT], {"policies": Always()}, r"^policies must be a sequence, such as a list, not Always"),
        ([RESULT], {"retrieval_tool": 1}, r"^retrieval_tool must be a non-empty str or None, not 1"),
    ],
)
async def test_a_wrong_argument_of_a_step_is_refused(results: Any, more: dict[str, Any], said: str) -> None:  # noqa: ANN401
    offloader = Offloader(InMemoryStorage())

    with pytest.raises(InvalidRequest, match=said):
        offloader.offload_step(results, scope="s", **more)
    with pytest.raises(InvalidRequest, match=said):
        await offloader.aoffload_step(results, scope="s", **more)


def test_a_kept_result_of_a_step_holds_a_tuple_of_the_same_blocks_however_they_came() -> None:
    block = TextBlock("small")
    results: list[Any] = [ToolResult(blocks=blocks, tool_name="t") for blocks in ([block], iter([block]))]  # type: ignore[arg-type]

    for outcome in Offloader(InMemoryStorage()).offload_step(iter(results), scope="s"):  # type: ignore[arg-type]
        assert outcome.blocks == (block,)
        assert outcome.blocks[0] is block


async def test_a_read_back_refuses_an_invalid_tool_name_without_telling_the_model() -> None:
    offloader = Offloader(InMemoryStorage(), policies={"*": Always()})
    reference = offloader.offload([TextBlock("a result\n")], tool_name="t", scope="s").references[0]

    for name in (None, "", 7):
        with pytest.raises(InvalidRequest, match=r"^retrieval_tool must be a non-empty str, not ") as refused:
            offloader.retrieve(reference, scope="s", retrieval_tool=name)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match=r"^retrieval_tool must be a non-empty str, not "):
            await offloader.aretrieve(reference, scope="s", retrieval_tool=name)  # type: ignore[arg-type]
        assert "retrieval_tool" not in failure_for_model(refused.value)


@pytest.mark.parametrize("wrong", [None, 7, object()])
async def test_the_last_resort_accepts_anything(wrong: Any) -> None:  # noqa: ANN401
    offloader = Offloader(InMemoryStorage())

    assert offloader.last_resort(wrong, tool_name="t", scope="s") is None, "it is small"
    assert await offloader.alast_resort([wrong, TextBlock(wrong)], tool_name="t", scope="s") is None


@pytest.mark.parametrize("wrong", ["", 7])
def test_a_last_resort_with_an_invalid_tool_name_names_no_tool(wrong: Any) -> None:  # noqa: ANN401
    outcome = Offloader(InMemoryStorage()).last_resort(
        [TextBlock(LARGE)], tool_name="t", scope="s", retrieval_tool=wrong
    )

    assert isinstance(outcome, Offloaded)
    assert isinstance(outcome.blocks[0], TextBlock)
    assert "To read more: use your available tools" in outcome.blocks[0].text


@pytest.mark.parametrize(
    "wrong", [{"blocks": LARGE}, {"blocks": [LARGE]}, {"tool_name": 7}, {"retrieval_tool": 7}, {"error": "a reason"}]
)
async def test_a_wrong_argument_does_not_keep_the_last_resort_from_storing(wrong: dict[str, Any]) -> None:
    offloader = Offloader(InMemoryStorage())
    arguments: dict[str, Any] = {"blocks": [TextBlock(LARGE)], "tool_name": "t", "scope": "s", **wrong}

    for outcome in (offloader.last_resort(**arguments), await offloader.alast_resort(**arguments)):
        assert isinstance(outcome, Offloaded)
        assert offloader.load(outcome.references[0], scope="s").text == LARGE


@pytest.mark.parametrize("wrong", [[], {}, "1", True, -1])
async def test_a_sweep_limit_that_is_not_a_number_is_refused(wrong: Any) -> None:  # noqa: ANN401
    offloader = Offloader(InMemoryStorage())

    for name in ("max_age_seconds", "max_bytes", "max_scope_bytes"):
        with pytest.raises(InvalidRequest, match=f"^{name} must be a number of at least 0, not "):
            offloader.sweep(**{name: wrong})
        with pytest.raises(InvalidRequest, match=f"^{name} must be a number of at least 0, not "):
            await offloader.asweep(**{name: wrong})
