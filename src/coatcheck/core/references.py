"""How a scope and stored content become a storage key, and the reference that the model sees.

    key        = <scope part>/<16 hex digits of SHA-256(content type, content)>, then "-lines" for an index of lines
    reference  = <tool slug>-<the same 16 digits of the content>-<4 hex digits over scope and content>
    name       = <tool slug>_<the same 16 digits of the content>_scope_<16 hex digits of SHA-256(scope)>

The scope part of a ``str`` is one tag: 16 hex digits of its SHA-256. The scope part of a tuple has one tag for each of
its prefixes, from ``()`` to the whole tuple. So the keys of everything below ``("tenant-7",)`` share a prefix, and the
number of tags distinguishes a tuple from a ``str``.

The name is for storages that choose their references themselves: they are asked to include it.

Nothing here uses randomness, a clock or a counter: the same call, content and scope give the same reference in every
framework, on every storage, after any restart. The four check digits distinguish a reference of this scope from any
other, so that *unknown* and *expired* can be told apart without a record of content that is gone. No raw tool name,
call id or scope reaches a key.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import InvalidRequest, ReferenceNotFound, StorageError
from coatcheck.core.forks import loading
from coatcheck.core.notice import malformed_reference, miss, missing_reference, no_reference

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Iterator

__all__ = (
    "DEFAULT_SCOPE",
    "DIGEST_LENGTH",
    "INDEX_SUFFIX",
    "MAX_SCOPE_PARTS",
    "MAX_STORAGE_REFERENCE_LENGTH",
    "Key",
    "Scope",
    "begin_digest",
    "canonical_reference",
    "content_digest",
    "find_references",
    "find_storage_references",
    "is_known_form",
    "is_scope_part",
    "is_storage_key",
    "make_reference",
    "names_scope",
    "resolve_reference",
    "resolve_storage_reference",
    "scope_part",
    "scope_tags",
    "split_key",
    "suggested_name",
)

Scope: TypeAlias = str | tuple[str, ...]
"""Who may read stored content: a ``str``, which is never parsed, or a tuple such as ``("tenant-7", "thread-3")``."""

DEFAULT_SCOPE = "default"
"""The scope of content for which nobody named one. Conversations share it, so its content is never listed to a model.
``Offloader(require_scope=True)`` refuses it."""

DIGEST_LENGTH = 16
"""Hex digits of a digest in a key: 64 bits, so accidental collisions take billions of entries in one scope."""

CHECK_LENGTH = 4
"""Hex digits of the check over scope and content. It distinguishes unknown from expired; it is not a secret and
protects nothing."""

MAX_REFERENCE_LENGTH = 256
"""The most characters of what a model gives as a reference. Our longest has 32 + 1 + 16 + 1 + 4; the rest is room for
what models put around it."""

MAX_STORAGE_REFERENCE_LENGTH = 4_096
"""The same for a reference that a storage chose, which may be a path: the longest that Linux accepts."""

MAX_SCOPE_PARTS = 8
"""The most parts of a scope tuple. They make nine tags, so the scope part has 144 characters; file systems allow names
of 255."""

_LINES = "lines"

INDEX_SUFFIX = f"-{_LINES}"
"""What the key of a line index adds to that of its content."""

_MAX_SLUG_LENGTH = 32

_HEX = rf"[0-9a-f]{{{DIGEST_LENGTH}}}"
_END = rf"-{_HEX}-[0-9a-f]{{{CHECK_LENGTH}}}"

_SCOPE_PART = re.compile(rf"(?:{_HEX}){{1,{MAX_SCOPE_PARTS + 1}}}", re.ASCII)
"""Only hex digits, so it is safe as the name of a folder: no device has such a name."""

_KEY = re.compile(rf"(?P<scope>{_SCOPE_PART.pattern})/(?P<digest>{_HEX})(?:-(?P<kind>[a-z]{{1,16}}))?", re.ASCII)

_MALFORMED = "malformed storage key {!r}"

_REFERENCE = re.compile(
    rf"(?<![\w-])(?:[\w.-]{{0,64}}-)?([0-9A-Fa-f]{{{DIGEST_LENGTH}}})-([0-9A-Fa-f]{{{CHECK_LENGTH}}})(?![\w-])",
    re.ASCII,
)
"""A reference as a model gives it back, whatever it made of the slug."""

_EXACT_REFERENCE = re.compile(rf"(?<![0-9a-z_-])[0-9a-z_]{{1,{_MAX_SLUG_LENGTH}}}{_END}(?![\w-])", re.ASCII)
"""A reference as ``make_reference`` makes it, anywhere in a string."""

_EXACT_END = re.compile(_END)
"""The end of such a reference. Searching for it is a hundred times faster, because it begins with a fixed character."""

_PART = re.compile(r"[0-9A-Fa-f]{12}")
"""Most of a digest. A string that contains it was a reference before it was cut or miscopied."""

_SCOPE_IN_NAME = re.compile(rf"{_HEX}_scope_({_HEX})", re.ASCII | re.IGNORECASE)
"""Finds the scope's tag in a name from ``suggested_name``. A tool's slug is too short to match."""

_MOST_DECODERS = 4
"""How many servers in a row may decode a reference. It is bounded because whoever wrote the reference chooses how long
decoding takes."""

_NO_REFERENCE = r"\s\"'`<>()\[\]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key of one storage entry. ``str()`` gives what the storage gets."""

    scope: str
    """The scope part: the tags of the scope, without the scope itself."""

    digest: str
    """The first 16 hex digits of the content's digest."""

    kind: str = ""
    """Empty for content, ``"lines"`` for the index of its lines. Any other word marks what a storage is writing."""

    @classmethod
    def of(cls, scope: Scope, digest: str) -> Key:
        """Return the key of the content with this (full or short) ``digest`` in ``scope``."""
        return cls(scope=scope_part(scope), digest=digest[:DIGEST_LENGTH])

    @classmethod
    def parse(cls, key: str) -> Key:
        """Parse ``key``. Its parts are safe as names of files and folders.

        Raises:
            StorageError: ``key`` is malformed.

        """
        found = _KEY.fullmatch(key) if isinstance(key, str) else None
        if found is None:
            raise _malformed(key)
        return cls(scope=found["scope"], digest=found["digest"], kind=found["kind"] or "")

    def __str__(self) -> str:
        return f"{self.scope}/{self.digest}-{self.kind}" if self.kind else f"{self.scope}/{self.digest}"

    @property
    def name(self) -> str:
        """The part of the key after the slash, unique in its scope."""
        return str(self).partition("/")[2]

    @property
    def is_content(self) -> bool:
        """Whether the entry is content: neither a line index, nor something that a storage is writing."""
        return not self.kind

    @property
    def is_line_index(self) -> bool:
        """Whether the entry is a line index."""
        return self.kind == _LINES

    @property
    def content(self) -> Key:
        """For a line index, the key of its content; for any other key, the key itself."""
        return replace(self, kind="") if self.is_line_index else self

    @property
    def line_index(self) -> Key:
        """The key of the line index of this content."""
        return replace(self, kind=_LINES)

    @property
    def family(self) -> tuple[Key, ...]:
        """All keys that begin with this one: itself and, for content, its line index."""
        return (self, self.line_index) if self.is_content else (self,)


def is_storage_key(key: str) -> bool:
    """Return whether ``Key.parse`` accepts ``key``."""
    return _KEY.fullmatch(key) is not None


def _malformed(key: object) -> StorageError:
    return StorageError(_MALFORMED.format(key[:100] if isinstance(key, str) else key))


def split_key(key: str) -> tuple[str, str]:
    """Split a key into its scope part and its name there. Both are safe as names of files and folders.

    Raises:
        StorageError: ``key`` is malformed.

    """
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise _malformed(key)
    scope, _, name = key.partition("/")
    return scope, name


def is_scope_part(name: str) -> bool:
    """Return whether ``name`` has the form of a scope part."""
    return _SCOPE_PART.fullmatch(name) is not None


def scope_part(scope: Scope) -> str:
    """Return the scope part of the keys of ``scope``: one tag for a ``str``, one for each prefix of a tuple.

    A tuple's part is a prefix of the part of every tuple that begins with the same elements, and of nothing else.
    """
    beginnings = [scope] if isinstance(scope, str) else [scope[:length] for length in range(len(scope) + 1)]
    return "".join(_hash_scope(beginning) for beginning in beginnings)


def scope_tags(part: str) -> tuple[str, ...]:
    """Return the complete tags at the beginning of a scope part, or of a prefix of a key."""
    scope, _, _ = part.partition("/")
    ends = range(DIGEST_LENGTH, len(scope) + 1, DIGEST_LENGTH)
    return tuple(scope[end - DIGEST_LENGTH : end] for end in ends)


def content_digest(content_type: str, data: bytes) -> str:
    """Return the full SHA-256, 64 hex digits, over content type and bytes."""
    digest = _load_sha256()(content_type.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(data)
    return digest.hexdigest()


def begin_digest(content_type: str) -> hashlib._Hash:
    """Return the hash with which ``content_digest`` starts for this content type, before the first byte of content."""
    return _load_sha256()(content_type.encode("utf-8", "surrogatepass") + b"\0")


def make_reference(tool_name: str, scope: Scope, *, digest: str) -> str:
    """Return the reference for the content with this ``digest``, stored in ``scope`` for a call of ``tool_name``.

    Its slug is a short form of the tool name: readable for the model, meaningless to storages.
    """
    slug = re.sub(r"[^0-9a-z]+", "_", tool_name.lower()).strip("_")[:_MAX_SLUG_LENGTH].strip("_")
    short = digest[:DIGEST_LENGTH]
    return f"{slug or 'result'}-{short}-{_hash_scope(scope, digest=short)}"


def resolve_reference(reference: object, scope: Scope) -> Key:
    """Return the key of the content that ``reference`` names in ``scope``.

    The tool slug and letter case are ignored, as are quotes, brackets or spaces around the reference.

    Raises:
        InvalidRequest: ``reference`` is not a ``str``, or it is empty or longer than 256 characters.
        ReferenceNotFound: it does not have the form of a reference, or its check belongs to another scope.

    """
    given = _require_reference(reference, longest=MAX_REFERENCE_LENGTH)
    found = list(_REFERENCE.finditer(given))
    if len(found) != 1:
        raise ReferenceNotFound(no_reference(given, is_part=_PART.search(given) is not None), reference=given)
    digest, check = found[0].group(1).lower(), found[0].group(2).lower()
    if check != _hash_scope(scope, digest=digest):
        raise ReferenceNotFound(miss(given, expired=False), reference=given)
    return Key.of(scope, digest)


def canonical_reference(reference: object) -> str:
    """Return the reference that a model gave, without what the model put around it.

    For a value that is not a string or is too long, return the name of its type.
    """
    if not isinstance(reference, str) or len(reference) > MAX_STORAGE_REFERENCE_LENGTH:
        return type(reference).__name__
    found = _REFERENCE.search(reference)
    return reference.strip() if found is None else found.group().lower()


def is_known_form(reference: str, scope: Scope | None) -> bool:
    """Return whether a reference is one word in the form that the core makes, or that a storage makes for ``scope``.

    A model may write anything else, and a storage that chooses its references itself is asked for all of it.
    """
    if _REFERENCE.fullmatch(reference) is not None:
        return True
    return scope is not None and len(reference.split()) == 1 and names_scope(reference, scope)


def find_references(text: str) -> Iterator[re.Match[str]]:
    """Yield every match in ``text`` that looks like a reference, whatever its scope."""
    return iter(()) if _EXACT_END.search(text) is None else _EXACT_REFERENCE.finditer(text)


def suggested_name(tool_name: str, scope: Scope, *, digest: str) -> str:
    """Return the name that a storage is asked to include in the reference that it chooses.

    It contains the digest. A name made from the block's position in the result would recur in the tool's next call,
    which would overwrite this content.
    """
    slug, short, _ = make_reference(tool_name, scope, digest=digest).split("-")
    return f"{slug}_{short}_scope_{_hash_scope(scope)}"


def resolve_storage_reference(reference: object, scope: Scope) -> str:
    """Return a reference that a storage chose, as that storage knows it.

    Raises:
        InvalidRequest: ``reference`` is not a ``str``, or it is empty or longer than 4,096 characters.
        ReferenceNotFound: it contains the tag of another scope, or what no storage accepts: NUL, a lone surrogate.

    """
    wanted = _require_reference(reference, longest=MAX_STORAGE_REFERENCE_LENGTH).strip().strip("\"'`")
    if _tags_in(wanted) - {_hash_scope(scope)} or "\0" in wanted or to_valid_unicode(wanted) != wanted:
        raise ReferenceNotFound(miss(wanted, expired=False), reference=wanted)
    return wanted


def names_scope(reference: str, scope: Scope) -> bool:
    """Return whether a reference that a storage chose shows that it was made in ``scope``."""
    # Every tag counts. A storage may use only part of a reference, such as what follows "..". Then adding the tag of
    # one's own scope would open a reference of another.
    return _tags_in(reference) == {_hash_scope(scope)}


def find_storage_references(text: str, scope: Scope) -> Iterator[re.Match[str]]:
    """Yield every match in ``text`` that looks like a reference that a storage chose for content of ``scope``."""
    other, tag = f"[^{_NO_REFERENCE}]", _hash_scope(scope)
    # Only from the start of a word: within a long one, such as a megabyte of base64, each try would read the rest.
    found = re.finditer(rf"(?<!{other}){other}*scope_{tag}(?:{other}*[^{_NO_REFERENCE}.,;:!?])?", text)
    return (match for match in found if len(match.group()) <= MAX_STORAGE_REFERENCE_LENGTH)


def _tags_in(reference: str) -> set[str]:
    """Return the scope tags in a reference that a storage chose, in every spelling that its backend may accept.

    A file system that ignores case takes a long s for an s and a ligature for two letters, and some skip invisible
    characters. A server decodes percent-encoding, and another behind it may decode again.
    """
    readings = [reference]
    while "%" in readings[-1] and len(readings) <= _MOST_DECODERS:
        readings.append(unquote(readings[-1]))
    folded = [unicodedata.normalize("NFKD", each).casefold() for each in readings if not each.isascii()]
    readings += [each.encode("ascii", "ignore").decode() for each in folded]
    return {tag.lower() for each in readings for tag in _SCOPE_IN_NAME.findall(each)}


def _require_reference(reference: object, *, longest: int) -> str:
    if reference is None or (isinstance(reference, str) and not reference.strip()):
        raise InvalidRequest(missing_reference())
    if not isinstance(reference, str):
        raise InvalidRequest(malformed_reference(type(reference).__name__))
    if len(reference) > longest:
        raise InvalidRequest(malformed_reference(f"{len(reference):,} characters"))
    return reference


def _hash_scope(scope: Scope, *, digest: str | None = None) -> str:
    """Return a scope's tag or, with the ``digest`` of content, the check over both: the first digits of a SHA-256."""
    if isinstance(scope, str):
        hashed = scope.encode("utf-8", "surrogatepass")
    else:  # UTF-8 contains no 0xff, so it can mark a tuple and end each part
        hashed = b"\xff" + b"".join(part.encode("utf-8", "surrogatepass") + b"\xff" for part in scope)
    if digest is not None:  # no digest contains the separator, so no two pairs of scope and digest hash the same bytes
        hashed = digest.encode() + b"\n" + hashed
    return _load_sha256()(hashed).hexdigest()[: DIGEST_LENGTH if digest is None else CHECK_LENGTH]


@cache
def _load_sha256() -> Callable[[bytes], hashlib._Hash]:
    """Return the hash function, cached, since nothing can be imported while the interpreter shuts down."""
    with loading:
        import hashlib  # noqa: PLC0415 - loads OpenSSL

    return hashlib.sha256
