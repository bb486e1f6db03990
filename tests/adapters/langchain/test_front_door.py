"""What ``import coatcheck_langchain`` loads and exports, and the error when something is not installed."""

from __future__ import annotations

import pytest

import coatcheck_langchain
from tests.adapters.front_doors import python

NEEDS_LANGGRAPH = ("ClearToolUsesEdit", "OffloadMiddleware", "offload_tool_calls")
NEEDS_CORE_ONLY = (
    "arestore_artifact",
    "offload_tool",
    "offload_tool_node",
    "offloaded_references",
    "restore_artifact",
    "retrieval_tool",
)


def test_without_langchain_core_the_error_names_the_extra_that_brings_it_and_langgraph() -> None:
    done = python("import coatcheck_langchain", without=("langchain_core",))

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError:")
    assert 'pip install "/path/to/checkout[langgraph]"' in last
    assert "The above exception was the direct cause" in done.stderr


@pytest.mark.parametrize("name", NEEDS_LANGGRAPH)
@pytest.mark.parametrize("missing", [("langchain", "langgraph"), ("langgraph",)])
def test_without_langgraph_the_error_names_the_extra(name: str, missing: tuple[str, ...]) -> None:
    done = python(f"from coatcheck_langchain import {name}", without=missing)

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {name} needs")
    assert 'pip install "/path/to/checkout[langgraph]"' in last


@pytest.mark.parametrize("name", NEEDS_CORE_ONLY)
def test_langchain_core_alone_is_enough_for_the_rest(name: str) -> None:
    done = python(f"from coatcheck_langchain import {name}", without=("langchain", "langgraph"))

    assert done.returncode == 0, done.stderr


def test_every_public_name_is_tested_here() -> None:
    assert sorted((*NEEDS_LANGGRAPH, *NEEDS_CORE_ONLY)) == sorted(coatcheck_langchain.__all__)


def test_the_import_alone_loads_as_little_as_possible() -> None:
    heavy = ("langchain_core.messages", "langchain_core.tools", "langchain", "langgraph", "tiktoken", "re2", "orjson")

    done = python(f"import sys, coatcheck_langchain; print([name for name in {heavy!r} if name in sys.modules])")

    assert done.stdout.strip() == "[]", done.stderr


def test_the_references_of_a_message_need_no_tools() -> None:
    done = python(
        "import sys; from coatcheck_langchain import offloaded_references; print('langchain_core.tools' in sys.modules)"
    )

    assert done.stdout.strip() == "False", done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(coatcheck_langchain, "no_such_name")


def test_dir_lists_the_public_names() -> None:
    assert set(coatcheck_langchain.__all__) <= set(dir(coatcheck_langchain))
