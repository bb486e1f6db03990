"""Random inputs that the property tests share: strings, JSON values, content blocks, budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from coatcheck import JsonBlock, MediaBlock, OpaqueBlock, TextBlock

if TYPE_CHECKING:
    from coatcheck.core.blocks import Block, JsonValue

_NASTY = st.sampled_from(
    [
        "\ud800",
        "\udfff",
        "\ud83d\ude00",
        "\0",
        "\r\n",
        "\r",
        "\n",
        "\n\n",
        "\u2028",
        "\u0085",
        "\f",
        "e\u0301",
        "👩‍👩‍👧",
        "👍🏽",
        "汉字",
    ]
)
_PLAIN = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)  # surrogates included
_WORDS = st.sampled_from(
    ["ERROR ", "id=12345 ", "{", '"', "the ", "x" * 200, " " * 50, "| ref: R]", "[Stored references:]\n"]
)


def texts(*, pieces: int = 40) -> st.SearchStrategy[str]:
    """Return strings of up to ``pieces`` pieces, a mix of plain, nasty and wordy ones."""
    return st.lists(st.one_of(_PLAIN, _NASTY, _WORDS), max_size=pieces).map("".join)


def long_texts() -> st.SearchStrategy[str]:
    """Return strings of some thousand tokens, made by repeating a short one."""
    return st.builds(lambda text, times: text * times, texts(pieces=12), st.integers(1, 400))


def json_values() -> st.SearchStrategy[JsonValue]:
    """Return JSON values of every kind, including big integers, NaN, infinity and lone surrogates."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**80), 2**80),
        st.floats(),
        texts(pieces=5),
    )
    values: st.SearchStrategy[JsonValue] = leaves
    for _ in range(3):
        values = leaves | st.lists(values, max_size=4) | st.dictionaries(texts(pieces=2), values, max_size=4)
    return values


def blocks() -> st.SearchStrategy[Block]:
    """Return one content block of any kind, possibly empty."""
    media_types = st.sampled_from(["image/png", "audio/mpeg", "video/mp4", "application/pdf", "x"])
    return st.one_of(
        st.builds(TextBlock, long_texts()),
        st.builds(TextBlock, texts()),
        st.builds(JsonBlock, json_values()),
        st.builds(MediaBlock, st.binary(max_size=300), media_types, name=st.none() | texts(pieces=2)),
        st.builds(OpaqueBlock, st.builds(object)),
    )
