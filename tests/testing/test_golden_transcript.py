"""The conversation that each framework's session plays: what the core makes of it today."""

from __future__ import annotations

import json

from tests.contract.golden import FILE, made


def test_the_core_makes_the_committed_transcript() -> None:
    again = "python -m tests.contract.golden > tests/contract/golden.json"
    assert made() == json.loads(FILE.read_text(encoding="utf-8")), f"if models are meant to read other words: {again}"
