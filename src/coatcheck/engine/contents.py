"""What the engine keeps in a storage: contents of a scope, each saved and found again under its reference.

There are two kinds of storage. A storage with keys is told where to put things, and also keeps type, digest and line
index. A storage that chooses its own references (``NamesReferences``) is asked to use a name that shows the scope. Who
may read what is decided here and in ``references``; how content is read belongs to ``reading``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import orjson

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import CoatcheckError, CorruptContent, ReferenceExpired, ReferenceNotFound, StorageError
from coatcheck.core.facts import Reference
from coatcheck.core.items import split_items
from coatcheck.core.notice import miss
from coatcheck.core.reading import ByteRange, Encoded, LineIndex, Source
from coatcheck.core.reading.index import INDEX_THRESHOLD
from coatcheck.core.references import (
    DIGEST_LENGTH,
    MAX_STORAGE_REFERENCE_LENGTH,
    Key,
    Scope,
    canonical_reference,
    content_digest,
    find_references,
    find_storage_references,
    make_reference,
    names_scope,
    resolve_reference,
    resolve_storage_reference,
    scope_part,
    suggested_name,
)
from coatcheck.engine.threads import UnawaitedThreads
from coatcheck.storage.protocol import Stored

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from coatcheck.engine.execution import Effects, StorageAccess

__all__ = (
    "HASHED_ON_THREAD_BYTES",
    "LONGEST_TOOL_NAME",
    "Contents",
    "Entry",
    "arguments_in",
    "content_type_in",
    "require_digest",
    "require_stored",
    "tool_name_in",
)

HASHED_ON_THREAD_BYTES = 2_000_000
"""From this size on, a second thread hashes the content while this one indexes and previews it. In a whole offload to
``FileStorage``, measured on an idle machine with two cores, this saves nothing at 1 MB, 18% at 10 MB (24 instead of
29 ms) and 20% at 100 MB (220 instead of 270 ms). Below 2 MB, hashing takes about 1 ms, which is what starting a thread
may take on a busy machine."""

_MAX_DIGITS = 18
"""The most digits accepted in a stored count of characters or lines. Damaged metadata may hold more."""

_FIELDS: Mapping[str, type] = {"content": bytes, "content_type": str, "metadata": Mapping, "size": int, "whole": bytes}
"""The types of the fields of ``Stored``. A dataclass does not check them."""

_INDEX_TYPE = "application/vnd.coatcheck.lines+json"

_ITEMS = "items"
"""In the metadata, the key for the number of text blocks that were joined. In the content type, the parameter for a
digest of where each of them begins."""

_TOOL = "tool"
"""The metadata key for the tool's name. The value is the first characters of the name, percent-encoded."""

LONGEST_TOOL_NAME = 64
"""Characters of a tool's name that are kept: as many as model providers allow."""

_ARGUMENTS = "arguments"
"""The metadata key for the arguments of the call, used with ``list_arguments``. The value is the first characters of
their JSON, percent-encoded."""

_LONGEST_ARGUMENTS = 600
"""Characters after percent-encoding: enough for 600 ASCII letters or 66 Chinese characters. S3 takes 2 KB of metadata
in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored content."""

    reference: str
    """The reference, without anything that a model put around it."""

    key: str
    """The key in the storage, or the reference if the storage chose it."""

    stored: Stored
    """The entry. It holds the whole content only if the storage cannot read ranges, or had to read all of it."""

    @property
    def source(self) -> Source:
        """What ``reading`` needs to know about the entry."""
        return Source(
            reference=self.reference,
            content_type=content_type_in(self.stored.content_type, self.stored.metadata),
            size=self.stored.size,
            characters=_whole_number(self.stored.metadata.get("characters")),
            lines=_whole_number(self.stored.metadata.get("lines")),
            has_index="index" in self.stored.metadata,
            has_items=_ITEMS in self.stored.metadata,
        )


class Contents:
    """Saves and finds contents in one storage, as generators of effects."""

    def __init__(self, storage: StorageAccess) -> None:
        self._storage = storage
        self.evicts: bool = storage.evicts
        """Whether the storage may evict one entry of a result to make room for another. If so, call ``missing``."""

    # Saving.

    def start_hash(self, data: bytes, content_type: str, *, starts: tuple[int, ...] | None) -> Future[str] | None:
        """Hash large content on another core while the caller goes on; return the future digest for ``save``.

        SHA-256 does not hold the interpreter's lock. The answer is None if no thread could be started: ``save`` then
        hashes the content itself, as it does for content below ``HASHED_ON_THREAD_BYTES``.
        """
        if starts is not None and not self._storage.names_references:
            content_type = _type_with_items(content_type, starts)
        # A new thread, not one of a pool: the system starts a new thread on an idle core, but wakes a pooled one on
        # the core where it last ran, which may be the busy one.
        with suppress(RuntimeError):  # the system has no thread left, or the interpreter shuts down
            return UnawaitedThreads(1, name="coatcheck-hash").submit(content_digest, content_type, data)
        return None

    def save(
        self,
        data: bytes,
        content_type: str,
        *,
        scope: Scope,
        tool_name: str,
        digest: Future[str] | None = None,
        arguments: Mapping[str, object] | None = None,
        encoded: Encoded | None = None,
        starts: tuple[int, ...] | None = None,
        file_name: str | None = None,
        anyway: Callable[[], bool] | None = None,
    ) -> Effects[Reference | CoatcheckError]:
        """Store bytes and, for long text, its line index; return the reference, or the error.

        Args:
            data: the content, whole.
            content_type: its MIME type.
            scope: who may read it.
            tool_name: for the reference.
            digest: what ``start_hash`` returned for this content, if it was called.
            arguments: the arguments of the call, if they are to be listed.
            encoded: the text with its lines, if they are known.
            starts: the byte at which each of the joined text blocks begins; stored only if the storage has keys.
            file_name: the name that the tool gave the content, if it is a named file.
            anyway: whether to try even while the storage does not answer; see ``StorageAccess.attempt``.

        """
        size, items = len(data), None if starts is None else len(starts)
        reference = partial(Reference, content_type=content_type, size=size, items=items)
        if starts is not None and not self._storage.names_references:
            content_type = _type_with_items(content_type, starts)
        full = content_digest(content_type, data) if digest is None else digest.result()
        if self._storage.names_references:
            name = suggested_name(tool_name, scope, digest=full)
            named: dict[str, Any] = {"file_name": file_name} if self._storage.takes_file_name else {}
            named |= {"content_type": content_type, "anyway": anyway}
            chosen = _require_reference((yield from self._storage.attempt("save_named", name, data, **named)))
            return chosen if isinstance(chosen, CoatcheckError) else reference(id=chosen)
        key, index, metadata = Key(scope=scope_part(scope), digest=full[:DIGEST_LENGTH]), None, dict[str, str]()
        if encoded is not None:
            metadata = {"characters": str(encoded.characters), "lines": str(encoded.lines)}
            index = encoded.index if starts is None else encoded.with_items(starts).index
        if index is not None:
            metadata |= {"index": "lines"} | ({_ITEMS: str(items)} if index.items else {})
        metadata["sha256"] = full
        if tool_name:
            metadata[_TOOL] = quote(to_valid_unicode(tool_name[:LONGEST_TOOL_NAME]), safe="/:")
        if arguments is not None and (shown := _quoted(_as_json(arguments))):
            metadata[_ARGUMENTS] = shown
        about: dict[str, Any] = {"content_type": content_type, "metadata": metadata}
        answer = yield from self._storage.attempt("save", str(key), data, anyway=anyway, **about)
        if index is not None and not isinstance(answer, CoatcheckError):
            lines = index.to_bytes()
            about = {"content_type": _INDEX_TYPE, "metadata": {"sha256": content_digest(_INDEX_TYPE, lines)}}
            answer = yield from self._storage.attempt("save", str(key.line_index), lines, **about)
        if isinstance(answer, CoatcheckError):
            return answer
        return reference(id=make_reference(tool_name, scope, digest=full))

    def path_of(self, reference: Reference, scope: Scope) -> str | None:
        """Return the path of the file with a saved content, if the storage keeps files."""
        if self._storage.names_references:
            return None
        return self._storage.path_of(self._key(reference.id, scope), content_type=reference.content_type)

    def missing(self, references: Sequence[Reference], scope: Scope) -> Effects[bool]:
        """Return whether a storage that evicts removed one entry of a result to make room for another."""
        is_one_entry = len(references) == 1 and references[0].size <= INDEX_THRESHOLD and references[0].items is None
        if is_one_entry:  # a request to a remote storage would double the time of a save
            return False
        try:
            for reference in references:
                yield from self.find(reference.id, scope)
        except CoatcheckError:
            return True
        return False

    # Finding.

    def belongs(self, reference: str, scope: Scope) -> bool:
        """Return whether a reference belongs to this scope, whether or not its content is still there."""
        try:
            self._key(reference, scope)
        except CoatcheckError:
            return False
        return True

    def references_in(self, text: str, scope: Scope) -> Iterator[re.Match[str]]:
        """Yield what looks like a reference in ``text``; if the storage chose them, only those of ``scope``."""
        return find_storage_references(text, scope) if self._storage.names_references else find_references(text)

    def find(self, reference: str, scope: Scope) -> Effects[Entry]:
        """Return the entry for a reference, usually without its content, which is read later.

        Raises:
            InvalidRequest: ``reference`` is not a reference.
            ReferenceExpired: the content is no longer there.
            ReferenceNotFound: this scope never had the reference.
            StorageError: the storage failed, or the bytes are not those that were saved.

        """
        key, by_range = self._key(reference, scope), self._storage.reads_ranges
        nothing: dict[str, Any] = {"start": 0, "length": 0} if by_range else {}  # for the entry without its content
        answer = yield from self._storage.attempt("load_range" if by_range else "load", key, **nothing)
        stored = self._entry(answer, reference, scope)
        if not by_range:
            stored = replace(stored, whole=stored.content)
        if stored.whole is not None:
            self._verify(replace(stored, content=stored.whole), key)
        named = self._storage.names_references
        return Entry(reference=key if named else canonical_reference(reference), key=key, stored=stored)

    def load(self, reference: str, scope: Scope) -> Effects[Stored]:
        """Return a whole content, verified; raises what ``find`` raises."""
        key = self._key(reference, scope)
        stored = self._entry((yield from self._storage.attempt("load", key)), reference, scope)
        self._verify(stored, key)
        return stored

    def items(self, stored: Stored, reference: str, scope: Scope) -> Effects[tuple[bytes, ...] | None]:
        """Split content that was joined from many text blocks; return None if it was not, or if its index is lost.

        Raises:
            StorageError: the storage failed.

        """
        if _ITEMS not in stored.metadata or self._storage.names_references:
            return None
        answer = yield from self._storage.attempt("load", str(Key.parse(self._key(reference, scope)).line_index))
        if isinstance(answer, CoatcheckError):
            raise answer
        index = LineIndex.from_bytes(answer.content, size=stored.size) if isinstance(answer, Stored) else None
        content_type = content_type_in(stored.content_type, stored.metadata)
        if index is None or _type_with_items(content_type, index.items) != stored.content_type:
            return None
        return split_items(stored.content, index.items)

    def part(self, found: Entry, wanted: ByteRange, *, scope: Scope) -> Effects[bytes]:
        """Return a range of bytes of a content; raises what ``find`` raises."""
        if found.stored.whole is not None:
            return found.stored.whole[wanted.start : wanted.start + wanted.length]
        answer = yield from self._storage.attempt("load_range", found.key, start=wanted.start, length=wanted.length)
        entry = self._entry(answer, found.reference, scope)
        if len(entry.content) < wanted.length:
            msg = f"the content under {found.key!r} ends before the {found.stored.size:,} bytes that were saved there"
            raise CorruptContent(msg)
        if len(entry.content) == found.stored.size:  # this range is the whole content, so it can be verified
            self._verify(entry, found.key)
        return entry.content

    def index(self, found: Entry) -> Effects[bytes | None]:
        """Return the stored line index of a content, or None if there is none."""
        try:
            answer = yield from self._storage.attempt("load", str(Key.parse(found.key).line_index))
            return require_stored(answer).content
        except CoatcheckError:  # without an index, reading only takes longer
            return None

    def _key(self, reference: str, scope: Scope) -> str:
        if self._storage.names_references:
            return resolve_storage_reference(reference, scope)
        return str(resolve_reference(reference, scope))

    def _entry(self, answer: object, reference: str, scope: Scope) -> Stored:
        """Return the entry that a storage answered with.

        Raises:
            ReferenceExpired: there is no entry.
            ReferenceNotFound: there is no entry, and no sign that there ever was one.
            StorageError: the storage failed, or answered with something else.

        """
        if answer is None:
            if self._storage.names_references and not names_scope(reference, scope):
                raise ReferenceNotFound(miss(reference, expired=False), reference=reference)
            raise ReferenceExpired(miss(reference, expired=True), reference=reference)
        return require_stored(answer)

    def _verify(self, entry: Stored, key: str) -> None:
        """Check a whole entry against its key and its full digest; a storage without keys has neither.

        Raises:
            CorruptContent: the bytes are not those that were saved.

        """
        if not self._storage.names_references:
            require_digest(Key.parse(key), content_digest(entry.content_type, entry.content), entry.metadata)


def require_stored(answer: object) -> Stored:
    """Return the answer of a storage if it is a well-formed entry.

    Raises:
        CoatcheckError: the storage failed; ``answer`` is this error.
        StorageError: ``answer`` is not a ``Stored``, a field has the wrong type, or the size is negative.

    """
    if isinstance(answer, CoatcheckError):
        raise answer
    if not isinstance(answer, Stored):
        msg = f"the storage answered with {type(answer).__name__} instead of coatcheck.Stored or None"
        raise StorageError(msg)
    for name, wanted in _FIELDS.items():
        value = getattr(answer, name)
        if name == "whole" and value is None:
            continue
        if not isinstance(value, wanted) or isinstance(value, bool):
            msg = (
                f"the storage answered with a coatcheck.Stored that has {type(value).__name__} as {name}, where it must"
                f" have {wanted.__name__}: the author of the storage must convert it"
            )
            raise StorageError(msg)
    if answer.size < 0:
        msg = (
            f"the storage answered with a coatcheck.Stored of size {answer.size}: the author of the storage must give"
            " the number of bytes of the whole entry"
        )
        raise StorageError(msg)
    return answer


def require_digest(key: Key, digest: str, metadata: Mapping[str, str]) -> None:
    """Compare the full digest of what was loaded with the key and the metadata that it was saved with.

    Raises:
        CorruptContent: the bytes are not those that were saved.

    """
    # The key of a line index holds the digest of the content that it belongs to.
    fits_key = key.is_line_index or digest.startswith(key.digest)
    if not fits_key or metadata.get("sha256", digest) != digest:
        msg = f"the content under {str(key)!r} is not what was saved there: its SHA-256 differs"
        raise CorruptContent(msg)


def content_type_in(content_type: str, metadata: Mapping[str, str]) -> str:
    """Return the MIME type of an entry as the tool gave it, without the digest of its items that is stored in it."""
    return content_type.rpartition(f"; {_ITEMS}=")[0] if _ITEMS in metadata else content_type


def _type_with_items(content_type: str, starts: Sequence[int]) -> str:
    """Add a digest of where the items start: two different lists of strings may join to the same bytes."""
    return f"{content_type}; {_ITEMS}={content_digest(_INDEX_TYPE, orjson.dumps(starts))[:DIGEST_LENGTH]}"


def tool_name_in(metadata: Mapping[str, str]) -> str | None:
    """Return the name of the tool that a content came from; None if no name was saved with it.

    Equal contents of one scope share an entry. Whether it keeps the name of the first save or of the last depends on
    the storage.
    """
    found = metadata.get(_TOOL)
    return unquote(found) if isinstance(found, str) else None


def arguments_in(metadata: Mapping[str, str]) -> str | None:
    """Return the arguments of the call that a content came from, as far as they were stored."""
    found = metadata.get(_ARGUMENTS)
    return unquote(found) if isinstance(found, str) else None


def _as_json(arguments: Mapping[str, object]) -> str:
    """Return arguments as JSON, with the type's name for a value that JSON cannot express; ``""`` if that fails."""
    try:
        return json.dumps(dict(arguments), ensure_ascii=False, default=lambda value: type(value).__name__)
    except (TypeError, ValueError, RecursionError):
        return ""


def _quoted(text: str) -> str:
    """Percent-encode arguments, since some backends keep only ASCII, and cut them to ``_LONGEST_ARGUMENTS``."""
    kept, left = [], _LONGEST_ARGUMENTS
    for character in to_valid_unicode(text[:_LONGEST_ARGUMENTS]):
        quoted = quote(character, safe="/:")
        if len(quoted) > left:
            break
        kept.append(quoted)
        left -= len(quoted)
    return "".join(kept)


def _require_reference(answer: object) -> str | CoatcheckError:
    """Return the reference that a storage chose, or the error; any other answer becomes a ``StorageError``."""
    if isinstance(answer, CoatcheckError):
        return answer
    if (
        isinstance(answer, str)
        and 0 < len(answer) <= MAX_STORAGE_REFERENCE_LENGTH
        and answer == answer.strip()
        and len(answer.splitlines()) == 1
    ):
        return answer
    kind = f"a str of {len(answer):,} characters" if isinstance(answer, str) else type(answer).__name__
    return StorageError(
        "the storage must answer save_named with a reference, one line of at most"
        f" {MAX_STORAGE_REFERENCE_LENGTH:,} characters without spaces at its ends, not {kind}"
    )


def _whole_number(found: object) -> int | None:
    """Return the number in a ``str``; None if there is none, since the metadata of an entry may be damaged."""
    return int(found) if isinstance(found, str) and found.isdecimal() and len(found) <= _MAX_DIGITS else None
