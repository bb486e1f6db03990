"""The committed conversation that each framework's session plays is still what the core produces."""

from __future__ import annotations

import json

from tests.contract.golden import FILE, made


def test_the_core_produces_the_committed_transcript() -> None:
    again = "if models are meant to read other words: python -m tests.docs.rewrite"
    assert made() == json.loads(FILE.read_text(encoding="utf-8")), again
