"""Putting a placeholder together: how several previews share one budget."""

from __future__ import annotations

import pytest

from coatcheck import Always, ByteCounter, Offloaded, Offloader, TextBlock

COUNTER = ByteCounter()


@pytest.mark.parametrize("sizes", [(4_000, 4_000), (300, 4_000, 4_000), (4_000,) * 8])
def test_several_previews_keep_to_the_budget_of_all_with_their_headings(sizes: tuple[int, ...]) -> None:
    offloader = Offloader(token_counter=COUNTER, preview_tokens=900)
    content = [
        TextBlock("".join(f"{number} {line}\n" for line in range(size))) for number, size in enumerate(sizes, start=1)
    ]
    outcome = offloader.offload(content, tool_name="read_the_files_of_a_whole_folder", policy=Always())

    assert isinstance(outcome, Offloaded)
    text = "".join(block.text for block in outcome.blocks if isinstance(block, TextBlock))
    previews = text[text.index("[Preview of") :]
    assert previews.count("[Preview of") == len(sizes)
    assert 800 < COUNTER.count(previews) <= 900
