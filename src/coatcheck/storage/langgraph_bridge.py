"""A LangGraph store as a storage: content next to a graph's long-term memory, in Postgres, SQLite or MongoDB.

    namespace   (*namespace, *<tags of the scope>)          key   <digest>
    value       {"content": base64, "content_type": ..., "metadata": {...}, "size": bytes}

Content too large for one entry is split. The entry above then has ``"part_bytes"`` instead of ``"content"``:

    namespace   (*namespace, "parts", *<tags of the scope>, <digest>)          key   00000, 00001, ...
    value       {"content": base64}

    namespace   (*namespace, *<tags of the scope>)          key   <digest>-unfinished, while the parts are being written
    value       {"size": bytes}

Each tag of a tuple scope is a label of its own, so that a search under the first parts reads nothing else. LangGraph is
not imported: any object with ``get``, ``put``, ``delete`` and ``search`` of LangGraph's ``BaseStore`` will do.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timezone
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from coatcheck.core.errors import CorruptContent, InvalidRequest, StorageError, describe_error
from coatcheck.core.references import Key, is_storage_key, scope_tags
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first, parse_after, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

__all__ = ("LangGraphStoreBridge",)

MAX_ENTRY_BYTES = 16_000_000
"""Bytes of an entry as it is sent, in base64: what MongoDB accepts as a document, the least of the stores' backends."""

MAX_ENTRY = MAX_ENTRY_BYTES // 4 * 3 - 4_096
"""Bytes of content in one entry, such that base64, type and metadata fit. Larger content is split. With a lower limit,
ranges of smaller content would be cheap to read too, but version 0.1.0 cannot read split content."""

PART_BYTES = 1 << 20
"""Bytes of content in one part: about what ``reading`` asks for at a time. An async store encodes values on the event
loop, and a part this small does not hold the loop up. All parts of a content but the last have this size; the entry
records it, so that another version may choose another."""

PAGE = 20
"""Entries of a listing in one answer. A store answers with whole values, so a page of large ones is large."""

_PARTS = "parts"
_UNFINISHED = "unfinished"
"""The end of a mark's key. The mark says that parts are being written. It has a key like any entry, so what a killed
writer left is listed, swept, and deleted with its scope."""

_ON_ITS_LOOP = (
    "an async store answers no sync call on its own event loop: await the async method, such as ainvoke, aoffload or"
    " adelete_scopes, or make the call on another thread"
)

_REFUSED_ROOT = "langgraph"
"""The one label with which no namespace may begin, in any LangGraph store."""

_UNFIT = ("langgraph.store.redis", "langgraph_checkpoint_aws.store.valkey", "langgraph_checkpoint_aws.store.dynamodb")
"""Modules of stores that, when we tried them, lost content or did not find all that they held: see docs/bridges.md."""

_NOT_IN_A_LABEL = frozenset(".\0")

_Place: TypeAlias = tuple[tuple[str, ...], str]
"""Namespace and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The entry that makes a content visible."""

    content_type: str
    metadata: Mapping[str, str]
    size: int
    content: bytes | None
    """None if the content is split."""

    part_bytes: int
    """Bytes of each part but the last; 0 if the content is not split."""


class _Item(Protocol):
    """The members of LangGraph's ``Item`` that are used here."""

    @property
    def namespace(self) -> tuple[str, ...]: ...
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> dict[str, Any]: ...
    @property
    def updated_at(self) -> datetime: ...


class _Store(Protocol):
    """The methods of LangGraph's ``BaseStore`` that are used here."""

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = ...) -> _Item | None: ...
    def put(self, namespace: tuple[str, ...], key: str, value: dict[str, Any], index: Any = ...) -> None: ...  # noqa: ANN401 - not named further by LangGraph
    def delete(self, namespace: tuple[str, ...], key: str) -> None: ...
    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        limit: int = ...,
        offset: int = ...,
        refresh_ttl: bool | None = ...,
    ) -> Sequence[_Item]: ...


class LangGraphStoreBridge:
    """Keeps content in a LangGraph store, and never adds it to the store's search index.

    Content of up to 12 MB is one entry; larger content is split into parts of 1 MB, and a range reads only the parts
    that it needs. A killed writer may leave parts behind: they are listed under a key that ends in ``-unfinished``.

    It takes sync stores, and in async agents also async ones (``AsyncPostgresStore``, ...): their plain methods are
    called on threads of ours and run on the loop that the store belongs to. An async store has no other loop, so a sync
    agent needs a sync store.

    Every method raises the store's own errors too.

    Listing reads whole values, since stores list no other way. Clean up large stores with their own means, such as a
    time to live. ``page`` reads little more than what is on the page.
    """

    def __init__(self, store: _Store, namespace: tuple[str, ...] = ("coatcheck", "v1")) -> None:
        """Take a store, and the namespace that is ours in it.

        Raises:
            InvalidRequest: ``store`` lacks a method; or it loses content or does not find all that it holds
                (``RedisStore``, ``ValkeyStore``, ``DynamoDBStore``); or LangGraph's stores refuse ``namespace``: it is
                not a tuple of str, it is empty, a label is empty or contains a period or NUL, or the first label is
                ``langgraph``.

        """
        if isinstance(store, type) or not all(
            callable(getattr(store, name, None)) for name in ("get", "put", "delete", "search")
        ):
            msg = (
                f"LangGraphStoreBridge needs a LangGraph store, such as InMemoryStore() or PostgresStore, not {store!r}"
            )
            raise InvalidRequest(msg)
        if any(kind.__module__.startswith(_UNFIT) for kind in type(store).__mro__):
            msg = (
                f"{type(store).__name__} does not find all that it holds, so a deletion would leave content behind: use"
                " another storage; docs/bridges.md says more"
            )
            raise InvalidRequest(msg)
        _require_namespace(namespace)
        self._store = store
        self._namespace = namespace
        self._longest_read = 0
        """Characters of the longest namespace, joined by periods, that is known to give back what was put there."""

    def __deepcopy__(self, memo: object) -> LangGraphStoreBridge:
        """Return the bridge itself: a copy of its store would lack what is saved from now on."""
        return self

    def __repr__(self) -> str:
        return f"LangGraphStoreBridge({type(self._store).__name__}, {self._namespace!r})"

    def describe_error(self, error: Exception) -> str:
        """Describe an error, and say what to call if an async store was called on its own loop."""
        words = describe_error(error)
        return f"{words}: {_ON_ITS_LOOP}" if type(error).__name__ == "InvalidStateError" else words

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry; an existing one is written again, with all its parts, which refreshes its time.

        Raises:
            StorageError: the key is malformed, another content has it, or the store does not give back what it took.

        """
        parsed = Key.parse(key)
        value = {"content_type": content_type, "metadata": dict(metadata), "size": len(content)}
        with suppress(CorruptContent):  # this save replaces a damaged entry
            existing = self._head(parsed)
            if existing is not None:
                refuse_other_content(key, existing.metadata, metadata)
        if len(content) <= MAX_ENTRY:
            self._put(self._place(parsed), {"content": _encoded(content), **value})
        else:
            self._save_parts(parsed, content, {"part_bytes": PART_BYTES, **value})

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None; also None if a part of it is gone.

        Raises:
            CorruptContent: the entry is not what ``save`` writes.
            StorageError: the key is malformed.

        """
        return self._load(key, start=0, length=None)

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None; raises what ``load`` raises.

        For split content, only the parts in the range are read. An entry of up to 12 MB is read whole, and is also
        returned whole, in ``Stored.whole``.
        """
        return self._load(key, start=start, length=length)

    def delete(self, key: str) -> None:
        """Remove the entry with its parts, if it exists.

        Raises:
            StorageError: the key is malformed.

        """
        parsed = Key.parse(key)
        content = _content_of(parsed)
        # Parts first: after a crash in between, the listing still leads to the parts that are left.
        if content == parsed or self._store.get(*self._place(content)) is None:
            self._delete_parts(content)
        self._store.delete(*self._place(parsed))

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``, even damaged ones. A whole key is cheap."""
        return list(self._listed(prefix))

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        """Return a page of the entries whose key starts with ``prefix``, newest first.

        Most stores return the last saved first, so the first page costs one search for each 20 entries, and one more to
        see whether there are more. Each further page searches from the beginning again, and entries of the same moment,
        as from a burst, are read together. A store that returns another order, as ``InMemoryStore`` does, is listed
        whole for every page.

        Raises:
            InvalidRequest: ``after`` did not come from a page.

        """
        found: list[Listed] = []
        begin = math.inf if after is None else -parse_after(after)[0]
        wanted = limit + 1  # with the first entry of the next page
        for entry in self._listed(prefix):
            if found and entry.modified > found[-1].modified:
                return newest_first([*self._listed(prefix)], limit=limit, after=after)
            if wanted <= 0 and entry.modified < found[-1].modified:
                break
            found.append(entry)
            wanted -= entry.modified < begin
        return newest_first(found, limit=limit, after=after)

    def _listed(self, prefix: str) -> Iterator[Listed]:
        """Yield the entries whose key starts with ``prefix``, searching for more only as the caller asks for them."""
        for item in self._items(prefix):
            ours, below = item.namespace[: len(self._namespace)], item.namespace[len(self._namespace) :]
            key = f"{''.join(below)}/{item.key}"
            if ours == self._namespace and key.startswith(prefix) and is_storage_key(key):
                size = item.value.get("size")
                size = size if isinstance(size, int) and size >= 0 else 0
                kept = item.value.get("metadata")
                metadata = dict(kept) if isinstance(kept, dict) else None
                kind = item.value.get("content_type")
                kind = kind if isinstance(kind, str) else None
                modified = _seconds(item.updated_at)
                yield Listed(key=key, size=size, modified=modified, metadata=metadata, content_type=kind)

    # Parts.

    def _save_parts(self, key: Key, content: bytes, head: dict[str, Any]) -> None:
        """Save content that is too large for one entry; the entry that makes it visible is written last.

        Equal content has equal parts, so writing them again in place harms no reader and no other writer.
        """
        mark = _mark_of(key)
        self._put(self._place(mark), {"size": len(content)})
        try:
            for start in range(0, len(content), PART_BYTES):
                part = content[start : start + PART_BYTES]
                self._put(self._part(key, start // PART_BYTES), {"content": _encoded(part)})
            self._put(self._place(key), head)
        except BaseException:
            with suppress(Exception):  # a sweep removes what cannot be removed now
                self.delete(str(mark))
            raise
        self._store.delete(*self._place(mark))

    def _load(self, key: str, *, start: int, length: int | None) -> Stored | None:
        parsed = Key.parse(key)
        head = self._head(parsed)
        if head is None:
            return None
        stop = head.size if length is None else min(head.size, start + length)
        if head.content is None:
            content = self._joined(parsed, head, start=start, stop=stop)
        else:
            content = head.content[start:stop]
        if content is None:
            return None
        return Stored(
            content=content,
            content_type=head.content_type,
            metadata=head.metadata,
            size=head.size,
            whole=None if length is None else head.content,
        )

    def _joined(self, key: Key, head: _Head, *, start: int, stop: int) -> bytes | None:
        """Return the bytes from ``start`` to ``stop`` of split content, or None if one of the parts is gone.

        It may be gone because a deletion removes the parts first, or because a time to live expires for each part.
        """
        size = head.part_bytes
        first = start // size
        parts: list[bytes] = []
        for number in range(first, -(-stop // size) if start < stop else first):
            item = self._store.get(*self._part(key, number))
            if item is None:
                return None
            with self._damage(key):
                part = _decoded(item.value)
                if len(part) != min(size, head.size - number * size):
                    msg = f"part {number} has {len(part):,} bytes"
                    raise ValueError(msg)
            parts.append(part)
        return b"".join(parts)[start - first * size : stop - first * size]

    def _delete_parts(self, key: Key) -> None:
        # Search for the parts: the entry that says how many there are may be damaged, or was never written.
        within = self._part(key, 0)[0]
        while parts := [item.key for item in self._store.search(within, limit=PAGE) if item.namespace == within]:
            for part in parts:
                self._store.delete(within, part)

    # Entries.

    def _put(self, place: _Place, value: dict[str, Any]) -> None:
        """Put an entry; read it back if its namespace is longer than any before it.

        A search engine that cuts long words, such as that of Redis, may not find an entry in a long namespace again.
        """
        self._store.put(*place, value, index=False)
        length = len(".".join(place[0]))
        if length > self._longest_read:
            if self._store.get(*place) is None:
                self._store.delete(*place)
                msg = f"{self!r} does not give back what was just saved in a namespace of {length} characters"
                raise StorageError(msg)
            self._longest_read = length

    def _head(self, key: Key) -> _Head | None:
        """Return the entry under a key, without its parts.

        Raises:
            CorruptContent: it is not what ``save`` writes.

        """
        found = self._store.get(*self._place(key))
        if found is None:
            return None
        with self._damage(key):
            value = found.value
            is_split = "part_bytes" in value
            content = None if is_split else _decoded(value)
            return _Head(
                content_type=str(value["content_type"]),
                metadata=dict(value["metadata"]),
                size=_count(value["size"]) if content is None else len(content),
                content=content,
                part_bytes=_count(value["part_bytes"], least=1) if is_split else 0,
            )

    @contextmanager
    def _damage(self, key: Key) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, KeyError) as error:
            msg = f"what {self!r} holds under {key} is damaged: {error}"
            raise CorruptContent(msg) from error

    def _items(self, prefix: str) -> Iterator[_Item]:
        """Yield the items that may have keys with this ``prefix``, each once.

        Listing an entry does not renew its time to live, which MongoDB's store would even treat as a save.
        """
        if is_storage_key(prefix):
            places = map(self._place, Key.parse(prefix).family)
            yield from filter(None, (self._store.get(*place, refresh_ttl=False) for place in places))
            return
        yield from self._found((*self._namespace, *scope_tags(prefix)))

    def _found(self, within: tuple[str, ...]) -> Iterator[_Item]:
        """Yield what a namespace holds, each item once.

        Stores page only by offset, the last saved first. Items saved at the same moment, as in a burst, have no order
        and may change places from page to page, so all items of one moment are read in one page, however long. And a
        deletion moves the items after it towards the front, where the next page would miss them. So each page must
        begin with an item that was seen already; if it does not, we go back.
        """
        seen: set[_Place] = set()
        gone_back_from: set[tuple[int, _Place | None]] = set()
        offset, limit, moment = 0, PAGE, None
        while True:
            try:
                page = self._store.search(within, limit=limit, offset=offset, refresh_ttl=False)
            except NotImplementedError:  # MongoDB's store has no offset
                yield from (item for item in self._whole(within) if (item.namespace, item.key) not in seen)
                return
            first = (page[0].namespace, page[0].key) if page else None
            is_gap = first not in seen or page[0].updated_at == moment
            # Only once from each place: a store without any order would keep us here forever.
            if offset and is_gap and (offset, first) not in gone_back_from:
                gone_back_from.add((offset, first))
                offset, limit = max(0, offset - PAGE), PAGE
                continue
            for item in page:
                place = item.namespace, item.key
                if place not in seen:
                    seen.add(place)
                    yield item
            if len(page) < 2:  # noqa: PLR2004 - nothing, or only what was seen
                return
            moment = page[-1].updated_at
            cut = sum(1 for _ in takewhile(lambda item: item.updated_at == moment, reversed(page)))  # noqa: B023 - used at once
            if len(page) < limit:
                offset, limit, moment = offset + len(page) - 1, PAGE, None
            elif cut < len(page) - 1:
                offset, limit = offset + len(page) - cut - 1, PAGE
            else:
                limit *= 2

    def _whole(self, within: tuple[str, ...]) -> Sequence[_Item]:
        limit = 2 * PAGE
        while len(page := self._store.search(within, limit=limit, refresh_ttl=False)) == limit:
            limit *= 2
        return page

    def _place(self, key: Key) -> _Place:
        return (*self._namespace, *scope_tags(key.scope)), key.name

    def _part(self, key: Key, number: int) -> _Place:
        return (*self._namespace, _PARTS, *scope_tags(key.scope), key.name), f"{number:05}"


def _require_namespace(namespace: object) -> None:
    """Refuse a namespace that LangGraph's stores would otherwise refuse at every call."""
    if (
        not isinstance(namespace, tuple)
        or not namespace
        or not all(isinstance(label, str) and label and not _NOT_IN_A_LABEL & set(label) for label in namespace)
        or namespace[0] == _REFUSED_ROOT
    ):
        msg = (
            "namespace must be a tuple of non-empty str without a period or NUL that does not begin with"
            f" {_REFUSED_ROOT!r}, such as ('acme', 'coatcheck'), not {namespace!r}: LangGraph's stores refuse it"
        )
        raise InvalidRequest(msg)


def _mark_of(key: Key) -> Key:
    """Return the key of the mark that says that the parts of the entry under ``key`` are being written."""
    return replace(key, kind=key.kind + _UNFINISHED)


def _content_of(key: Key) -> Key:
    """Return the key of the entry that a mark stands for; any other key as it is."""
    return replace(key, kind=key.kind.removesuffix(_UNFINISHED))


def _seconds(moment: datetime) -> float:
    # SQLite's store returns UTC without a time zone, which Python would take for local time.
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)).timestamp()


def _encoded(content: bytes) -> str:
    return b64encode(content).decode("ascii")


def _decoded(value: Mapping[str, Any]) -> bytes:
    return b64decode(value["content"], validate=True)


def _count(number: object, *, least: int = 0) -> int:
    if not isinstance(number, int) or number < least:
        msg = f"{number!r} is not a number of bytes"
        raise ValueError(msg)
    return number
