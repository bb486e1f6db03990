"""The line that a summary keeps: bounded, the newest references, and the same through any number of summaries."""

from __future__ import annotations

import hashlib

import pytest

from coatcheck import RETRIEVAL_TOOL, TextBlock, TiktokenCounter, keep_references
from coatcheck.core.references import make_reference


def reference(number: int) -> str:
    return make_reference("a_tool_with_a_name", "s", digest=hashlib.sha256(str(number).encode()).hexdigest())


def test_without_references_there_is_no_line() -> None:
    assert keep_references([{"role": "user", "content": "hello"}, 1, None, b"bytes"]) == ""


def test_references_are_found_wherever_a_message_has_them() -> None:
    messages = [
        {"role": "tool", "content": f"see {reference(1)}."},
        {"role": "tool", "content": [{"type": "text", "text": f"[image: png, 3 bytes | ref: {reference(2)}]"}]},
        {"role": "tool", "content": "cleared", "coatcheck": {"references": ["a/storage's own"]}},
    ]

    line = keep_references(messages)

    assert line.index(reference(1)) < line.index(reference(2)) < line.index("a/storage's own")
    assert "\n" not in line


def test_each_reference_is_named_once_at_its_newest_place() -> None:
    line = keep_references([reference(1), reference(2), reference(1)])

    assert line.count(reference(1)) == 1
    assert line.index(reference(2)) < line.index(reference(1))


@pytest.mark.parametrize("number", [20, 21, 500])
def test_the_line_is_bounded_and_says_how_to_find_older_ones(number: int) -> None:
    line = keep_references(map(reference, range(number)))

    assert TiktokenCounter().count(line) <= 600
    assert line.count("a_tool_with_a_name-") == 20
    assert reference(number - 1) in line
    assert (f"{number - 20} older ones, which {RETRIEVAL_TOOL}() lists" in line) is (number > 20)


def test_a_summary_of_a_summary_says_the_same() -> None:
    line = keep_references(map(reference, range(5)))

    assert keep_references([line]) == line


def test_deep_messages_are_no_trouble() -> None:
    deep: object = reference(1)
    for _ in range(5_000):
        deep = [deep]

    assert reference(1) in keep_references([deep])


def test_a_block_is_no_message() -> None:
    assert keep_references([TextBlock(reference(1))]) == "", "messages are JSON values; adapters convert theirs"
