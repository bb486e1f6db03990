"""Errors of somebody else's code become ours in one place, with their cause and without what they may quote."""

from __future__ import annotations

import errno

import pytest

from coatcheck import CorruptContent, InvalidRequest, StorageError
from coatcheck.core.errors import ForeignCall


class _S:
    def __repr__(self) -> str:
        return "S"


def test_a_foreign_error_becomes_ours_and_is_its_cause() -> None:
    with pytest.raises(StorageError) as raised, ForeignCall(_S(), "load 'k'"):
        raise OSError(errno.EIO, "Input/output error")

    assert str(raised.value) == "S could not load 'k': OSError: [Errno 5] Input/output error"
    assert isinstance(raised.value.__cause__, OSError)


def test_only_the_systems_words_are_repeated() -> None:
    with pytest.raises(StorageError, match=r"^S could not load: ValueError$"), ForeignCall(_S(), "load"):
        raise ValueError("content that was quoted")  # noqa: EM101, TRY003 - the words are the test


def test_a_storage_may_say_what_its_errors_may_repeat() -> None:
    with (
        pytest.raises(InvalidRequest, match=r"^S could not load: its own words$"),
        ForeignCall(_S(), "load", failure=InvalidRequest, describe=str),
    ):
        raise ValueError("its own words")  # noqa: EM101, TRY003 - as above


@pytest.mark.parametrize("error", [CorruptContent("ours"), KeyboardInterrupt()])
def test_errors_of_ours_and_interrupts_pass_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, ForeignCall(_S(), "load"):
        raise error

    assert raised.value is error


def test_a_generators_end_does_not_pass() -> None:
    with pytest.raises(StorageError, match="StopIteration"), ForeignCall(_S(), "load"):
        raise StopIteration
