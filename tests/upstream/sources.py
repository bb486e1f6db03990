"""Source distributions of frameworks, for the tests that they contain."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("fetched",)


def fetched(package: str, version: str, folder: Path) -> Path:
    """Fetch and unpack the source distribution of a package's version; return its folder."""
    fetch = ["pip", "download", "--quiet", "--no-deps", f"--no-binary={package}", f"--dest={folder}"]
    subprocess.run([sys.executable, "-m", *fetch, f"{package}=={version}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())
