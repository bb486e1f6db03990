"""The retrieval tool as every framework shows it: one short schema, and arguments in the forms that models send."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from coatcheck import (
    Always,
    Block,
    Event,
    InMemoryStorage,
    InvalidRequest,
    JsonBlock,
    MediaBlock,
    Offloaded,
    Offloader,
    StorageError,
    TextBlock,
    failure_for_model,
    retrieval_arguments,
    retrieval_schema,
)
from coatcheck.adapting import Failure, answer
from coatcheck.core.notice import INTERNAL_ERROR
from coatcheck.core.reading.index import INDEX_THRESHOLD
from coatcheck.engine import retrieving
from coatcheck.engine.execution import run
from tests.core.storages import RangeStorage


def test_a_framework_that_changes_its_schema_affects_no_other() -> None:
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
def test_the_models_input_becomes_the_arguments_of_retrieve(sent: object, arguments: dict[str, Any]) -> None:
    assert retrieval_arguments(sent) == arguments


def test_unknown_arguments_are_named_with_the_accepted_ones() -> None:
    with pytest.raises(InvalidRequest) as caught:
        retrieval_arguments({"reference": "R", "scope": None, "lines": "1-2"})

    assert str(caught.value) == (
        "unknown arguments: 'scope', 'lines'; accepted are reference, pattern, line_range, context_lines, query, offset"
    )


def test_many_unknown_arguments_do_not_make_a_long_answer() -> None:
    with pytest.raises(InvalidRequest) as caught:
        retrieval_arguments({"x" * 9_000 + str(number): 1 for number in range(100)})

    assert len(str(caught.value)) < 400


def test_a_foreign_error_is_logged_by_class_and_hidden_from_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="coatcheck"):
        told = failure_for_model(OSError("/srv/secret refused"))

    assert told == INTERNAL_ERROR
    assert caplog.messages == ["a tool result could not be read back, because of an internal error: OSError"]


def test_a_storage_failure_is_reported_as_a_storage_failure() -> None:
    assert "the storage failed" in failure_for_model(StorageError("disk full"))


@pytest.mark.parametrize("scope", [None, "", 7, ("tenant-7", "")])
def test_a_missing_or_invalid_scope_is_logged_for_the_host_and_not_explained_to_the_model(
    scope: object, caplog: pytest.LogCaptureFixture
) -> None:
    answered = answer(
        lambda: (Offloader(require_scope=True), {"scope": scope}), {"reference": "R"}, convert_media=lambda _: ""
    )

    assert isinstance(answered, Failure)
    assert answered.text == (
        "Nothing can be read back here: the application is not set up for it. Do not retry: call again the tool whose"
        " result the reference replaced."
    )
    assert caplog.messages == [f"a tool result could not be read back: {answered.error}"]
    assert "scope" in str(answered.error)


def test_a_bug_is_reported_as_an_internal_error_and_logged_once_with_its_origin(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        msg = "secret words of the content"
        raise TypeError(msg)

    events: list[Event] = []
    offloader = Offloader(policies={"*": Always()}, on_event=events.append)
    outcome = offloader.offload([TextBlock("x" * 9_000)], tool_name="t", scope="s")
    assert isinstance(outcome, Offloaded)
    monkeypatch.setattr(retrieving, "read", broken)

    with pytest.raises(TypeError) as caught:
        offloader.retrieve(outcome.references[0], scope="s")
    told = failure_for_model(caught.value)

    assert "internal error" in told
    assert "trying again will not help" in told
    assert "storage" not in told
    (logged,) = caplog.messages
    assert logged.startswith("a tool result could not be read back, because of an internal error: TypeError\n")
    assert "in broken" in logged
    assert "secret" not in logged
    failed = events[-1]
    assert (failed.kind, failed.error_type, failed.reason) == ("failed", "TypeError", "an internal error")
    assert failed.references == (outcome.references[0].id,)
    assert offloader.stats().failed == 1


@pytest.mark.parametrize(
    ("block", "kind"), [(TextBlock("words"), str), (MediaBlock(b"an image", "image/png"), list)], ids=["text", "media"]
)
def test_only_an_answer_with_media_is_converted(block: Block, kind: type) -> None:
    offloader = Offloader(policies={"*": Always()})
    outcome = offloader.offload([block], tool_name="t", scope="s")
    assert isinstance(outcome, Offloaded)
    sent = {"reference": outcome.references[0].id}

    assert type(answer(lambda: (offloader, {"scope": "s"}), sent, convert_media=list, native_media=True)) is kind


def test_the_first_lines_of_content_without_an_index_are_read_without_the_rest() -> None:
    storage = RangeStorage()
    offloader = Offloader(storage, policies={"*": Always()})
    text = "".join(f"line {number}\n" for number in range(INDEX_THRESHOLD // 11))
    outcome = offloader.offload([TextBlock(text)], tool_name="t", scope="s")
    assert isinstance(outcome, Offloaded)
    assert len(storage.kept) == 1

    offloader.retrieve(outcome.references[0], scope="s", line_range="1-2")

    assert 0 < storage.bytes_loaded < len(text) // 2


def test_a_query_is_refused_above_the_offloaders_own_limit() -> None:
    storage = InMemoryStorage()
    outcome = Offloader(storage, policies={"*": Always()}).offload([JsonBlock({"id": 7})], tool_name="t", scope="s")
    assert isinstance(outcome, Offloaded)
    (reference,) = outcome.references

    def answer_within(limit: int) -> str:
        return Offloader(storage, max_query_bytes=limit).retrieve(reference, scope="s", query="id").text

    assert "7" in answer_within(reference.size)
    with pytest.raises(InvalidRequest, match="is too large for a query"):
        answer_within(reference.size - 1)


def test_an_argument_that_no_request_accepts_is_an_internal_error_and_an_event() -> None:
    events: list[Event] = []
    offloader = Offloader(on_event=events.append)

    with pytest.raises(KeyError):
        run(offloader._engine.retrieve("R", "s", native_media=False, retrieval_tool="t", no_such_argument=3))

    assert (events[-1].kind, events[-1].error_type) == ("failed", "KeyError")


def test_our_own_error_is_passed_on_unchanged_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert failure_for_model(InvalidRequest("offset must be a whole number")) == "offset must be a whole number"
    assert not caplog.records
