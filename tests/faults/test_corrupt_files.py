"""Corrupt files: a flipped bit, a cut, an added byte or a swapped file never leads to wrong content."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from coatcheck import CorruptContent, FileStorage, Offloader, StorageError, TextBlock
from coatcheck.testing.samples import numbered_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = 200


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(content))


def cut(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def lengthen(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + bytes([chance.randrange(256)]))


def swap(path: Path, chance: random.Random) -> None:
    others = [other for other in path.parent.iterdir() if other.suffix == path.suffix and other != path]
    path.write_bytes(chance.choice(sorted(others)).read_bytes())


@pytest.mark.parametrize("damage", [flip, cut, lengthen, swap])
def test_damaged_content_is_reported_and_never_returned(
    tmp_path: Path, figure: Callable[[str], None], damage: Callable[[Path, random.Random], None]
) -> None:
    chance = random.Random(4)  # noqa: S311 - no secret
    storage = FileStorage(tmp_path)
    offloader = Offloader(storage)
    texts = [numbered_lines(1_000, first=1 + number) for number in range(FILES)]
    references = [str(offloader.offload([TextBlock(text)], tool_name="t").references[0]) for text in texts]
    corrupt = returned = 0
    for path, before in [(path, path.read_bytes()) for path in sorted(tmp_path.rglob("*.txt"))]:
        damage(path, chance)
        for reference, text in zip(references, texts, strict=True):
            if path.name.partition(".")[0] not in reference:
                continue
            try:
                returned += offloader.load(reference).text != text
            except CorruptContent:
                corrupt += 1
        path.write_bytes(before)

    figure(f"{FILES} contents damaged ({damage.__name__}): {corrupt} reported as corrupt, {returned} returned")
    assert (corrupt, returned) == (FILES, 0)


@pytest.mark.parametrize("damage", [flip, cut, lengthen, swap])
def test_a_damaged_description_never_leads_to_wrong_content(
    tmp_path: Path, figure: Callable[[str], None], damage: Callable[[Path, random.Random], None]
) -> None:
    chance = random.Random(4)  # noqa: S311 - no secret
    offloader = Offloader(FileStorage(tmp_path))
    text = numbered_lines(1_000)
    reference = str(offloader.offload([TextBlock(text)], tool_name="t").references[0])
    offloader.offload([TextBlock(text * 2)], tool_name="t")
    (described,) = [path for path in tmp_path.rglob("*.entry.json") if path.name.partition(".")[0] in reference]
    before = described.read_bytes()
    reported = unharmed = wrong = 0
    for _ in range(FILES):
        damage(described, chance)
        try:
            content = offloader.load(reference)
            unharmed += content.text == text and content.content_type == "text/plain"
            wrong += content.text != text
        except (StorageError, LookupError):
            reported += 1
        described.write_bytes(before)

    figure(
        f"{FILES} descriptions damaged ({damage.__name__}): {reported} reported, {unharmed} without effect on a whole"
        f" read, {wrong} wrong"
    )
    assert wrong == 0
    assert reported + unharmed == FILES
