"""The error tree, split by who must act.

    CoatcheckError
    ├── InvalidRequest      the caller: an argument is wrong; nothing was done and nothing was lost
    ├── ReferenceNotFound   the model: this scope never had such a reference
    │   └── ReferenceExpired    the model: it had one, and the content is gone
    └── StorageError        the operator: the storage failed; the tool result stayed in the conversation
        └── CorruptContent      the operator: stored bytes are not the bytes that were saved

Each error has the values that its reader needs as attributes. Messages name the wrong value with ``!r`` and say what to
do. Anything else that leaves this library is a bug, so ``ForeignCall`` turns the errors of backends into ours: for the
storages here and, in ``engine.execution``, for those that users write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.notice import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = (
    "LONGEST_NUMBER",
    "CoatcheckError",
    "CorruptContent",
    "ForeignCall",
    "InvalidRequest",
    "ReferenceExpired",
    "ReferenceNotFound",
    "StorageError",
    "describe_error",
    "describe_value",
)

LONGEST_NUMBER = 15
"""Digits of a number that a message repeats. Python refuses to write an int of more than 4,300."""

_LONGEST_VALUE = 60
"""Characters of a value that a message repeats."""


class CoatcheckError(Exception):
    """Base of every error that this library raises on purpose."""

    @property
    def for_model(self) -> str:
        """The message to show a model when its request raised this error: without paths and names of backends."""
        return str(self).encode("utf-8", "replace").decode("utf-8")  # clients refuse lone surrogates


class InvalidRequest(CoatcheckError, ValueError):
    """An argument is wrong. The message says which one, and what is accepted."""


class ReferenceNotFound(CoatcheckError, LookupError):
    """No content was ever stored under this reference in this scope.

    A reference of another scope raises exactly this, with the same message: a scope cannot find out what others hold.
    """

    def __init__(self, message: str, *, reference: str = "") -> None:
        super().__init__(message)
        self.reference = reference


class ReferenceExpired(ReferenceNotFound):
    """The reference belongs to this scope, but its content was deleted or pushed out by a storage limit."""


class StorageError(CoatcheckError):
    """A storage could not save, load or delete. ``__cause__`` carries the backend's own exception."""

    @property
    def for_model(self) -> str:
        """The message to show a model, without the backend's words, which may contain paths and addresses."""
        return UNREADABLE


class CorruptContent(StorageError):
    """Stored bytes differ from what was saved. They are never returned."""


class ForeignCall:
    """A ``with`` block around a call of somebody else's code: whatever the call raises leaves it as one of our errors.

    Errors of ours pass unchanged, and so does what is no ``Exception``, such as ``KeyboardInterrupt``.
    """

    __slots__ = ("_describe", "_failed", "_failure")

    def __init__(
        self,
        failed: str,
        *,
        failure: type[CoatcheckError] = StorageError,
        describe: Callable[[Exception], str] | None = None,
    ) -> None:
        """Prepare the error.

        Args:
            failed: how its message begins, such as ``"S3Storage('b') could not load 'k'"``.
            failure: its class.
            describe: returns what the message repeats of the original error; None means ``describe_error``.

        """
        self._failed = failed
        self._failure = failure
        self._describe = describe_error if describe is None else describe

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Raise the ``failure`` if the block raised a foreign error, which becomes its ``__cause__``."""
        if isinstance(error, Exception) and not isinstance(error, CoatcheckError):
            msg = f"{self._failed}: {self._describe(error)}"
            raise self._failure(msg) from error


def describe_error(error: Exception) -> str:
    """Return what may be repeated of a foreign error: its class and the system's words; others may quote content."""
    is_of_the_system = isinstance(error, OSError) and error.errno is not None
    return f"{type(error).__name__}: {error}" if is_of_the_system else type(error).__name__


def describe_value(value: object) -> str:
    """Return a refused value as an error message names it: the value, or its type where that alone is wrong."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**LONGEST_NUMBER:
        return f"a number of more than {LONGEST_NUMBER} digits"
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
    return type(value).__name__
