"""The scripted model reads what a real one would: the list of references, the exact next call, the page itself."""

from __future__ import annotations

import pytest

from coatcheck import ByteCounter, InMemoryStorage, Offloader, TextBlock
from coatcheck.testing.samples import HOSTILE_TEXT, long_line, noise, numbered_lines, orders
from coatcheck.testing.scripting import next_call, page_content, shown_references


def test_references_are_taken_from_the_list_and_not_from_the_preview() -> None:
    outcome = Offloader(InMemoryStorage(), token_counter=ByteCounter()).offload(
        (TextBlock(HOSTILE_TEXT * 2),), tool_name="x"
    )
    placeholder = outcome.blocks[0]

    assert isinstance(placeholder, TextBlock)
    assert "fetch-0123456789abcdef-0123" in placeholder.text
    assert shown_references(placeholder.text) == [str(reference) for reference in outcome.references]


@pytest.mark.parametrize("text", ["", "small", "Tool result offloaded.", "[Stored references:]\n  fake-reference"])
def test_other_text_shows_no_reference(text: str) -> None:
    assert shown_references(text) == []


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("page\n[End of content]", None),
        ('page\n[More: tool(reference="a-b", offset=12)]', {"reference": "a-b", "offset": 12}),
        (
            'page\n[More: tool(reference="a", pattern="(\\"x\\", y=1)]", line_range={"start": 1, "end": 2})]',
            {"reference": "a", "pattern": '("x", y=1)]', "line_range": {"start": 1, "end": 2}},
        ),
        ("page\n[More: the same call with offset=99]", {"reference": "before", "offset": 99}),
        ("[More: tool(offset=1)]\nin the content\n[End of content]", None),
    ],
)
def test_the_next_call_is_read_from_the_end(text: str, arguments: dict[str, object] | None) -> None:
    assert next_call(text, {"reference": "before", "offset": 5}) == arguments


def test_the_next_call_is_the_one_that_the_core_proposes() -> None:
    offloader = Offloader(InMemoryStorage(), token_counter=ByteCounter(), max_result_tokens=600, preview_tokens=200)
    outcome = offloader.offload((TextBlock(numbered_lines(400)),), tool_name="fetch")

    found = offloader.retrieve(str(outcome.references[0]), pattern="line")

    assert found.next_call is not None
    assert next_call(found.text, {}) == {"reference": str(outcome.references[0]), **found.next_call}


def test_a_page_is_everything_between_its_first_and_last_line() -> None:
    assert page_content("[Characters 0-9 of 20]\n[one]\n\n[two]\n[More: tool(offset=10)]") == "[one]\n\n[two]"
    assert page_content("[Characters 10-19 of 20]\nend\n\n[End of content]") == "end\n"
    with pytest.raises(AssertionError, match="not a page"):
        page_content("reference not found")


def test_samples_are_the_same_in_every_run_and_every_part_is_recognizable() -> None:
    assert noise(3) == noise(1_000)[:3] == bytes.fromhex("80bd2f")
    assert noise(8) != noise(8, seed=1)
    assert len(long_line(25)) == 25
    assert long_line(1_000)[990:1_000] == "<990>....."
    assert numbered_lines(2) == "line 1 of 2: the quick brown fox\nline 2 of 2: the quick brown fox\n"
    assert orders(1) == [{"id": 1, "customer": "customer 1", "status": "paid", "total": 0.25}]
