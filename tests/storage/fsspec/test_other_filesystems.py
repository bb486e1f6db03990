"""FsspecBridge on filesystems that differ from S3's: some read no ranges, and their errors have codes."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from coatcheck import InvalidRequest, Offloaded, Offloader, TextBlock
from coatcheck.storage import FsspecBridge
from coatcheck.storage.fsspec_bridge import REPLACES_NOTHING


class ReadsAll(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Reads a file whole, whatever part is asked for."""

    def cat_file(self, path: str, **options: Any) -> bytes:  # noqa: ANN401 - fsspec's own
        raise NotImplementedError


class ReadsAllAsync(AsyncFileSystem):  # type: ignore[misc]  # as above
    """Does the same as an async filesystem that puts files, like ``sshfs``."""

    async def _pipe_file(self, path: str, value: bytes, **options: Any) -> None:  # noqa: ANN401 - fsspec's own
        raise NotImplementedError

    async def _cat_file(self, path: str, **options: Any) -> bytes:  # noqa: ANN401 - fsspec's own
        raise NotImplementedError


class PassesOn(MemoryFileSystem):  # type: ignore[misc]  # as above
    """Passes its arguments on to another filesystem."""

    def cat_file(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - fsspec's own
        return super().cat_file(*arguments, **options)


@pytest.mark.parametrize("kind", [ReadsAll, ReadsAllAsync])
def test_a_filesystem_that_cannot_read_a_range_is_refused(kind: type[Any]) -> None:
    for filesystem in (kind(), DirFileSystem("/agents", fs=kind())):
        with pytest.raises(InvalidRequest, match=f"{kind.__name__} reads a file whole when asked for a part: pass"):
            FsspecBridge(filesystem, "folder")


@pytest.mark.parametrize("name", sorted(REPLACES_NOTHING))
def test_a_filesystem_whose_move_replaces_nothing_is_refused(name: str) -> None:
    kind = type("Mine", (type(name, (MemoryFileSystem,), {}),), {})

    for filesystem in (kind(), DirFileSystem("/agents", fs=kind())):
        with pytest.raises(InvalidRequest, match="Mine does not replace an existing file on a move: pass"):
            FsspecBridge(filesystem, "folder")


def test_a_subclass_whose_own_move_replaces_files_is_accepted() -> None:
    def mv(self: MemoryFileSystem, source: str, target: str, **_: object) -> None:
        self.pipe_file(target, self.cat_file(source))
        self.rm_file(source)

    kind = type("Mended", (type("WebHDFS", (MemoryFileSystem,), {}),), {"mv": mv})

    for filesystem in (kind(), DirFileSystem("/agents", fs=kind())):
        bridge = FsspecBridge(filesystem, "folder")
        offloader = Offloader(bridge, max_result_tokens=10)
        for _ in range(2):
            outcome = offloader.offload([TextBlock("word " * 2_000)], tool_name="t", scope="s")
            assert isinstance(outcome, Offloaded)


def test_the_filesystems_whose_move_replaces_nothing_exist_in_fsspec() -> None:
    names = {found["class"].rpartition(".")[2] for found in known_implementations.values()}

    assert names >= REPLACES_NOTHING


def test_a_filesystem_that_passes_its_arguments_on_is_accepted() -> None:
    FsspecBridge(PassesOn(), "folder")


class Azure(Enum):
    MISSING = "ContainerNotFound"


class Refused(Exception):
    """Carries the codes that a service answered with."""

    def __init__(self, **codes: object) -> None:
        super().__init__("may quote content")
        vars(self).update(codes)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ({}, "Refused"),
        ({"status_code": 404, "error_code": Azure.MISSING}, "Refused 404 ContainerNotFound"),
        ({"code": 403}, "Refused 403"),
        ({"status_code": None, "error_code": "some of the content", "code": print}, "Refused"),
    ],
)
def test_only_the_codes_of_a_service_error_are_repeated(codes: dict[str, object], words: str) -> None:
    storage = FsspecBridge(MemoryFileSystem(), "/agents")

    assert storage.describe_error(Refused(**codes)) == f"{words}, in FsspecBridge(MemoryFileSystem, '/agents')"
