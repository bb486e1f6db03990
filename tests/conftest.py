"""Strictness for every test, and what a process does once: the same for each test, in whatever order they run.

Hypothesis tries the same examples in every run, so that a red test means that the change is wrong. How many is decided
here for all tests: few in the proof, many with ``HYPOTHESIS_PROFILE=thorough``, which ``nox -s thorough`` sets, and new
ones with ``HYPOTHESIS_PROFILE=explore``.
"""

from __future__ import annotations

import gc
import os
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from coatcheck import scopes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# No deadline: the first call in a process loads a vocabulary, and a busy machine is no failure.
settings.register_profile("same", deadline=None, derandomize=True, database=None, print_blob=True, max_examples=50)
settings.register_profile("thorough", settings.get_profile("same"), max_examples=400)
settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


OF_THE_SOURCES = Path(__file__).parent / "meta"

gc.disable()  # until all is imported and collected: nearly all of it stays, so looking for what does not is in vain


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests, and what they imported, out of every later collection of garbage.

    Each took a fifth of a second to look through them, an eighth of all time of the tests of the core.
    """
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Trace for coverage only what may run new lines: it doubles the time of a test, of its fixtures and of pytest.

    A property runs fifty times the lines that examples cover. Tests of the sources run nothing that others do not run.
    The mark ``no_cover`` would leave fixtures and pytest's own code traced.
    """
    plugin = item.config.pluginmanager.getplugin("_cov")
    controller = plugin.cov_controller if plugin else None
    is_traced = not (item.get_closest_marker("hypothesis") or OF_THE_SOURCES in item.path.parents)
    if controller is None or is_traced:
        return (yield)
    controller.pause()
    try:
        return (yield)
    finally:
        controller.resume()


@pytest.fixture(scope="session", autouse=True)
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let every HTTP client know one authority in place of all: no test talks to any.

    Strands makes a client for each request to a model, which takes 65 ms of processor to read them all.
    """
    with pytest.MonkeyPatch.context() as patch:
        for authority in ssl.create_default_context().get_ca_certs(binary_form=True)[:1]:  # none on some systems
            path = tmp_path_factory.mktemp("authorities") / "one.pem"
            path.write_text(ssl.DER_cert_to_PEM_cert(authority), encoding="ascii")
            patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_module_is_run() -> Iterator[None]:
    """Name this program as its script, also under ``python -m pytest``: commands are shown as theirs was typed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["pytest", *sys.argv[1:]])
        yield


@pytest.fixture(autouse=True)
def default_scope_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the warning about the default scope out of the logs of tests that are about something else."""
    monkeypatch.setattr(scopes, "_unwarned", [])
