"""The CI workflow runs sessions of noxfile.py, on the Pythons that pyproject.toml names, with read access only."""

from __future__ import annotations

import ast
import re

from tests.meta.source_tree import ROOT, pyproject

WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
CLASSIFIER = "Programming Language :: Python :: 3."


def test_every_session_that_the_workflow_runs_exists() -> None:
    nodes = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
    sessions = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.decorator_list}
    run = re.findall(r"nox -s (\w+)", WORKFLOW)

    assert {"tests", "matrix"} <= set(run) <= sessions


def test_the_workflow_runs_every_supported_python() -> None:
    project = pyproject()["project"]
    assert isinstance(project, dict)
    supported = [f"3.{name.removeprefix(CLASSIFIER)}" for name in project["classifiers"] if name.startswith(CLASSIFIER)]
    (listed,) = re.findall(r"python: \[(.*)\]", WORKFLOW)

    assert re.findall(r"[\d.]+", listed) == supported


def test_the_workflow_has_only_read_access() -> None:
    assert re.findall(r"^permissions:\n((?:  .*\n)+)", WORKFLOW, re.MULTILINE) == ["  contents: read\n"]
    assert WORKFLOW.count("permissions:") == 1
    assert WORKFLOW.count("actions/checkout@") == WORKFLOW.count("persist-credentials: false")


def test_every_action_is_pinned_to_a_major_version() -> None:
    used = re.findall(r"uses: (\S+)", WORKFLOW)

    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action)] == []
