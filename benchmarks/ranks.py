"""Put the ranks that peers would download where tiktoken looks for them, so that peers count as in production.

They come from the wheel ``bpe-openai``, and are byte for byte what OpenAI publishes; tiktoken verifies their checksums.
"""

from __future__ import annotations

import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path

__all__ = ("cache_ranks",)

_PUBLISHED = "https://openaipublic.blob.core.windows.net/encodings"
_ENCODINGS = ("cl100k_base", "o200k_base")


def cache_ranks(folder: Path) -> dict[str, str]:
    """Fill ``folder`` as tiktoken's cache, and return the environment variables that point to it."""
    spec = find_spec("bpe_openai")  # not imported, because only its data is needed
    assert spec is not None
    assert spec.origin is not None
    folder.mkdir()
    for name in _ENCODINGS:
        ranks = gzip.decompress((Path(spec.origin).parent / f"data/{name}.tiktoken.gz").read_bytes())
        cached = hashlib.sha1(f"{_PUBLISHED}/{name}.tiktoken".encode(), usedforsecurity=False).hexdigest()
        (folder / cached).write_bytes(ranks)
    return {"TIKTOKEN_CACHE_DIR": str(folder)}
