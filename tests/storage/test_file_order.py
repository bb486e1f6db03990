"""FileStorage between two steps: what a reader sees in the middle of a save or deletion, and what a crash leaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage
from coatcheck.testing.samples import make_entry
from coatcheck.testing.storage import check_holds, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENTRY = make_entry(b"what the tool returned")
STEPS = ("replace", "unlink")
"""The functions of ``os`` that give a file a name or take it away: nothing else changes what a reader finds."""


def _save(storage: FileStorage) -> None:
    save(storage, ENTRY)


def _delete(storage: FileStorage) -> None:
    storage.delete(ENTRY.key)


CHANGES = [_save, _delete]


def _prepared(folder: Path, change: Callable[[FileStorage], None]) -> FileStorage:
    storage = FileStorage(folder)
    if change is _delete:
        save(storage, ENTRY)
    return storage


def _around_each_step(patch: pytest.MonkeyPatch, look: Callable[[], None]) -> None:
    for name in STEPS:
        original = getattr(os, name)

        def step(*names: Any, original: Any = original, **options: Any) -> object:  # noqa: ANN401
            look()
            done = original(*names, **options)
            look()
            return done

        patch.setattr(os, name, step)


@pytest.mark.parametrize("change", CHANGES)
def test_between_two_steps_a_reader_sees_the_whole_entry_or_none(
    tmp_path: Path, change: Callable[[FileStorage], None]
) -> None:
    storage, reader, seen = _prepared(tmp_path, change), FileStorage(tmp_path), []

    def look() -> None:
        listed = [entry.key for entry in reader.entries("")]
        if reader.load(ENTRY.key) is None:
            assert listed == []
        else:
            check_holds(reader, ENTRY, "between two steps")
            assert listed == [ENTRY.key]
        seen.append(bool(listed))

    with pytest.MonkeyPatch.context() as patch:
        _around_each_step(patch, look)
        change(storage)

    assert len(seen) >= 4
    assert seen == sorted(seen, reverse=change is _delete), "the entry flickered"
    assert set(seen) == {True, False}


class _Break(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_call_that_breaks_off_between_two_steps_leaves_no_orphaned_content(
    tmp_path: Path, change: Callable[[FileStorage], None]
) -> None:
    storage, steps = _prepared(tmp_path, change), iter(range(100))

    def end_after_the_first() -> None:
        if next(steps) >= 1:
            raise _Break

    with pytest.MonkeyPatch.context() as patch:
        _around_each_step(patch, end_after_the_first)
        with pytest.raises(_Break):
            change(storage)

    assert storage.entries("") == []
    content = storage.local_path(ENTRY.key, content_type=ENTRY.content_type)
    assert not content.exists(), "this would never be swept"
    _save(storage)
    check_holds(storage, ENTRY, "after it was saved again")
