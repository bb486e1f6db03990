"""12,000 made-up references against every storage: none reads anything, none raises anything but what it should."""

from __future__ import annotations

import random
import string
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from coatcheck import (
    CoatcheckError,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    Offloader,
    ReferenceExpired,
    ReferenceNotFound,
    S3Storage,
    Storage,
    TextBlock,
)
from coatcheck.testing.samples import MALFORMED_KEYS, numbered_lines
from tests.storage.seaweed import BUCKET, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COUNT = 12_000
HOSTILE = ("../", "..\\", "/", "\0", "%2e%2e%2f", "\n", "*", "?", "~", "\ud800", "e\u0301", "C:", "con", "nul", "${x}")
EVERYTHING = string.printable + "\0\u2028\ud800漢\U0001f469"


def fuzzed(real: str, chance: random.Random) -> Iterator[str]:
    """Yield made-up references: noise, other scopes', near misses of a real one, paths, over-long ones."""
    slug, digest, check = real.rsplit("-", 2)
    hexadecimal = "0123456789abcdef"
    for _ in range(COUNT):
        noise = "".join(chance.choice(EVERYTHING) for _ in range(chance.randrange(40)))
        other = "".join(chance.choice(hexadecimal) for _ in range(16))
        wrong = "".join(chance.choice(hexadecimal) for _ in range(4))
        hostile = chance.choice(HOSTILE)
        yield chance.choice(
            [
                noise,
                f"{slug}-{other}-{wrong}",
                f"{slug}-{other}-{check}",
                f"{slug}-{digest}-{wrong}" if wrong != check else noise,
                f"{slug}-{digest}",
                f"{hostile}{slug}-{other}-{check}{hostile}",
                f"{slug}-{digest[:8]}{hostile}{digest[8:]}-{check}",
                f"{digest}/{check}{hostile}",
                f"{slug}-{other}-{wrong} " * chance.randrange(1, 20),
                hostile * chance.randrange(1, 200),
                chance.choice(MALFORMED_KEYS),
            ]
        )


@pytest.mark.parametrize("name", ["InMemoryStorage", "FileStorage", "S3Storage"])
def test_no_made_up_reference_reads_anything(
    tmp_path: Path, server: Server, figure: Callable[[str], None], name: str
) -> None:
    storages: dict[str, Storage] = {
        "InMemoryStorage": InMemoryStorage(),
        "FileStorage": FileStorage(tmp_path / "artifacts"),
        "S3Storage": S3Storage(BUCKET, "fuzzed", **server.settings()),
    }
    offloader = Offloader(storages[name])
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
    assert set(seen) <= {
        "unknown",
        "expired",
        "refused",
        "the real one, from another scope: unknown",
    }
    assert seen["unknown"] > COUNT
    assert offloader.load(real, scope="mine").text == text


def ask(offloader: Offloader, reference: str, scope: str) -> str:
    """Return how a read ends."""
    try:
        offloader.load(reference, scope=scope)
    except ReferenceExpired:
        return "expired"
    except ReferenceNotFound:
        return "unknown"
    except InvalidRequest:
        return "refused"
    except CoatcheckError as error:
        return f"failed: {error!r}"
    return f"read: {reference!r}"
