"""The public names: one changed import, the thin module for Haystack's YAML, and the error without the extra."""

from __future__ import annotations

import subprocess
import sys

import haystack.hooks.tool_result_offloading as upstream
import pytest

import coatcheck_haystack
import haystack_integrations.hooks.coatcheck as thin

SWITCHED = (
    "RESULT_STORE_CONTEXT_KEY",
    "AlwaysOffload",
    "FileSystemToolResultStore",
    "NeverOffload",
    "OffloadOverChars",
    "OffloadPolicy",
    "ToolResultOffloadHook",
    "ToolResultStore",
)


def test_every_name_of_haystacks_own_module_is_offered() -> None:
    assert set(SWITCHED) <= set(dir(coatcheck_haystack))
    assert all(hasattr(upstream, name) and hasattr(coatcheck_haystack, name) for name in SWITCHED)


def test_every_name_is_there_and_no_other() -> None:
    assert all(getattr(coatcheck_haystack, name) is not None for name in coatcheck_haystack.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ContextOffloader'"):
        _ = coatcheck_haystack.ContextOffloader


def test_serialized_names_are_found_in_the_module_that_they_name() -> None:
    for name in thin.__all__:
        assert getattr(thin, name) is getattr(coatcheck_haystack, name)
        assert getattr(thin, name).__module__ == "haystack_integrations.hooks.coatcheck"


def test_the_shared_packages_stay_namespace_packages() -> None:
    for name in ("haystack_integrations", "haystack_integrations.hooks"):
        assert getattr(sys.modules[name], "__file__", None) is None


def test_without_haystack_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['haystack'] = None; import coatcheck_haystack"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert 'pip install "/path/to/checkout[haystack]"' in ran.stderr
