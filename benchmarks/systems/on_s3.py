"""With content in an S3 bucket: Strands' own plugin, ours, and bare puts as the least.

The variables that boto3 reads from the environment say where the server is.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from benchmarks.systems.core import Coatcheck
from benchmarks.systems.in_strands import CoatcheckInStrands, Strands
from benchmarks.systems.system import System
from coatcheck import S3Storage

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("BUCKET", "CoatcheckInStrandsOnS3", "CoatcheckOnS3", "LeastOnS3", "StrandsOnS3")

BUCKET = os.environ.get("BENCHMARKS_BUCKET", "benchmarks")

THREADS = 16
"""As many as in coatcheck's thread pool for networks."""


class LeastOnS3(System):
    """boto3's ``put_object``, on threads."""

    distributions = ("boto3",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._client = boto3.client("s3", config=Config(max_pool_connections=THREADS))
        self._threads = ThreadPoolExecutor(THREADS)
        self._client.head_bucket(Bucket=BUCKET)  # opens a connection, as the others start with one
        self._puts = 0

    async def aoffload(self, text: str) -> str:
        """Encode and put."""
        self._puts += 1
        key = f"{self.folder.name}/{self._puts}"

        def put() -> str:
            self._client.put_object(Bucket=BUCKET, Key=key, Body=text.encode(), ContentType="text/plain")
            return ""

        return await asyncio.get_running_loop().run_in_executor(self._threads, put)


class CoatcheckOnS3(Coatcheck):
    """``Offloader`` with ``S3Storage``."""

    def make_storage(self) -> S3Storage:
        """Return a connected storage."""
        storage = S3Storage(BUCKET, self.folder.name)
        storage.load(f"{'0' * 16}/{'0' * 16}")
        return storage


class StrandsOnS3(Strands):
    """Strands' own plugin and storage."""

    def make_storage(self, module: Any) -> Any:  # noqa: ANN401 - a module of either library
        """Return the library's own storage."""
        return module.S3Storage(BUCKET, self.folder.name)


class CoatcheckInStrandsOnS3(StrandsOnS3):
    """Our plugin and storage in their place."""

    distributions = CoatcheckInStrands.distributions
    library = CoatcheckInStrands.library

    def make_storage(self, module: Any) -> Any:  # noqa: ANN401 - a module of either library
        """Return a connected storage, as Strands' own is once created."""
        storage = super().make_storage(module)
        storage.load(f"{'0' * 16}/{'0' * 16}")
        return storage
