"""The words that open a placeholder: what they cost, and how early the first reference comes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import (
    Always,
    Block,
    ByteCounter,
    FileStorage,
    InMemoryStorage,
    MediaBlock,
    Offloaded,
    Offloader,
    Stored,
    TextBlock,
    TiktokenCounter,
)
from coatcheck.core.notice import _INCOMPLETE, one_line

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.no_cover  # megabytes take a path that other tests cover

COUNTER = TiktokenCounter("o200k_base")
MAX_NOTICE_TOKENS = 64
"""Every offloaded result pays for the notice. The limit leaves a few tokens to spare, so that a sentence can change."""

MAX_WITH_REFERENCE_TOKENS = 100
MAX_WITH_ODD_NAME_TOKENS = 125
"""A reference holds up to 32 characters of the tool's name: words if the name is usual, noise if it is odd."""

FIRST_CHARACTERS = 200
"""How many first characters of an old result Strands' conversation manager, Haystack's offloader and others keep."""

NAMES = ("search", "get_file_contents", "mcp__github__list_pull_requests", "browser_snapshot", "execute_sql")
BIG = TextBlock("a line of a log\n" * 500_000)
SEVERAL: tuple[Block, ...] = tuple(TextBlock(f"{number} of several files\n" * 90_000) for number in range(8))
IMAGE = MediaBlock(b"\x89PNG" * 300_000, "image/png")

OLD_PLACEHOLDER = """\
Tool result offloaded. [Offloaded: 1 block, ~2,400 tokens]
INCOMPLETE: only a preview is shown here. Do not guess the rest, and do not call search again for it: the whole result \
is stored.
To read more: retrieve_offloaded_content(reference, pattern | line_range | query | offset)
[Stored references:]
  {reference} (text/plain, 9,600 bytes)

a preview"""
"""The placeholder of versions before 0.2, with the references last."""


def placeholder_of(offloader: Offloader, *content: Block, tool_name: str) -> tuple[str, tuple[str, ...]]:
    outcome = offloader.offload(content, tool_name=tool_name, policy=Always())
    assert isinstance(outcome, Offloaded)
    (first, *_) = outcome.blocks
    assert isinstance(first, TextBlock)
    return first.text, tuple(map(str, outcome.references))


def head_of(text: str) -> tuple[str, list[str]]:
    """Return the notice without its reference lines, and those lines."""
    lines = text.partition("\n\n")[0].split("\n")
    return "\n".join(line for line in lines if not line.startswith("  ")), [
        line for line in lines if line.startswith("  ")
    ]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        *((content, name) for content in ((BIG,), SEVERAL, (IMAGE,), (BIG, IMAGE)) for name in ("n" * 128, "Üb" * 64)),
        *(((IMAGE,), name) for name in NAMES),  # the longest names were tried with every content
    ],
)
def test_the_notice_costs_at_most_64_tokens_whatever_the_tools_name(content: tuple[Block, ...], name: str) -> None:
    text, references = placeholder_of(Offloader(preview_tokens=1), *content, tool_name=name)
    notice, listed = head_of(text)

    assert len(listed) == len(references)
    assert COUNTER.count(notice) <= MAX_NOTICE_TOKENS, notice


@pytest.mark.parametrize("content", [BIG, IMAGE], ids=["text", "image"])
@pytest.mark.parametrize(
    ("name", "most"),
    [
        *((name, MAX_WITH_REFERENCE_TOKENS) for name in NAMES),
        *((name, MAX_WITH_ODD_NAME_TOKENS) for name in ("n" * 128, "zq" * 64, "7x" * 64, "Üb" * 64)),
    ],
)
def test_with_one_reference_the_notice_costs_at_most_100_tokens_or_125_for_an_odd_name(
    content: Block, name: str, most: int
) -> None:
    text, _ = placeholder_of(Offloader(preview_tokens=1), content, tool_name=name)
    head = text.partition("\n\n")[0]

    assert COUNTER.count(head) <= most, head


@given(name=st.text(max_size=128), copies=st.integers(1, 12), several=st.booleans())
def test_the_first_reference_ends_within_the_first_200_characters(name: str, copies: int, *, several: bool) -> None:
    pieces = [TextBlock(f"{number} {name}" * 50) for number in range(1, copies + 1)]
    content = pieces if several else [TextBlock("".join(piece.text for piece in pieces))]
    offloader = Offloader(InMemoryStorage(), token_counter=ByteCounter(), preview_tokens=20)
    text, references = placeholder_of(offloader, *content, tool_name=name)

    assert text.startswith("Tool result offloaded. [Offloaded: ")
    assert text.index("\n[Stored references:]\n  ") == text.index("\n"), "right after the first line"
    assert text.index(references[0]) + len(references[0]) < FIRST_CHARACTERS


class LongPaths:
    """A storage that chooses its own references, of 110 characters each."""

    def save_named(self, name: str, content: bytes, *, content_type: str) -> str:
        del content, content_type
        return name.rjust(110, "/")

    def load(self, key: str) -> Stored | None:
        del key
        return None


def test_a_storages_own_reference_of_110_characters_ends_within_the_first_200_too() -> None:
    text, (reference, *_) = placeholder_of(Offloader(LongPaths()), *SEVERAL, tool_name="n" * 128)

    assert len(reference) == 110
    assert text.index(reference) + len(reference) < FIRST_CHARACTERS


def test_the_path_of_a_file_comes_after_the_reference(tmp_path: Path) -> None:
    folder = tmp_path / ("f" * 100)
    text, references = placeholder_of(Offloader(FileStorage(folder), show_path=True), BIG, tool_name="n" * 128)

    assert str(folder) in text
    assert text.index(references[0]) + len(references[0]) < FIRST_CHARACTERS


def test_a_path_of_more_than_256_characters_is_not_shown(tmp_path: Path) -> None:
    folder = tmp_path / ("f" * 100) / ("g" * 100) / ("h" * 100)
    text, _ = placeholder_of(Offloader(FileStorage(folder), show_path=True), BIG, tool_name="search")

    assert ", file:" not in text


@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX's")
@pytest.mark.parametrize("name", ["two\nlines", "two\u2028lines", "a\tb", "esc\x1b[31m", "next\x85line", "resum\udce9"])
def test_a_path_that_breaks_the_line_or_is_not_valid_unicode_is_not_shown(name: str, tmp_path: Path) -> None:
    text, (reference, *_) = placeholder_of(Offloader(FileStorage(tmp_path / name), show_path=True), BIG, tool_name="t")

    assert ", file:" not in text
    assert f"  {reference} (text/plain, " in text


@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX's")
@pytest.mark.parametrize(
    "name", ["a\u00a0b", "Screen\u202fShots", "\u30e6\u30fc\u30b6\u30fc\u3000\u540d", "\U0001f468\u200d\U0001f469"]
)
def test_a_path_with_other_spaces_or_joined_emoji_is_shown(name: str, tmp_path: Path) -> None:
    text, _ = placeholder_of(Offloader(FileStorage(tmp_path / name), show_path=True), BIG, tool_name="t")

    assert f", file: {tmp_path / name}" in text


@pytest.mark.parametrize("text", ["all is well\n", '{"a": 1}'])
def test_a_preview_that_is_the_whole_content_is_called_complete(text: str) -> None:
    outcome = Offloader().offload([TextBlock(text)], tool_name="status", policy=Always())

    assert isinstance(outcome, Offloaded)
    (block,) = outcome.blocks
    assert isinstance(block, TextBlock)
    assert " bytes)\nCOMPLETE: " in block.text
    assert "\nTo read it again: retrieve_" in block.text
    assert _INCOMPLETE.partition(":")[0] not in block.text


def test_a_preview_of_one_of_two_contents_is_not_called_complete() -> None:
    outcome = Offloader().offload([TextBlock("one"), TextBlock("two")], tool_name="status", policy=Always())

    assert "INCOMPLETE: " in str(outcome)


def test_a_result_that_only_begins_like_a_placeholder_of_this_scope_is_offloaded() -> None:
    offloader = Offloader(InMemoryStorage())
    text, (reference,) = placeholder_of(offloader, BIG, tool_name="search")
    elsewhere = offloader.offload([TextBlock(text * 3)], tool_name="search", policy=Always(), scope="another")

    assert isinstance(elsewhere, Offloaded)
    assert reference not in map(str, elsewhere.references)


def test_a_placeholder_that_an_earlier_version_wrote_is_not_offloaded_again() -> None:
    offloader = Offloader(InMemoryStorage())
    _, (reference,) = placeholder_of(offloader, BIG, tool_name="search")
    old = TextBlock(OLD_PLACEHOLDER.format(reference=reference))

    outcome = offloader.offload([old], tool_name="ask_a_colleague", policy=Always())

    assert outcome.blocks == (old,)
    assert not isinstance(outcome, Offloaded)


@pytest.mark.parametrize("kept", [200, 120])
def test_a_placeholder_that_was_cut_to_its_beginning_is_not_offloaded_again(kept: int) -> None:
    offloader = Offloader(InMemoryStorage())
    text, (reference,) = placeholder_of(offloader, BIG, tool_name="search")
    cut = TextBlock(text[:kept] + "... [truncated] ..." + text[-kept:])

    outcome = offloader.offload([cut], tool_name="search", policy=Always())

    assert reference in cut.text
    assert outcome.blocks == (cut,)


@pytest.mark.parametrize("odd", ["a\nb", "a\r[b]", "a|\x1b[31mb", "a\u202eb", "\x00a\t\tb"])
def test_foreign_text_in_a_notice_takes_one_line_without_markup(odd: str) -> None:
    line = one_line(odd)

    assert line.split() == (["a", "b"] if "31m" not in odd else ["a", "31mb"])
    assert not set(line) & set("\n\r[]|\x1b\u202e\x00\t")
    assert len(one_line("word " * 1_000)) <= 64
