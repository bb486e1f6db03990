"""Unpacks and checks what earlier versions left. ``make`` wrote it."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import Always, Kept, Offloader, ReferenceNotFound, TextBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck import NamesReferences, Scope, Storage

HERE = Path(__file__).parent

PLACE = "{folder}"
"""A placeholder for an archive's folder wherever a storage shows its path: each unpacking uses another folder."""

VERSIONS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())

every_version = pytest.mark.parametrize("version", VERSIONS)


@dataclass(frozen=True)
class Left:
    """The content that one version left in one storage or for one conversation."""

    folder: Path
    results: Sequence[dict[str, Any]]

    @property
    def references(self) -> list[list[str]]:
        """The references of each result of a conversation, in order."""
        return [[content["reference"] for content in contents] for contents in self.results[0]["contents"]]


SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Arguments for a safe extraction. The first patch releases of Python 3.10 and 3.11 have no filters."""


def left_by(version: str, name: str, folder: Path) -> Left:
    """Unpack what ``version`` left under ``name`` into ``folder``."""
    with tarfile.open(HERE / version / f"{name}.tar.gz") as archive:
        archive.extractall(folder, **SAFELY)  # noqa: S202 - an archive of ours
    for path in folder.rglob("*"):
        if path.is_file() and PLACE.encode() in (data := path.read_bytes()):
            path.write_bytes(data.replace(PLACE.encode(), bytes(folder)))
    manifest = (HERE / version / f"{name}.json").read_text(encoding="utf-8").replace(PLACE, str(folder))
    return Left(folder, json.loads(manifest)["results"])


def check_storage(storage: Storage | NamesReferences, left: Left) -> None:
    """Fail unless everything can be read whole and in parts, only in its scope, and no placeholder is offloaded."""
    offloader = Offloader(storage, policies={"*": Always()})
    assert left.results
    for result in left.results:
        _check_contents(offloader, result["contents"], result["scope"], left.folder)
        _check_reads(offloader, result["reads"], result["scope"])
        first, *marks = result["placeholder"]
        again = offloader.offload([TextBlock(first), *map(TextBlock, marks)], tool_name="any", scope=result["scope"])
        assert isinstance(again, Kept), f"the placeholder of {result['name']} was offloaded"
        assert again.reason == "exempt"


def check_conversation(offloader: Offloader, left: Left) -> None:
    """Fail unless every content of a conversation can be read whole and in parts."""
    (conversation,) = left.results
    scope = tuple(conversation["scope"]) if isinstance(conversation["scope"], list) else conversation["scope"]
    for contents in conversation["contents"]:
        _check_contents(offloader, contents, scope, left.folder)
    _check_reads(offloader, conversation["reads"], scope)


def _check_contents(offloader: Offloader, contents: Sequence[dict[str, Any]], scope: Scope, folder: Path) -> None:
    for content in contents:
        found = offloader.load(content["reference"], scope=scope)
        digest = hashlib.sha256(found.data.replace(bytes(folder), PLACE.encode())).hexdigest()
        assert (digest, found.content_type) == (content["sha256"], content["content_type"]), content["reference"]
        with pytest.raises(ReferenceNotFound):
            offloader.load(content["reference"], scope=f"not {scope}")


def _check_reads(offloader: Offloader, reads: Sequence[dict[str, Any]], scope: Scope) -> None:
    for read in reads:
        answer = offloader.retrieve(read["reference"], scope=scope, **read["arguments"]).text
        assert read["sees"] in answer, (read, answer)


def make_old(folder: Path) -> None:
    """Make everything in a folder a day old: archives do not keep times precisely enough for a sweep."""
    for path in folder.rglob("*"):
        os.utime(path, (path.stat().st_atime, time.time() - 86_400))
