"""Content that earlier versions stored in a folder is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage, Offloader, ReferenceExpired
from coatcheck.core.references import Key, scope_part
from tests.formats.kept import check_storage, every_version, left_by, make_old

if TYPE_CHECKING:
    from pathlib import Path


@every_version
def test_content_of_an_earlier_version_is_read(version: str, tmp_path: Path) -> None:
    check_storage(FileStorage(tmp_path), left_by(version, "file", tmp_path))


@every_version
def test_a_scope_is_deleted_and_the_others_stay(version: str, tmp_path: Path) -> None:
    left = left_by(version, "file", tmp_path)
    storage = FileStorage(tmp_path)
    offloader = Offloader(storage)
    keys = [Key.parse(entry.key) for entry in storage.entries(f"{scope_part('user-2')}/")]
    contents = [key for key in keys if key.is_content]

    assert 0 < offloader.delete_scope("user-2") == len(contents) < len(keys)

    for result in left.results:
        for content in result["contents"]:
            if result["scope"] == "user-2":
                with pytest.raises(ReferenceExpired):
                    offloader.load(content["reference"], scope="user-2")
            else:
                offloader.load(content["reference"], scope=result["scope"])


@every_version
def test_a_sweep_removes_what_is_old(version: str, tmp_path: Path) -> None:
    left_by(version, "file", tmp_path)
    make_old(tmp_path)
    storage = FileStorage(tmp_path)
    number = len(list(storage.entries("")))

    assert Offloader(storage).sweep(max_age_seconds=3_600) == number
    assert list(storage.entries("")) == []
