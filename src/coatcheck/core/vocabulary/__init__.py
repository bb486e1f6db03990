"""The vocabularies that token counters need, loaded once per process and never over the network.

``o200k_base.tiktoken.gz`` next to this file holds the ranks that OpenAI publishes for tiktoken, byte for byte (MIT, see
``LICENSE-o200k_base``); its checksum is the one that tiktoken itself requires. Other encodings come from tiktoken's
cache on disk. Only loading belongs here; modules that only loading needs are imported when something is loaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import ForkSafeLock, loading

if TYPE_CHECKING:
    import tiktoken

__all__ = ("BUNDLED", "Vocabulary", "check_available", "download_encoding", "load_vocabulary", "wrap_encoding")

BUNDLED = "o200k_base"
"""The encoding that ships with this package: that of GPT-4o and later models."""

BUNDLED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The digest of the unpacked ranks; ``tiktoken_ext.openai_public`` has the same value."""

# The split pattern and special tokens of o200k_base, as tiktoken_ext.openai_public defines them.
# tests/core/test_vocabulary.py compares them with the installed tiktoken.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _CONTRACTIONS,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _CONTRACTIONS,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_O200K_SPECIAL_TOKENS = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}

_RANKS_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# Which published rank file each other encoding needs, and its SHA-256, from tiktoken_ext.openai_public.
_PUBLISHED_RANKS = {
    "cl100k_base": ("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    "o200k_harmony": ("o200k_base", BUNDLED_SHA256),
    "p50k_base": ("p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "p50k_edit": ("p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "r50k_base": ("r50k_base", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A loaded encoding."""

    encoding: tiktoken.Encoding
    """tiktoken's own object."""

    longest_token: int
    """The most UTF-8 bytes that one token covers: 128 in o200k_base, which has a token of that many spaces."""


_lock = ForkSafeLock()
_loaded: dict[str, Vocabulary] = {}


def check_available(name: object) -> str:
    """Return ``name`` if its ranks are on this machine, without loading them.

    Raises:
        InvalidRequest: they are not, or no such encoding is known.

    """
    if name == BUNDLED:
        return BUNDLED
    if not isinstance(name, str) or name not in _PUBLISHED_RANKS:
        known = ", ".join((BUNDLED, *_PUBLISHED_RANKS))
        msg = f"encoding must be one of {known}, or a ready tiktoken.Encoding, not {name!r}"
        raise InvalidRequest(msg)
    with loading:
        import hashlib  # noqa: PLC0415 - loads OpenSSL, and the encoding that ships with this package is not checked

    ranks, checksum = _PUBLISHED_RANKS[name]
    cached = _cache_path(ranks)
    # tiktoken fetches a missing or damaged file without asking; so the file is checked before tiktoken sees its name.
    if not cached.is_file() or hashlib.sha256(cached.read_bytes()).hexdigest() != checksum:
        msg = (
            f"the ranks of {name!r} are not in tiktoken's cache on this machine: call"
            f" TiktokenCounter.download({name!r}) once where the network may be used, or take {BUNDLED!r}, which ships"
            " with coatcheck"
        )
        raise InvalidRequest(msg)
    return name


@cache
def load_vocabulary(name: str) -> Vocabulary:
    """Return the vocabulary of encoding ``name``, loading it at the first call: 0.3 s for o200k_base.

    Raises:
        InvalidRequest: its ranks are not on this machine.

    """
    # Threads that first need it at the same time meet here: the cache calls this for each, and only one loads it.
    with _lock.held, loading:  # a fork waits for all of it, so no child finds tiktoken's own lock held
        if name not in _loaded:
            import tiktoken  # noqa: PLC0415 - 150 ms, and results that stay small never need it

            if check_available(name) == BUNDLED:
                ranks = _bundled_ranks()
                encoding = tiktoken.Encoding(
                    BUNDLED,
                    pat_str=_O200K_PATTERN,
                    mergeable_ranks=ranks,
                    special_tokens=_O200K_SPECIAL_TOKENS,
                )
                ranks.clear()  # tiktoken keeps this dict for pickling only, and it takes 29 MB
            else:
                encoding = tiktoken.get_encoding(name)
            _loaded[name] = wrap_encoding(encoding)
        return _loaded[name]


def wrap_encoding(encoding: tiktoken.Encoding) -> Vocabulary:
    """Return the vocabulary of a loaded encoding."""
    return Vocabulary(encoding, max(map(len, encoding.token_byte_values())))


def download_encoding(name: str) -> None:
    """Let tiktoken fetch the ranks of encoding ``name`` into its cache on disk.

    Raises:
        InvalidRequest: tiktoken knows no such encoding.
        OSError: the network or the cache failed.

    """
    with loading:
        import tiktoken  # noqa: PLC0415 - see load_vocabulary

    try:
        tiktoken.get_encoding(name)
    except ValueError as error:
        msg = f"tiktoken knows no encoding {name!r}"
        raise InvalidRequest(msg) from error


def _bundled_ranks() -> dict[bytes, int]:
    # Slow imports that nothing else here needs.
    with loading:
        import base64  # noqa: PLC0415
        import gzip  # noqa: PLC0415
        import io  # noqa: PLC0415
        from importlib.resources import files  # noqa: PLC0415

        packed = files(__package__).joinpath(f"{BUNDLED}.tiktoken.gz").read_bytes()
    ranks = {}
    # Line by line: dict(map(...)) takes two thirds of the time, but lets no other thread run.
    for line in io.BytesIO(gzip.decompress(packed)):  # one at a time: a list of all lines takes 14 MB
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return ranks


def _cache_path(ranks: str) -> Path:
    """Return where tiktoken keeps a rank file: computed as in ``tiktoken.load.read_file_cached``."""
    with loading:
        import hashlib  # noqa: PLC0415
        import tempfile  # noqa: PLC0415 - see _bundled_ranks

    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    root = Path(folder) if folder else Path(tempfile.gettempdir(), "data-gym-cache")
    return root / hashlib.sha1(_RANKS_URL.format(ranks).encode(), usedforsecurity=False).hexdigest()
