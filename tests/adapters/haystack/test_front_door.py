"""The public names: one changed import, the thin module for Haystack's YAML, and the error without the extra."""

from __future__ import annotations

import sys

import haystack.hooks.tool_result_offloading as upstream

import coatcheck_haystack
import haystack_integrations.hooks.coatcheck as thin
from tests.adapters.front_doors import FrontDoor

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


class TestHaystack(FrontDoor):
    package = "coatcheck_haystack"
    framework = "haystack"
    extra = "haystack"


def test_every_name_of_haystacks_own_module_is_exported() -> None:
    assert set(SWITCHED) <= set(dir(coatcheck_haystack))
    assert all(hasattr(upstream, name) and hasattr(coatcheck_haystack, name) for name in SWITCHED)


def test_serialized_names_are_found_in_the_module_that_they_name() -> None:
    for name in thin.__all__:
        assert getattr(thin, name) is getattr(coatcheck_haystack, name)
        assert getattr(thin, name).__module__ == "haystack_integrations.hooks.coatcheck"


def test_the_shared_packages_stay_namespace_packages() -> None:
    for name in ("haystack_integrations", "haystack_integrations.hooks"):
        assert getattr(sys.modules[name], "__file__", None) is None
