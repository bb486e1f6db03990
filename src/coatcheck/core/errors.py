"""The error tree, split by who must act.

    CoatcheckError
    ├── InvalidRequest      the caller: an argument is wrong; nothing was done and nothing was lost
    ├── ReferenceNotFound   the model: this scope never had such a reference
    │   └── ReferenceExpired    the model: it had one, and the content is gone
    └── StorageError        the operator: the storage failed; the tool result stayed in the conversation
        └── CorruptContent      the operator: stored bytes are not the bytes that were saved

``ReferenceNotFound`` carries the reference. Messages say what was wrong and what to do. Any other error that comes out
of an ``Offloader`` is a bug. Only ``engine.execution`` converts backend errors to these. A storage that is called
directly may also raise its backend's own errors.
"""

from __future__ import annotations

import errno
from typing import TypeGuard

from coatcheck.core.notice import NOT_SET_UP, UNREADABLE

__all__ = (
    "LONGEST_NUMBER",
    "CoatcheckError",
    "CorruptContent",
    "InvalidRequest",
    "ReferenceExpired",
    "ReferenceNotFound",
    "StorageError",
    "describe_error",
    "describe_value",
    "install_command",
    "is_of_the_system",
)

LONGEST_NUMBER = 15
"""The most digits of a number that a message repeats. Python refuses to print an int of more than 4,300."""

_LONGEST_VALUE = 60
"""The most characters of a value that a message repeats."""


class CoatcheckError(Exception):
    """Base class of this library's own errors.

    An unknown keyword argument still raises ``TypeError``, and a package that is not installed ``ImportError``. A
    storage that is called directly may raise its backend's own errors.
    """

    @property
    def for_model(self) -> str:
        """The message for the model whose request raised this error, without paths and names of backends."""
        return str(self).encode("utf-8", "replace").decode("utf-8")  # clients refuse lone surrogates


class InvalidRequest(CoatcheckError, ValueError):
    """An argument is wrong. The message says which one, and what is accepted.

    The message is for the model, which chose the argument; with ``for_host``, for the host, which chose the scope or
    storage.
    """

    def __init__(self, message: str = "", *, for_host: bool = False) -> None:
        super().__init__(message)
        self.for_host = for_host

    @property
    def for_model(self) -> str:
        """The message for a model, without advice that only the host can follow."""
        return NOT_SET_UP if self.for_host else super().for_model


class ReferenceNotFound(CoatcheckError, LookupError):
    """No content was ever stored under this reference in this scope.

    A reference from another scope raises the same error with the same message: no scope can find out what others hold.
    """

    def __init__(self, message: str, *, reference: str = "") -> None:
        super().__init__(message)
        self.reference = reference


class ReferenceExpired(ReferenceNotFound):
    """The reference belongs to this scope, but its content was deleted, or evicted by a limit of the storage."""


class StorageError(CoatcheckError):
    """A storage could not save, load or delete. ``__cause__`` carries the backend's own exception."""

    @property
    def for_model(self) -> str:
        """The message for a model, without the backend's words, which may contain paths and addresses."""
        return UNREADABLE


class CorruptContent(StorageError):
    """Stored bytes differ from what was saved. Raised instead of returning the whole content.

    Reading a part of large content does not detect it. Neither does any read from a storage that chooses its references
    itself, since it keeps no digest.
    """


def describe_error(error: Exception) -> str:
    """Return what is safe to repeat of a foreign error: its class, and its message if the operating system wrote it.

    Other messages may quote content.
    """
    return f"{type(error).__name__}: {error}" if is_of_the_system(error) else type(error).__name__


def is_of_the_system(error: object) -> TypeGuard[OSError]:
    """Return whether an error has an ``errno`` of the operating system.

    Checking that ``errno`` is set is not enough: any two arguments set it, as in
    ``OSError("could not write %s", content)``.
    """
    return isinstance(error, OSError) and isinstance(error.errno, int) and error.errno in errno.errorcode


def describe_value(value: object) -> str:
    """Describe a refused value for an error message: a plain value as it is, cut if long; any other by its type."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**LONGEST_NUMBER:
        return f"a number of more than {LONGEST_NUMBER} digits"
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
    return type(value).__name__


def install_command(requirement: str) -> str:
    """Return the command that installs a requirement such as ``coatcheck[s3]``.

    Until the first release, coatcheck is installed from a checkout: on the package index, anyone could own the name.
    """
    return f'pip install "{requirement.replace("coatcheck[", "/path/to/checkout[")}"'
