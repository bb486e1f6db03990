"""The line index agrees with naive counting, and finds any place in the content."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.errors import CorruptContent
from coatcheck.core.reading import index, source
from coatcheck.core.reading.index import LineIndex, Place, align, byte_of_character, complete, decode
from tests.core.reading_driver import Stored, body, dense_index, encode_text, foreign, shown, split_lines, stored
from tests.core.strategies import texts


@given(texts())
def test_encoding_counts_characters_and_lines(text: str) -> None:
    encoded = encode_text(text)

    assert encoded.data == text.encode("utf-8", "surrogatepass")
    assert decode(encoded.data) == text
    assert encoded.characters == len(text)
    assert encoded.lines == len(split_lines(text))
    assert encoded.index is None


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\nb\n", 2), ("\n", 1), ("a\rb\u2028c\f\x85", 1)]
)
def test_a_line_ends_only_at_a_line_feed(text: str, lines: int) -> None:
    assert encode_text(text).lines == lines


@given(text=texts(), chunk=st.integers(1, 50), most=st.integers(1, 9))
def test_checkpoints_are_where_naive_counting_puts_them(text: str, chunk: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "CHUNK_CHARACTERS", chunk)
        patch.setattr(index, "MAX_CHECKPOINTS", most)
        patch.setattr(index, "INDEX_THRESHOLD", 0)
        encoded = encode_text(text)

    if encoded.index is None:
        assert not text
        return
    assert 1 <= len(encoded.index.checkpoints.bytes) <= most
    for place in map(Place, *encoded.index.checkpoints):
        before = text[: place.character]
        assert place == Place(len(before.encode("utf-8", "surrogatepass")), before.count("\n"), len(before))


def test_only_large_content_gets_an_index() -> None:
    assert encode_text("x" * 1_048_576).index is None
    made = encode_text("é\n" * 700_000)
    assert made.index is not None
    assert len(made.index.checkpoints.bytes) == 22
    assert (made.index.size, made.index.characters, made.index.lines) == (2_100_000, 1_400_000, 700_000)


@given(texts())
def test_an_index_survives_serialization(text: str) -> None:
    if text:
        made = dense_index(text, 3)
        assert LineIndex.from_bytes(made.to_bytes(), size=made.size) == made


_GOOD = {"version": 2, "size": 9, "characters": 8, "lines": 3, "checkpoints": [[0, 5], [0, 1], [0, 4]]}


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"size": 10},
        {"characters": None},
        {"characters": -1},
        {"lines": "3"},
        {"lines": True},
        {"lines": 0},
        {"checkpoints": []},
        {"checkpoints": None},
        {"checkpoints": [[], [], []]},
        {"checkpoints": [[0, 5], [0, 1]]},
        {"checkpoints": [[0, 5], [0, 1], None]},
        {"checkpoints": [[1, 5], [0, 1], [0, 4]]},
        {"checkpoints": [[0, 5], [0], [0, 4]]},
        {"checkpoints": [[0, 5, 4], [0, 1, 1], [0, 4, 5]]},
        {"checkpoints": [[0, 10], [0, 1], [0, 4]]},
        {"checkpoints": [[0, 5], [0, 4], [0, 4]]},
        {"checkpoints": [[0, 5], [0, 1.0], [0, 4]]},
        {"checkpoints": [[0] * 4_097] * 3},
    ],
)
def test_an_impossible_stored_index_is_ignored(change: dict[str, object]) -> None:
    assert LineIndex.from_bytes(json.dumps(_GOOD).encode(), size=9) is not None
    assert LineIndex.from_bytes(json.dumps({**_GOOD, **change}).encode(), size=9) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"\xff", b"{", b'{"version":1}'])
def test_stored_bytes_that_are_not_an_index_are_ignored(data: bytes) -> None:
    assert LineIndex.from_bytes(data, size=9) is None


@given(text=texts(pieces=25), spacing=st.integers(1, 40), part=st.integers(1, 60), at=st.integers(0, 10_000))
def test_seeking_by_index_equals_slicing(text: str, spacing: int, part: int, at: int) -> None:
    if not text:
        return
    character, lines = at % len(text), split_lines(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "FIRST_PART", part)
        patch.setattr(source, "MAX_PART", 3 * part)
        for content in (stored(text, spacing=spacing), stored(text), foreign(text.encode("utf-8", "surrogatepass"))):
            assert body(content.ask(offset=character, budget=100_000)) == shown(text[character:])
            if lines:
                line = at % len(lines)
                answer = content.ask(line_range=[line + 1, line + 1], budget=100_000)
                assert answer.text.endswith(f"\n\n  {line + 1}| {shown(lines[line])}")
                assert answer.text.startswith(f"[Lines {line + 1}-{line + 1} of {len(lines)}]")


@given(st.binary(max_size=200), st.integers(1, 20))
def test_broken_bytes_decode_the_same_however_they_are_split(data: bytes, size: int) -> None:
    held, pieces = b"", []
    for start in range(0, len(data), size):
        piece = held + data[start : start + size]
        cut = complete(piece) if start + size < len(data) else len(piece)
        pieces.append(decode(piece[:cut]))
        held = piece[cut:]

    assert "".join(pieces) == decode(data)


@given(st.one_of(st.binary(max_size=80), texts(pieces=8).map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_characters_are_found_in_any_bytes(data: bytes) -> None:
    text = decode(data)
    for character in range(len(text) + 1):
        at = byte_of_character(data, character)
        assert decode(data[:at]) == text[:character]
        assert decode(data[at:]) == text[character:]


@given(texts(pieces=6))
def test_alignment_finds_the_start_of_a_character(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    starts = {len(text[:n].encode("utf-8", "surrogatepass")) for n in range(len(text) + 1)}
    for at in range(len(data) + 1):
        assert align(data, at) == max(start for start in starts if start <= at)


@given(st.binary(min_size=1, max_size=300))
def test_broken_content_is_paged_to_its_end(data: bytes) -> None:
    content, offset, pages = foreign(data), 0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "FIRST_PART", 7)
        while True:
            answer = content.ask(offset=offset, budget=256)
            pages.append(body(answer))
            if answer.next_call is None:
                break
            assert int(str(answer.next_call["offset"])) > offset
            offset = int(str(answer.next_call["offset"]))

    assert "".join(pages) == shown(decode(data))


def test_content_that_ends_early_is_corrupt() -> None:
    shorter = _Shorter(data=b"x" * 100, characters=100, lines=1)

    with pytest.raises(CorruptContent, match="ends early"):
        shorter.ask()


class _Shorter(Stored):
    def _fetch(self, wanted: object) -> bytes | None:
        return b"x" * 50


def test_twenty_lines_of_large_content_cost_the_index_and_little_more() -> None:
    text = "".join(f"line {n} {'x' * 90}\n" for n in range(100_000))
    content = stored(text)

    answer = content.ask(line_range=[70_001, 70_020])

    assert answer.text.count("\n") == 21
    assert "70020| line 70019 xxx" in answer.text
    assert content.indexes == 1
    assert content.read_bytes() <= 400_000
    assert len(content.parts) <= 2


def test_a_page_far_into_large_content_costs_the_index_and_little_more() -> None:
    content = stored("".join(f"line {n} é{'x' * 90}\n" for n in range(100_000)))

    content.ask(offset=7_000_000)

    assert (content.indexes, len(content.parts) <= 2) == (1, True)
    assert content.read_bytes() <= 400_000


def test_the_first_page_needs_no_index() -> None:
    content = stored("x" * 2_000_000)

    content.ask()

    assert (content.indexes, content.read_bytes()) == (0, 65_536)


def test_a_broken_index_only_costs_a_scan() -> None:
    content = stored("a\n" * 1_000_000)
    content.index = b"broken"
    content.characters = None

    assert content.ask(line_range="900000").text.endswith("  900000| a")
