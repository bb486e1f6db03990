"""A bridge to a store made for Haystack's own offloading: an object that writes text or bytes and reads them back.

Haystack is not imported: any object with ``write(key=, content=) -> reference`` and ``read(reference)`` will do. The
store chooses the references, so that users can still read them with tools of their own. A store keeps only the name, so
its extension tells the content's type. It is the extension of the file's own name if a tool gave one, as with
Haystack's own hook, else the usual one for the type.
"""

from __future__ import annotations

import re
from functools import cache
from mimetypes import MimeTypes
from pathlib import PurePath
from typing import Protocol, runtime_checkable

from coatcheck.core.blocks import is_text
from coatcheck.core.errors import InvalidRequest, StorageError
from coatcheck.storage.folder import EXTENSIONS
from coatcheck.storage.protocol import Stored

__all__ = ("ToolResultStoreBridge",)

_TYPES = {extension: content_type for content_type, extension in reversed(EXTENSIONS.items())}
"""The type for each extension. It comes before the ``mimetypes`` module, which, depending on the Python version, lacks
some extensions or has other types for them."""

_OWN_ENDING = re.compile(r"\.[0-9A-Za-z]{1,16}", re.ASCII)
_TEXTS = ("text/plain", "application/json")


@runtime_checkable
class _WritesAndReads(Protocol):
    """The methods of Haystack's ``ToolResultStore`` that are used here."""

    def write(self, *, key: str, content: str | bytes) -> str:
        """Store ``content`` under ``key``; return a reference to it."""
        ...

    def read(self, reference: str) -> str | bytes:
        """Return the content of a reference."""
        ...


class ToolResultStoreBridge:
    """Lets a Haystack ``ToolResultStore`` serve as a storage.

    Keys contain the digest, so no other content overwrites what was written. Their extensions are as Haystack's own:
    ``.md`` for a file called ``notes.md``, ``.csv`` for an unnamed ``text/csv`` file. Content of a type without a known
    extension comes back as ``application/octet-stream``, or as text if the store returns text.

    Text goes to the store as ``str``, lone surrogates included. If the store's own class, not a base class, sets
    ``stores_text_as_utf8``, text goes there as UTF-8, which saves two copies of large text. Media go there as bytes,
    and only if the store sets ``supports_binary_content``.
    """

    takes_file_name = True
    """See ``coatcheck.NamesReferences``."""

    def __init__(self, store: object) -> None:
        """Take a store.

        Raises:
            InvalidRequest: it lacks ``write`` or ``read``.

        """
        if isinstance(store, type) or not isinstance(store, _WritesAndReads):
            msg = (
                "a ToolResultStore must have the methods write(key=, content=) and read(reference), as"
                f" FileSystemToolResultStore('./tool_results') has, not {store!r}"
            )
            raise InvalidRequest(msg)
        self._store = store

    @property
    def store(self) -> object:
        """The store, as it was given."""
        return self._store

    def __deepcopy__(self, memo: object) -> ToolResultStoreBridge:
        """Return the bridge itself: a copy of its store would lack what is saved from now on."""
        return self

    def __repr__(self) -> str:
        return f"ToolResultStoreBridge({self._store!r})"

    def save_named(self, name: str, content: bytes, *, content_type: str, file_name: str | None = None) -> str:
        """Write content and return the reference that the store chose; ``file_name`` is what the tool called it.

        Raises:
            StorageError: the content is not text, and the store takes only text. The store's own errors pass unchanged.

        """
        writes_text = content_type in _TEXTS
        if not writes_text and not getattr(self._store, "supports_binary_content", False):
            kind = type(self._store).__name__
            msg = (
                f"{kind} does not support binary content, here {content_type}. If it can hold bytes, set"
                f" supports_binary_content = True on {kind}"
            )
            raise StorageError(msg)
        # Ignore an inherited attribute: a subclass may expect a str.
        as_text = writes_text and not vars(type(self._store)).get("stores_text_as_utf8", False)
        written = content.decode("utf-8", "surrogatepass") if as_text else content
        return self._store.write(key=name + _ending_of(content_type, file_name), content=written)

    def load(self, key: str) -> Stored | None:
        """Return what the store reads for a reference, or None if it does not know the reference.

        A store says so with ``LookupError``, such as ``KeyError``, with ``FileNotFoundError``, or with ``ValueError``
        if the reference is not one of its own. Any other exception passes.
        """
        try:
            found = self._store.read(key)
        except UnicodeError:  # a ValueError too, but it means that the content is damaged
            raise
        except (LookupError, FileNotFoundError, ValueError):
            return None
        content = found.encode("utf-8", "surrogatepass") if isinstance(found, str) else bytes(found)
        content_type = _type_of(key, content, was_text=isinstance(found, str))
        return Stored(content=content, content_type=content_type, metadata={}, size=len(content))


@cache
def _known() -> MimeTypes:
    """Return Python's built-in table: that of the module's functions depends on files of the machine."""
    return MimeTypes()


def _ending_of(content_type: str, file_name: str | None) -> str:
    own = PurePath(file_name or "").suffix
    if _OWN_ENDING.fullmatch(own):
        return own
    essence = content_type.partition(";")[0].strip().lower()
    return EXTENSIONS.get(essence) or _known().guess_extension(essence) or ".bin"


def _type_of(key: str, content: bytes, *, was_text: bool) -> str:
    """Return the type for the extension of a key. If it is a text type and the content is binary, ignore it."""
    ending = PurePath(key).suffix.lower()
    said = _TYPES.get(ending) or _known().guess_type(f"x{ending}")[0]
    if said is None:
        return "text/plain" if was_text else "application/octet-stream"
    if is_text(said) and not was_text:
        try:
            content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return "application/octet-stream"
    return said
