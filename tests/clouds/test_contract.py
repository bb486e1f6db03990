"""FsspecBridge passes the whole storage contract on Azure, on Google Cloud Storage and over SFTP."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from gcsfs import GCSFileSystem

from coatcheck.storage import FsspecBridge
from coatcheck.testing import DeletesContract, ListsContract, ListsPagesContract, ReadsRangesContract, StorageContract
from tests.clouds.servers import BUCKET, azure
from tests.storage.aging import Aging, Clock
from tests.storage.sftp_server import running_sftp, sftp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # on fsspec's loop

NUMBERS = count()


class Contract(Aging, StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    """The contracts that the bridge must keep. Subclasses choose the filesystem."""


class TestAzure(Contract):
    listed_entries = 5_100  # Azure lists 5,000 per request

    @pytest.fixture
    def storage(self, azurite: int) -> FsspecBridge:
        self.clock = Clock()
        return FsspecBridge(azure(azurite), f"{BUCKET}/contract-{next(NUMBERS)}", clock=self.clock)


class TestGoogleCloud(Contract):
    @pytest.fixture
    def storage(self, google: str) -> FsspecBridge:
        self.clock = Clock()
        filesystem = GCSFileSystem(project="any", token="anon", endpoint_url=google)  # noqa: S106 - no secret
        return FsspecBridge(filesystem, f"{BUCKET}/contract-{next(NUMBERS)}", clock=self.clock)


@pytest.fixture(scope="module")
def sftp_port() -> Iterator[int]:
    with running_sftp() as port:
        yield port


class TestSFTP(Contract):
    @pytest.fixture
    def storage(self, sftp_port: int, tmp_path: Path) -> FsspecBridge:
        self.clock = Clock()
        return FsspecBridge(sftp(sftp_port), str(tmp_path / "artifacts"), clock=self.clock)
