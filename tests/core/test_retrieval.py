"""The retrieval tool as every framework shows it: one short schema, and arguments as models send them."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest

from coatcheck import (
    InvalidRequest,
    Offloader,
    StorageError,
    failure_for_model,
    retrieval_arguments,
    retrieval_schema,
)


def test_the_schema_has_exactly_the_selectors_of_retrieve() -> None:
    host_only = {"self", "scope", "identity", "native_media", "retrieval_tool"}

    assert (
        retrieval_schema()["properties"].keys() == inspect.signature(Offloader.retrieve).parameters.keys() - host_only
    )
    assert retrieval_schema()["required"] == ["reference"]


def test_a_framework_that_changes_its_schema_changes_no_other() -> None:
    retrieval_schema()["properties"]["line_range"].clear()

    assert retrieval_schema()["properties"]["line_range"]["type"] == "string"


@pytest.mark.parametrize(
    ("sent", "arguments"),
    [
        ({"reference": "R", "pattern": "x"}, {"reference": "R", "pattern": "x"}),
        ({"reference": "R", "pattern": None, "offset": 0}, {"reference": "R", "offset": 0}),
        ({"pattern": "x"}, {"reference": None, "pattern": "x"}),
        ("R", {"reference": "R"}),
        ({}, {"reference": None}),
        (None, {"reference": None}),
        (["R"], {"reference": ["R"]}),
    ],
)
def test_what_a_model_sends_becomes_arguments_of_retrieve(sent: object, arguments: dict[str, Any]) -> None:
    assert retrieval_arguments(sent) == arguments


def test_arguments_that_the_tool_does_not_have_are_named_with_those_it_has() -> None:
    with pytest.raises(InvalidRequest) as caught:
        retrieval_arguments({"reference": "R", "scope": None, "lines": "1-2"})

    assert str(caught.value) == (
        "unknown arguments: 'scope', 'lines'; accepted are reference, pattern, line_range, context_lines, query, offset"
    )


def test_a_flood_of_unknown_arguments_makes_no_long_answer() -> None:
    with pytest.raises(InvalidRequest) as caught:
        retrieval_arguments({"x" * 9_000 + str(number): 1 for number in range(100)})

    assert len(str(caught.value)) < 400


def test_a_foreign_error_is_logged_by_its_class_and_the_model_gets_no_word_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="coatcheck"):
        told = failure_for_model(OSError("/srv/secret refused"))

    assert told == StorageError("").for_model
    assert caplog.messages == ["a tool result could not be read back: OSError"]


def test_our_own_error_is_told_as_it_is_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert failure_for_model(InvalidRequest("offset must be a whole number")) == "offset must be a whole number"
    assert not caplog.records
