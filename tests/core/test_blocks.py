"""Blocks, the text of an outcome, and the exact text of JSON values."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given

from coatcheck import (
    Always,
    InMemoryStorage,
    InvalidRequest,
    JsonBlock,
    Kept,
    MediaBlock,
    Offloaded,
    Offloader,
    TextBlock,
)
from coatcheck.core.blocks import JsonValue, json_text, to_valid_unicode
from tests.core.strategies import json_values, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _named(values: list[JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    return ((f"field {number}", value) for number, value in enumerate(values))


def _same(left: JsonValue, right: JsonValue) -> bool:
    """Compare JSON values. NaN equals itself, -0.0 differs from 0.0, and a tuple equals a list."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@given(value=json_values())
def test_json_text_parses_back_to_the_same_value(value: JsonValue) -> None:
    assert _same(json.loads(json_text(value)), value)


@pytest.mark.parametrize(
    "value",
    [math.nan, [1, math.inf, None], {"n": -math.inf}, 2**64, -(2**70), "\ud800", {"\udfff": 1}, {1: "int key"}, (1, 2)],
)
def test_a_value_that_orjson_would_change_is_kept(value: JsonValue) -> None:
    assert _same(json.loads(json_text(value)), value)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrap", [list, tuple, lambda found: dict(_named(found))])
def test_a_number_that_json_lacks_is_found_at_any_depth(odd: float, wrap: Callable[[list[JsonValue]], Any]) -> None:
    for place in range(3):
        found: list[JsonValue] = [None, 1.5, "null"]
        found[place] = odd
        value = wrap([None, {"deep": wrap([wrap(found), None])}])
        assert json_text(value) == json.dumps(value, separators=(",", ":"))


def test_a_value_with_null_in_it_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orjson, "loads", lambda _: pytest.fail("parsed"))

    assert json_text([None, "null", 1.5, [{}]]) == '[null,"null",1.5,[{}]]'


def test_a_long_value_that_orjson_would_change_is_not_serialized_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: JsonValue = [*({"n": n} for n in range(150_000)), {"n": math.nan}]
    whole = json.dumps(rows, separators=(",", ":"))
    monkeypatch.setattr(json.JSONEncoder, "encode", None)  # holds the interpreter's lock until it is done

    assert json_text(rows) == whole


@pytest.mark.parametrize("value", [object(), {"when": {1, 2}}, b"bytes", [complex(1)]])
def test_a_value_that_is_not_json_is_refused(value: JsonValue) -> None:
    with pytest.raises(InvalidRequest, match="JSON"):
        json_text(value)


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: JsonValue = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(InvalidRequest, match="JSON"):
        json_text(value)


@given(text=texts())
def test_what_the_model_reads_is_valid_unicode_of_the_same_length(text: str) -> None:
    shown = to_valid_unicode(text)

    shown.encode("utf-8")
    assert len(shown) == len(text)
    assert all(after in (before, "\ufffd") for before, after in zip(text, shown, strict=True))


def test_valid_text_is_not_copied() -> None:
    text = "größer, länger " * 100

    assert to_valid_unicode(text) is text


@pytest.mark.parametrize("media_type", ["text/csv", "application/json", "image/png"])
@pytest.mark.parametrize("view", [bytes, bytearray, memoryview, lambda data: memoryview(data)[::2]])
def test_a_medium_may_hold_any_view_of_bytes(view: Callable[[bytes], Any], media_type: str) -> None:
    data = view(b"name,size\n" * 9_000)
    offloader = Offloader(InMemoryStorage(), policies={"*": Always()})
    outcome = offloader.offload([MediaBlock(data, media_type)], tool_name="t", scope="s")

    assert isinstance(outcome, Offloaded)
    assert offloader.load(outcome.references[0], scope="s").data == bytes(data)


def test_the_text_of_an_outcome_joins_its_text_blocks() -> None:
    kept = Kept(blocks=(TextBlock("one"), JsonBlock({"n": 2}), TextBlock("three\n")), reason="policy")
    assert kept.text == "one\nthree\n"
    assert Kept(blocks=(), reason="policy").text == ""

    left = Offloader(InMemoryStorage()).offload([TextBlock("a b " * 9_000)], tool_name="search", scope="s")
    assert [TextBlock(left.text)] == list(left.blocks)
