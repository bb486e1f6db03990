"""Each deliberate fault of ``tests.mutations`` still matches its code: when code moves, its fault must follow."""

from __future__ import annotations

import pytest

from tests.meta.source_tree import ROOT
from tests.mutations.catalogue import MUTATIONS, Mutation

LEAST = 40
"""Fewer faults than this mean that the catalogue is not read."""


def name_of(mutation: Mutation) -> str:
    return f"{mutation.file}: {mutation.old}"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=name_of)
def test_a_fault_replaces_code_that_occurs_once_and_names_tests_that_exist(mutation: Mutation) -> None:
    code = (ROOT / "src/coatcheck" / mutation.file).read_text(encoding="utf-8")

    assert code.count(mutation.old) == 1
    assert mutation.old != mutation.new
    assert [test for test in mutation.tests if not (ROOT / "tests" / test).exists()] == []


def test_there_are_many_faults() -> None:
    assert len(MUTATIONS) >= LEAST
