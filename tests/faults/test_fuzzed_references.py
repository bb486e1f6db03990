"""12,000 made-up references against every storage: none reads anything, none raises an unexpected error."""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from google.adk.artifacts import FileArtifactService, InMemoryArtifactService
from langgraph.store.memory import InMemoryStore
from strands.storage import LocalFileStorage
from strands.vended_plugins.context_offloader import FileStorage as StrandsFileStorage

from coatcheck import (
    CoatcheckError,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    NamesReferences,
    Offloader,
    ReferenceExpired,
    ReferenceNotFound,
    S3Storage,
    Storage,
    StrandsOffloaderStorageBridge,
    StrandsStorageBridge,
    TextBlock,
    ToolResultStoreBridge,
)
from coatcheck.storage import FsspecBridge, LangGraphStoreBridge
from coatcheck.testing.samples import MALFORMED_KEYS, numbered_lines
from coatcheck_adk import ArtifactServiceBridge
from coatcheck_haystack import FileSystemToolResultStore
from tests.storage.seaweed import BUCKET, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COUNT = 12_000
PARTS = re.compile(r"(.*?)([0-9a-f]{16})(-|_scope_)([0-9a-f]{16}|[0-9a-f]{4})(\D*)")
"""The parts of a reference, whether we or a storage made it."""

HOSTILE = ("../", "..\\", "/", "\0", "%2e%2e%2f", "\n", "*", "?", "~", "\ud800", "e\u0301", "C:", "con", "nul", "${x}")
EVERYTHING = string.printable + "\0\u2028\ud800漢\U0001f469"


def fuzzed(real: str, chance: random.Random) -> Iterator[str]:
    """Yield made-up references: noise, other scopes' references, near misses of a real one, paths, overlong ones."""
    parts = PARTS.fullmatch(real)
    assert parts is not None, real
    before, digest, between, check, after = parts.groups()

    def digits(count: int) -> str:
        return "".join(chance.choice("0123456789abcdef") for _ in range(count))

    for _ in range(COUNT):
        noise = "".join(chance.choice(EVERYTHING) for _ in range(chance.randrange(40)))
        other, wrong = digits(16), digits(len(check))
        hostile = chance.choice(HOSTILE)
        yield chance.choice(
            [
                noise,
                f"{before}{other}{between}{wrong}{after}",
                f"{before}{other}{between}{check}{after}",
                f"{before}{digest}{between}{wrong}{after}" if wrong != check else noise,
                f"{before}{digest}",
                f"{hostile}{before}{other}{between}{check}{after}{hostile}",
                f"{before}{digest[:8]}{hostile}{digest[8:]}{between}{check}{after}",
                f"{digest}/{check}{hostile}",
                f"{before}{other}{between}{wrong}{after} " * chance.randrange(1, 20),
                hostile * chance.randrange(1, 200),
                hostile * chance.randrange(1, 4) + "secret.txt",
                chance.choice(MALFORMED_KEYS),
            ]
        )


MAKE: dict[str, Callable[[Path, Server], Storage | NamesReferences]] = {
    "InMemoryStorage": lambda _, __: InMemoryStorage(),
    "FileStorage": lambda folder, _: FileStorage(folder),
    "S3Storage": lambda _, server: S3Storage(BUCKET, "fuzzed", **server.settings()),
    "FsspecBridge, local": lambda folder, _: FsspecBridge(LocalFileSystem(), str(folder)),
    "FsspecBridge, memory": lambda _, __: FsspecBridge(MemoryFileSystem(), "/fuzzed"),
    "LangGraphStoreBridge": lambda _, __: LangGraphStoreBridge(InMemoryStore()),
    "StrandsStorageBridge": lambda folder, _: StrandsStorageBridge(LocalFileStorage(str(folder))),
    "StrandsOffloaderStorageBridge": lambda folder, _: StrandsOffloaderStorageBridge(StrandsFileStorage(str(folder))),
    "ArtifactServiceBridge, files": lambda folder, _: ArtifactServiceBridge(FileArtifactService(folder)),
    "ArtifactServiceBridge, memory": lambda _, __: ArtifactServiceBridge(InMemoryArtifactService()),
    "ToolResultStoreBridge": lambda folder, _: ToolResultStoreBridge(FileSystemToolResultStore(folder)),
}


SAY_SO = {"StrandsOffloaderStorageBridge": {"failed: File name too long"}}
"""Errors that a foreign storage raises instead of reporting that there is no such entry."""


@pytest.mark.parametrize("name", MAKE)
def test_no_made_up_reference_reads_anything(
    tmp_path: Path, server: Server, figure: Callable[[str], None], name: str
) -> None:
    storage = MAKE[name](tmp_path / "artifacts", server)
    offloader = Offloader(storage)
    (tmp_path / "secret.txt").write_text("not yours")
    text = numbered_lines(2_000)
    real = str(offloader.offload([TextBlock(text)], tool_name="read_log", scope="mine").references[0])
    seen: Counter[str] = Counter()
    for reference in fuzzed(real, random.Random(4)):  # noqa: S311 - no secret
        seen[ask(offloader, reference, "mine")] += 1
        seen[ask(offloader, reference, "yours")] += 1
    seen["the real one, from another scope: " + ask(offloader, real, "yours")] += 1

    figure(
        f"{2 * COUNT:,} made-up references against {name}: "
        + ", ".join(f"{count:,} {ending}" for ending, count in sorted(seen.items()))
    )
    endings = {"unknown", "expired", "refused", "the real one, from another scope: unknown"}
    assert set(seen) - SAY_SO.get(name, set()) <= endings
    assert seen["unknown"] > COUNT
    assert offloader.load(real, scope="mine").text == text


def ask(offloader: Offloader, reference: str, scope: str) -> str:
    """Load a reference; return the outcome in words."""
    try:
        offloader.load(reference, scope=scope)
    except ReferenceExpired:
        return "expired"
    except ReferenceNotFound:
        return "unknown"
    except InvalidRequest:
        return "refused"
    except CoatcheckError as error:
        return f"failed: {getattr(error.__cause__, 'strerror', None) or repr(error)}"
    return f"read: {reference!r}"
