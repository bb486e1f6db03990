"""These tests need the servers of other packages, which ``nox -s deployed`` installs."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("langgraph_api") and find_spec("hayhooks") else ["test_*.py"]
