"""Scope and content become a storage key and the reference that the model sees.

    key        = <16 hex of SHA-256(scope)>/<16 hex of SHA-256(content type, content)>
    reference  = <tool slug>-<the same 16 hex of the content>-<4 hex over scope and content>
    name       = <tool slug>_<the same 16 hex of the content>_scope_<16 hex of SHA-256(scope)>

The name is for storages that choose their references themselves: they are asked to keep it in them.

Nothing random, no clock, no counter: the same call, content and scope give the same reference in every framework, on
every storage, after any restart. The four check digits tell a reference of this scope from any other, so a miss can be
named *unknown* or *expired* with nothing kept for it. No raw tool name, call id or scope reaches a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import InvalidRequest, ReferenceNotFound, StorageError
from coatcheck.core.forks import loading
from coatcheck.core.notice import malformed_reference, miss, missing_reference, no_reference

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Iterator

__all__ = (
    "Reference",
    "begin_digest",
    "canonical_reference",
    "content_digest",
    "find_references",
    "find_storage_references",
    "is_storage_key",
    "keys_from",
    "make_reference",
    "names_scope",
    "require_storage_key",
    "resolve_reference",
    "resolve_storage_reference",
    "scope_tag",
    "storage_key",
    "storage_name",
)

DIGEST_LENGTH = 16
"""Hex digits of a digest in a key: 64 bits, so two contents meet by accident only among billions in one scope."""

CHECK_LENGTH = 4
"""Hex digits of the check over scope and content. It tells misses apart; it is no secret and guards nothing."""

MAX_REFERENCE_LENGTH = 256
"""Characters. The longest reference ever made has 32 + 1 + 16 + 1 + 4; the rest is room for what models put around."""

MAX_STORAGE_REFERENCE_LENGTH = 4_096
"""The same for a reference that a storage chose, which may be a path: the longest that Linux takes."""

INDEX_SUFFIX = "-lines"
"""Makes of the key of a content that of the index of its lines."""

_MAX_SLUG_LENGTH = 32
_KEY = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}/[0-9a-f]{{{DIGEST_LENGTH}}}(?:-[a-z]{{1,16}})?", re.ASCII)
"""What ``storage_key`` makes, and the engine's own entries beside it. No name of a device has hex digits only."""

_REFERENCE = re.compile(r"(?<![\w-])(?:[\w.-]{0,64}-)?([0-9A-Fa-f]{16})-([0-9A-Fa-f]{4})(?![\w-])", re.ASCII)

"""What a model gives back: the slug may have become anything."""

_EXACT_REFERENCE = re.compile(r"(?<![0-9a-z_-])[0-9a-z_]{1,32}-[0-9a-f]{16}-[0-9a-f]{4}(?![\w-])", re.ASCII)
"""What was made here, in a text."""

_SCOPE_IN_NAME = re.compile(r"[0-9a-f]{16}_scope_([0-9a-f]{16})", re.ASCII | re.IGNORECASE)
"""In what ``storage_name`` makes. The digest before it makes it longer than the slug of a tool's name may be."""

_NO_REFERENCE = r"\s\"'`<>()\[\]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One stored content block. ``str()`` is what the model sees."""

    id: str
    """The reference as the model reads it and gives it back."""

    content_type: str
    """MIME type of the stored bytes."""

    size: int
    """Bytes stored."""

    items: int | None = None
    """How many texts were joined into this content; None where it is one block."""

    def __str__(self) -> str:
        return self.id


def content_digest(content_type: str, data: bytes) -> str:
    """Return the full SHA-256, 64 hex digits, over content type and bytes."""
    digest = begin_digest(content_type)
    digest.update(data)
    return digest.hexdigest()


def begin_digest(content_type: str) -> hashlib._Hash:
    """Return the digest of a content of this type whose bytes are still to come."""
    digest = _sha256(content_type)
    digest.update(b"\0")
    return digest


def scope_tag(scope: str) -> str:
    """Return the 16 hex digits that stand for ``scope`` in keys."""
    return _sha256(scope).hexdigest()[:DIGEST_LENGTH]


def storage_key(scope: str, digest: str) -> str:
    """Return the storage key of the content with this (full or short) ``digest`` in ``scope``."""
    return f"{scope_tag(scope)}/{digest[:DIGEST_LENGTH]}"


def is_storage_key(key: str) -> bool:
    """Return whether ``key`` has the form of those made here."""
    return _KEY.fullmatch(key) is not None


def keys_from(key: str) -> tuple[str, ...]:
    """Return all keys that begin with a whole one: itself, and of a content that of the index of its lines."""
    return (key,) if "-" in key else (key, key + INDEX_SUFFIX)


def require_storage_key(key: str) -> str:
    """Return ``key`` if it has the form of those made here, and so is harmless as a path or a name.

    Raises:
        StorageError: it has not.

    """
    if not is_storage_key(key):
        msg = f"malformed storage key {key[:100]!r}"
        raise StorageError(msg)
    return key


def make_reference(tool_name: str, scope: str, *, digest: str) -> str:
    """Return the reference for the content with this ``digest``, stored in ``scope`` for a call of ``tool_name``."""
    short = digest[:DIGEST_LENGTH]
    return f"{_slug(tool_name)}-{short}-{_check(scope, short)}"


def resolve_reference(reference: object, scope: str) -> str:
    """Return the storage key that ``reference`` names in ``scope``.

    The tool slug and upper or lower case do not matter, and neither do quotes, brackets or spaces around it.

    Raises:
        InvalidRequest: ``reference`` is no text, empty, or longer than 256 characters.
        ReferenceNotFound: it has not the form of a reference, or its check does not belong to ``scope``.

    """
    given = _required(reference, longest=MAX_REFERENCE_LENGTH)
    found = list(_REFERENCE.finditer(given))
    if len(found) != 1:
        raise ReferenceNotFound(no_reference(given), reference=given)
    digest, check = found[0].group(1).lower(), found[0].group(2).lower()
    if check != _check(scope, digest):
        raise ReferenceNotFound(miss(given, expired=False), reference=given)
    return storage_key(scope, digest)


def canonical_reference(reference: str) -> str:
    """Return the reference in what a model gave, without what stands around it."""
    found = _REFERENCE.search(reference)
    return reference.strip() if found is None else found.group().lower()


def find_references(text: str) -> Iterator[re.Match[str]]:
    """Yield every place in ``text`` that has the form of a reference, whatever its scope."""
    return _EXACT_REFERENCE.finditer(text)


def storage_name(tool_name: str, scope: str, *, digest: str) -> str:
    """Return the name that a storage is asked to keep in a reference of its own choice.

    It holds the digest, since a place in the result would come back with the tool's next call and overwrite this one.
    """
    return f"{_slug(tool_name)}_{digest[:DIGEST_LENGTH]}_scope_{scope_tag(scope)}"


def resolve_storage_reference(reference: object, scope: str) -> str:
    """Return a reference that a storage chose, as that storage knows it.

    Raises:
        InvalidRequest: ``reference`` is no text, empty, or longer than 4,096 characters.
        ReferenceNotFound: it holds the name of another scope, or what no storage can take: NUL, a lone surrogate.

    """
    wanted = _required(reference, longest=MAX_STORAGE_REFERENCE_LENGTH).strip().strip("\"'`")
    if _scopes_in(wanted) - {scope_tag(scope)} or "\0" in wanted or to_valid_unicode(wanted) != wanted:
        raise ReferenceNotFound(miss(wanted, expired=False), reference=wanted)
    return wanted


def names_scope(reference: str, scope: str) -> bool:
    """Return whether a reference that a storage chose shows that it was made in ``scope``."""
    # Every one counts: where a storage looks at a part only, as behind "..", a second would open the first.
    return _scopes_in(reference) == {scope_tag(scope)}


def _scopes_in(reference: str) -> set[str]:
    return {tag.lower() for tag in _SCOPE_IN_NAME.findall(reference)}


def find_storage_references(text: str, scope: str) -> Iterator[re.Match[str]]:
    """Yield every place in ``text`` that has the form of a reference that a storage chose for content of ``scope``."""
    return re.finditer(
        rf"[^{_NO_REFERENCE}]*scope_{scope_tag(scope)}(?:[^{_NO_REFERENCE}]*[^{_NO_REFERENCE}.,;:!?])?", text
    )


def _required(reference: object, *, longest: int) -> str:
    if reference is None or (isinstance(reference, str) and not reference.strip()):
        raise InvalidRequest(missing_reference())
    if not isinstance(reference, str):
        raise InvalidRequest(malformed_reference(type(reference).__name__))
    if len(reference) > longest:
        raise InvalidRequest(malformed_reference(f"{len(reference):,} characters"))
    return reference


def _check(scope: str, digest: str) -> str:
    # The separator cannot appear in a digest, so no two pairs of scope and digest hash the same text.
    return _sha256(f"{digest}\n{scope}").hexdigest()[:CHECK_LENGTH]


def _sha256(text: str) -> hashlib._Hash:
    with loading:
        import hashlib  # noqa: PLC0415 - loads OpenSSL

    return hashlib.sha256(text.encode("utf-8", "surrogatepass"))


def _slug(tool_name: str) -> str:
    """Return a short, harmless form of a tool name: readable for the model, meaningless to storages."""
    return re.sub(r"[^0-9a-z]+", "_", tool_name.lower()).strip("_")[:_MAX_SLUG_LENGTH].strip("_") or "result"
