"""Leaves out the tests of storages whose client library is not installed; nox has a session for each."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("boto3") is not None else ["s3", "seaweed.py"]
