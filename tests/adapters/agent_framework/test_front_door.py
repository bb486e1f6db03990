"""What ``import coatcheck_agent_framework`` loads and offers, and what it says when something is not installed."""

from __future__ import annotations

import subprocess
import sys

import coatcheck_agent_framework

BLOCK = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "agent_framework":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def test_without_the_framework_the_error_names_the_extra() -> None:
    code = f"{BLOCK}import coatcheck_agent_framework"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError:")
    assert 'pip install "/path/to/checkout[agent-framework]"' in last
    assert "The above exception was the direct cause" in done.stderr


def test_every_name_is_there() -> None:
    assert set(coatcheck_agent_framework.__all__) <= set(dir(coatcheck_agent_framework))
    assert all(getattr(coatcheck_agent_framework, name) for name in coatcheck_agent_framework.__all__)


def test_another_name_is_an_attribute_error() -> None:
    assert not hasattr(coatcheck_agent_framework, "OffloadMiddleware")
