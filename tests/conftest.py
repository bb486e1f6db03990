"""Strict settings for every test, and setup once per process, so that the order of tests does not matter.

Hypothesis tries the same examples in every run, so a red test means that the change is wrong. This file sets their
number for all tests: few by default, many with ``HYPOTHESIS_PROFILE=thorough``, which ``nox -s thorough`` sets, and new
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

# No deadline: the first call in a process loads a vocabulary, and a test must not fail because a machine is busy.
settings.register_profile("same", deadline=None, derandomize=True, database=None, print_blob=True, max_examples=50)
settings.register_profile("thorough", settings.get_profile("same"), max_examples=400)
settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


OF_THE_SOURCES = Path(__file__).parent / "meta"

gc.disable()  # until all is imported and collected: nearly all of that stays, so there is no garbage to find


def pytest_collection_finish() -> None:
    """Exclude thousands of collected tests, and what they imported, from every later garbage collection.

    Each collection took a fifth of a second to scan them. That was an eighth of the core tests' time.
    """
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Trace only tests that may cover new lines: tracing doubles the time of a test, its fixtures and pytest itself.

    A property test runs lines that example tests cover, fifty times over. Tests that read the sources run no line that
    other tests miss. The mark ``no_cover`` is not enough: fixtures and pytest's own code would still be traced.
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
    """Let every HTTP client load one certificate authority instead of all. No test needs any.

    Strands makes a client for each request to a model, and reading all authorities takes 65 ms of CPU time.
    """
    with pytest.MonkeyPatch.context() as patch:
        for authority in ssl.create_default_context().get_ca_certs(binary_form=True)[:1]:  # some systems have none
            path = tmp_path_factory.mktemp("authorities") / "one.pem"
            path.write_text(ssl.DER_cert_to_PEM_cert(authority), encoding="ascii")
            patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_module_is_run() -> Iterator[None]:
    """Pretend to be a script under ``python -m pytest``, or commands would be shown as ``python -m coatcheck``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["pytest", *sys.argv[1:]])
        yield


@pytest.fixture(autouse=True)
def default_scope_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the warning about the default scope out of the logs of unrelated tests."""
    monkeypatch.setattr(scopes, "_unwarned", [])
