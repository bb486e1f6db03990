"""Any byte of any stored content is one retrieval call away from the placeholder.

A call knows only the text of the placeholder, and which character of which block is wanted.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Always, Block, ByteCounter, JsonBlock, MediaBlock, Offloader, TextBlock
from coatcheck.core.blocks import json_text, to_valid_unicode
from tests.core.preview_samples import SAMPLES
from tests.core.strategies import texts

NAMES = st.sampled_from(sorted(SAMPLES))
WANTED = 20
"""How many characters of the content, from the wanted one, the answer must hold."""


def _offloader(budget: int) -> Offloader:
    return Offloader(token_counter=ByteCounter(), max_retrieval_tokens=budget, preview_tokens=200)


def _references(placeholder: str) -> list[str]:
    """Return the references that the placeholder lists below its heading, including the index if there is one."""
    listed = placeholder.partition("[Stored references:]\n")[2]
    return re.findall(r"^  (\S+) \((?:index|.*bytes)", listed.partition("\n\n")[0], re.MULTILINE)


def _as_blocks(name: str, text: str) -> list[tuple[Block, str]]:
    """Return the text as each kind of block that a framework may pass, with the text that is stored for it."""
    forms: list[tuple[Block, str]] = [(TextBlock(text), text)]
    if text.isascii():
        forms.append((MediaBlock(text.encode(), "text/plain", name="notes.txt"), text))
    if SAMPLES[name][0] == "json":
        value = json.loads(text)
        forms.append((JsonBlock(value), json_text(value)))
    return forms


@given(
    name=NAMES,
    count=st.integers(30, 300),
    place=st.floats(0, 1),
    budget=st.integers(300, 900),
    form=st.integers(0, 2),
    added=texts(pieces=3),
)
def test_every_character_of_every_kind_is_one_call_away(
    *, name: str, count: int, place: float, budget: int, form: int, added: str
) -> None:
    made = SAMPLES[name][1](count)
    forms = _as_blocks(name, made)
    block, text = forms[form % len(forms)]
    if isinstance(block, TextBlock):
        text = added + made  # may be invalid Unicode
        block = TextBlock(text)
    offloader = _offloader(budget)
    placeholder = offloader.offload([block], tool_name="search", scope="s", policy=Always()).text
    at = int(place * (len(text) - 1))
    answer = offloader.retrieve(_references(placeholder)[0], scope="s", offset=at)

    assert to_valid_unicode(text[at : at + WANTED]) in answer.text


@given(data=st.binary(min_size=1, max_size=5_000), media_type=st.sampled_from(["image/png", "application/pdf"]))
def test_every_byte_of_a_medium_is_one_call_away_if_the_framework_takes_media(data: bytes, media_type: str) -> None:
    offloader = _offloader(300)
    outcome = offloader.offload([MediaBlock(data, media_type)], tool_name="draw", scope="s", policy=Always())
    answer = offloader.retrieve(_references(outcome.text)[0], scope="s", native_media=True)

    assert answer.blocks == (MediaBlock(data, media_type),)


@pytest.mark.parametrize("wanted", [0, 3, 4, 777, 1_997, 1_998, 1_999])
def test_every_character_of_many_blocks_is_one_call_away(wanted: int) -> None:
    blocks = [
        TextBlock(f"block {number} " + "".join(f"<{number * 7 + n}>" for n in range(40))) for number in range(2_000)
    ]
    offloader = _offloader(400)
    outcome = offloader.offload(blocks, tool_name="search", scope="s", policy=Always())
    (reference,) = _references(outcome.text)

    answer = offloader.retrieve(reference, scope="s", pattern=f"^block {wanted} ", context_lines=0)
    assert f"[item {wanted + 1}]| {blocks[wanted].text}" in answer.text
    start = sum(len(block.text) + 1 for block in blocks[:wanted])
    assert blocks[wanted].text in offloader.retrieve(reference, scope="s", offset=start).text
