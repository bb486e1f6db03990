"""What ``import coatcheck_pydantic_ai`` loads and offers, and what it says when something is not installed."""

from __future__ import annotations

import subprocess
import sys

import coatcheck_pydantic_ai

BLOCK = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def test_without_the_framework_the_error_names_the_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{BLOCK}import coatcheck_pydantic_ai"], capture_output=True, text=True, check=False
    )

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError:")
    assert 'pip install "/path/to/checkout[pydantic-ai]"' in last
    assert "The above exception was the direct cause" in done.stderr


def test_every_name_is_there() -> None:
    assert set(coatcheck_pydantic_ai.__all__) <= set(dir(coatcheck_pydantic_ai))
    assert all(getattr(coatcheck_pydantic_ai, name) for name in coatcheck_pydantic_ai.__all__)


def test_another_name_is_an_attribute_error() -> None:
    assert not hasattr(coatcheck_pydantic_ai, "OffloadMiddleware")


def test_importing_it_loads_no_other_framework_and_no_model() -> None:
    script = (
        "import pydantic_ai, pydantic_ai.capabilities, sys\nbefore = set(sys.modules)\n"
        "import coatcheck_pydantic_ai as c; [getattr(c, n) for n in c.__all__]; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "coatcheck_pydantic_ai" in loaded
    assert not loaded & {
        "agents",
        "fastmcp",
        "haystack",
        "langchain",
        "langchain_core",
        "langgraph",
        "openai",
        "strands",
    }
