"""The environments of the systems: one for each framework or peer, because their requirements conflict.

An environment holds this project with the extra of that name, if there is one, and the dependency group
``bench-<name>`` of pyproject.toml, if there is one. ``core`` is the environment in which the benchmark itself runs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("CORE", "Environments", "prepare")

CORE = "core"
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".nox/bench-environments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """The Python of each installed environment, and why the others are missing."""

    pythons: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def prepare(names: Iterable[str], *, folder: Path = FOLDER) -> Environments:
    """Create the environments, or update them to what the package index has now."""
    found = Environments()
    for name in dict.fromkeys(names):
        python = folder / name / "bin/python"
        if name == CORE:
            found.pythons[name] = sys.executable
            continue
        print(f"installing {name} ...", flush=True)
        try:
            _uv("venv", "--quiet", "--allow-existing", f"--python={sys.executable}", str(folder / name))
            _uv("pip", "install", "--quiet", "--upgrade", f"--python={python}", *_requirements(name))
            found.pythons[name] = str(python)
        except subprocess.CalledProcessError as error:
            found.reasons[name] = f"could not be installed: {_cause(error.stderr)}"
    return found


def _requirements(name: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = [f"--editable={ROOT}[{name}]"] if name in project["project"]["optional-dependencies"] else []
    group = (
        [f"--group={ROOT / 'pyproject.toml'}:bench-{name}"] if f"bench-{name}" in project["dependency-groups"] else []
    )
    return [*extra, *group]


def _uv(*arguments: str) -> None:
    installed = Path(sys.executable).with_name("uv")
    program = str(installed) if installed.exists() else "uv"
    subprocess.run([program, *arguments], check=True, capture_output=True, text=True)  # noqa: S603 - a fixed program


def _cause(said: str) -> str:
    """Return the first two lines of uv's output, which say what went wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return re.sub(r"\s+", " ", " ".join(lines[:2])) if lines else "uv said nothing"
