"""The storage that CONTRIBUTING.md shows is whole: its own test, as shown, passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.mark.skipif(not CONTRIBUTING.is_file(), reason="the wheel is tested away from the repository's prose")
def test_the_storage_of_the_documentation_passes_the_contract(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "test_shown.py").write_text("\n\n".join(blocks), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "test_shown.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(blocks) == 2
    assert done.returncode == 0, done.stdout
