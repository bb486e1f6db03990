"""Prints what the fault tests measure at the end of the run, `nox -s faults`. docs/faults.md holds one such run."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.storage.seaweed import Server

EVERY_STORAGE = ("boto3", "fsspec", "haystack", "langgraph", "strands")

collect_ignore = [
    *([] if find_spec("boto3") is not None else ["test_bad_network.py", "test_silent_server.py"]),
    *([] if all(map(find_spec, EVERY_STORAGE)) else ["test_fuzzed_references.py"]),
]

FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Return a function that collects lines to print when all tests are done."""
    return request.config.stash.setdefault(FIGURES, []).append


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    from tests.storage.seaweed import running_server  # noqa: PLC0415 - needs the extra, which not every test here does

    with running_server(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the lines that the tests collected."""
    terminalreporter.section("figures")
    for line in config.stash.get(FIGURES, []):
        terminalreporter.line(line)
