"""What ``import coatcheck_strands`` loads and offers, and what it says when something is not installed."""

from __future__ import annotations

import subprocess
import sys

import coatcheck_strands

BLOCK = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "strands":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def test_without_strands_the_error_names_the_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{BLOCK}import coatcheck_strands"], capture_output=True, text=True, check=False
    )

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError:")
    assert 'pip install "/path/to/checkout[strands]"' in last
    assert "The above exception was the direct cause" in done.stderr


def test_every_name_is_there() -> None:
    assert set(coatcheck_strands.__all__) <= set(dir(coatcheck_strands))
    assert all(getattr(coatcheck_strands, name) for name in coatcheck_strands.__all__)


def test_another_name_is_an_attribute_error() -> None:
    assert not hasattr(coatcheck_strands, "OffloadMiddleware")


def test_importing_it_loads_no_other_framework() -> None:
    script = "import coatcheck_strands as c, sys; [getattr(c, n) for n in c.__all__]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "strands" in loaded
    assert not loaded & {"langchain", "langchain_core", "langgraph", "haystack"}
