"""Content that earlier versions stored through fsspec is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsspec.implementations.local import LocalFileSystem

from coatcheck.storage import FsspecBridge
from tests.formats.kept import check_storage, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path


@every_version
def test_content_of_an_earlier_version_is_read(version: str, tmp_path: Path) -> None:
    left = left_by(version, "fsspec", tmp_path)

    check_storage(FsspecBridge(LocalFileSystem(), str(tmp_path / "artifacts")), left)
