"""One server of each kind for all tests here. gcsfs must not ask for a bucket's type, which no emulator knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

is_here = "COATCHECK_AZURITE" in os.environ
collect_ignore_glob = [] if is_here else ["test_*.py"]


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    from tests.clouds.servers import running_azurite  # noqa: PLC0415 - `nox -s clouds` installs its libraries

    with running_azurite(tmp_path_factory.mktemp("azurite")) as port:
        yield port


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.clouds.servers import running_google  # noqa: PLC0415 - as above

    with running_google(tmp_path_factory.mktemp("google")) as address:
        yield address
