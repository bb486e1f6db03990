"""The error tree, split by who must act.

    CoatcheckError
    ├── InvalidRequest      the caller: an argument is wrong; nothing was done and nothing was lost
    ├── ReferenceNotFound   the model: this scope never had such a reference
    │   └── ReferenceExpired    the model: it had one, and the content is gone
    └── StorageError        the operator: the storage failed; the tool result stayed in the conversation
        └── CorruptContent      the operator: stored bytes are not the bytes that were saved

Only errors belong here, each with the values that its reader needs as attributes. Messages name the wrong value with
``!r`` and say what to do. Anything else that leaves this library is a bug.
"""

from __future__ import annotations

from coatcheck.core.notice import UNREADABLE

__all__ = (
    "CoatcheckError",
    "CorruptContent",
    "InvalidRequest",
    "ReferenceExpired",
    "ReferenceNotFound",
    "StorageError",
)


class CoatcheckError(Exception):
    """Base of every error that this library raises on purpose."""

    @property
    def for_model(self) -> str:
        """What a model is told that asked for something and caused this error: never a path or a backend's name."""
        return str(self).encode("utf-8", "replace").decode("utf-8")  # clients refuse lone surrogates


class InvalidRequest(CoatcheckError, ValueError):
    """An argument is wrong. The message says which one, and what is accepted."""


class ReferenceNotFound(CoatcheckError, LookupError):
    """No content was ever stored under this reference in this scope.

    Another scope's reference raises exactly this, with the same message: a scope cannot find out what others hold.
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
        """What a model is told: the backend's words may hold paths and addresses, so they are left out."""
        return UNREADABLE


class CorruptContent(StorageError):
    """Stored bytes differ from what was saved. They are never returned."""
