"""What importing an adapter loads and exports, and the error without its framework: the tests of all adapters."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import ClassVar

__all__ = ("FRAMEWORKS", "FrontDoor", "python")

FRAMEWORKS = {
    "agent_framework",
    "agents",
    "haystack",
    "langchain",
    "langchain_core",
    "langgraph",
    "pydantic_ai",
    "strands",
}

BLOCK = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(f"{{name}}.".startswith(f"{{blocked}}.") for blocked in {blocked!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def python(code: str, *, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, as if the modules ``without`` were not installed."""
    script = BLOCK.format(blocked=without) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


class FrontDoor:
    """The import tests of one adapter. Subclass it and set the attributes."""

    package: ClassVar[str]

    framework: ClassVar[str]
    """The module that the adapter needs."""

    extra: ClassVar[str]

    unwanted: ClassVar[set[str]] = FRAMEWORKS
    """The packages that the adapter must not load, except its own framework."""

    def test_without_the_framework_the_error_names_the_extra(self) -> None:
        done = python(f"import {self.package}", without=(self.framework,))

        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError:"), done.stderr
        assert f'pip install "/path/to/checkout[{self.extra}]"' in last
        assert "The above exception was the direct cause" in done.stderr

    def test_every_public_name_exists(self) -> None:
        package = import_module(self.package)

        assert set(package.__all__) <= set(dir(package))
        assert all(getattr(package, name) for name in package.__all__)

    def test_an_unknown_name_is_an_attribute_error(self) -> None:
        assert not hasattr(import_module(self.package), "no_such_name")

    def test_importing_the_adapter_loads_no_other_framework(self) -> None:
        done = python(
            f"import sys, {self.framework}\nbefore = set(sys.modules)\nimport {self.package} as c\n"
            "[getattr(c, name) for name in c.__all__]\nprint(*(set(sys.modules) - before))"
        )

        loaded = {name.partition(".")[0] for name in done.stdout.split()}
        assert self.package in loaded, done.stderr
        assert not loaded & (self.unwanted - {self.framework}), loaded & self.unwanted
