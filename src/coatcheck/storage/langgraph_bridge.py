"""A LangGraph store as a storage: content beside a graph's long-term memory, in Postgres, Redis, SQLite or MongoDB.

    namespace   (*namespace, <scope>)          key   <digest>
    value       {"content": base64, "content_type": ..., "metadata": {...}, "size": bytes}

Only the two shapes meet here; LangGraph is not imported. Any object with ``get``, ``put``, ``delete`` and ``search`` of
LangGraph's ``BaseStore`` will do.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from coatcheck.errors import CorruptContent, InvalidRequest, StorageError
from coatcheck.references import is_storage_key, keys_from, require_storage_key
from coatcheck.storage.failing import failing_as_storage_error
from coatcheck.storage.memory import refuse_other_content
from coatcheck.storage.protocol import Listed, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

__all__ = ("LangGraphStoreBridge",)

MAX_ENTRY_BYTES = 16_000_000
"""Of an entry as it is sent, base64: what MongoDB takes for a document, the least of the stores' backends."""

LARGEST_CONTENT = MAX_ENTRY_BYTES // 4 * 3 - 4_096
"""Bytes of content, so that base64, type and metadata fit."""

PAGE = 20
"""Entries of a listing in one answer: a store answers with whole values, so a page of large ones is large."""


class _Item(Protocol):
    """The part of LangGraph's ``Item`` that is read here."""

    @property
    def namespace(self) -> tuple[str, ...]: ...
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> dict[str, Any]: ...
    @property
    def updated_at(self) -> datetime: ...


class _Store(Protocol):
    """The part of LangGraph's ``BaseStore`` that is used here."""

    def get(self, namespace: tuple[str, ...], key: str) -> _Item | None: ...
    def put(self, namespace: tuple[str, ...], key: str, value: dict[str, Any], index: Any = ...) -> None: ...  # noqa: ANN401 - not named further by LangGraph
    def delete(self, namespace: tuple[str, ...], key: str) -> None: ...
    def search(
        self, namespace_prefix: tuple[str, ...], /, *, limit: int = ..., offset: int = ...
    ) -> Sequence[_Item]: ...


class LangGraphStoreBridge:
    """Keeps content in a LangGraph store, at most some 12 MB in one entry, and never in its index for searching.

    Takes sync stores, and async ones (``AsyncPostgresStore``, ...) in async agents: their plain methods are called on
    threads of ours, and run on the loop that the store belongs to. An async store has no other loop, so a sync agent
    needs a sync store.

    Listing reads whole values, since stores list no other way: clean up large stores with their own means, such as a
    time to live.
    """

    def __init__(self, store: _Store, namespace: tuple[str, ...] = ("coatcheck", "v1")) -> None:
        """Take a store, and the namespace that is ours in it.

        Raises:
            InvalidRequest: ``store`` has not the methods of a store, or ``namespace`` is no tuple of texts.

        """
        if isinstance(store, type) or not all(
            callable(getattr(store, name, None)) for name in ("get", "put", "delete", "search")
        ):
            msg = (
                f"LangGraphStoreBridge needs a LangGraph store, such as InMemoryStore() or PostgresStore, not {store!r}"
            )
            raise InvalidRequest(msg)
        if not isinstance(namespace, tuple) or not namespace or not all(isinstance(part, str) for part in namespace):
            msg = f"namespace must be a tuple of texts, such as ('coatcheck', 'v1'), not {namespace!r}"
            raise InvalidRequest(msg)
        self._store = store
        self._namespace = namespace

    def __repr__(self) -> str:
        return f"LangGraphStoreBridge({type(self._store).__name__}, {self._namespace!r})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry; one that is there already is saved again, which refreshes its time.

        Raises:
            StorageError: the content is too large, the key is malformed, another content has it, or the store failed.

        """
        namespace, digest = self._place(key)
        if len(content) > LARGEST_CONTENT:
            msg = f"content of {len(content):,} bytes is larger than a LangGraph store takes, {LARGEST_CONTENT:,} bytes"
            raise StorageError(msg)
        with suppress(CorruptContent):  # what is saved now replaces what is damaged
            existing = self.load(key)
            if existing is not None:
                refuse_other_content(key, existing.metadata, metadata)
        value = {
            "content": b64encode(content).decode("ascii"),
            "content_type": content_type,
            "metadata": dict(metadata),
            "size": len(content),
        }
        with failing_as_storage_error(self, f"save {len(content):,} bytes"):
            self._store.put(namespace, digest, value, index=False)

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None.

        Raises:
            CorruptContent: what is there is not what ``save`` writes.
            StorageError: the key is malformed, or the store failed.

        """
        namespace, digest = self._place(key)
        with failing_as_storage_error(self, f"load {key!r}"):
            found = self._store.get(namespace, digest)
        if found is None:
            return None
        try:
            content = b64decode(found.value["content"], validate=True)
            return Stored(
                content=content,
                content_type=str(found.value["content_type"]),
                metadata=dict(found.value["metadata"]),
                size=len(content),
            )
        except (ValueError, TypeError, KeyError) as error:
            msg = f"what {self!r} holds under {key!r} is damaged: {error}"
            raise CorruptContent(msg) from error

    def delete(self, key: str) -> None:
        """Remove the entry, if it is there.

        Raises:
            StorageError: the key is malformed, or the store failed.

        """
        namespace, digest = self._place(key)
        with failing_as_storage_error(self, f"delete {key!r}"):
            self._store.delete(namespace, digest)

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``, damaged ones too; a whole key costs its entries only.

        Raises:
            StorageError: the store failed.

        """
        found: list[Listed] = []
        with failing_as_storage_error(self, "list its entries"):
            for item in self._items(prefix):
                key = "/".join((*item.namespace[len(self._namespace) :], item.key))
                if key.startswith(prefix) and is_storage_key(key):
                    size = item.value.get("size")
                    size = size if isinstance(size, int) and size >= 0 else 0
                    found.append(Listed(key=key, size=size, modified=item.updated_at.timestamp()))
        return found

    def _items(self, prefix: str) -> Iterator[_Item]:
        """Yield what may have such a key, each item once.

        Stores know pages by offset only. A deletion moves what follows towards the front, where the next page would
        miss it: so each page must begin with an item of those before it, and where one does not, we go back.
        """
        if is_storage_key(prefix):
            yield from filter(None, (self._store.get(*self._place(key)) for key in keys_from(prefix)))
            return
        scope, slash, _ = prefix.partition("/")
        within = (*self._namespace, scope) if slash else self._namespace
        seen: set[tuple[tuple[str, ...], str]] = set()
        gone_back_from: set[tuple[int, tuple[tuple[str, ...], str] | None]] = set()
        offset = 0
        while True:
            page = {(item.namespace, item.key): item for item in self._store.search(within, limit=PAGE, offset=offset)}
            first = next(iter(page), None)
            # Once from one place: a store may order what was saved in one moment differently from page to page.
            if offset and first not in seen and (offset, first) not in gone_back_from:
                gone_back_from.add((offset, first))
                offset = max(0, offset - PAGE)
                continue
            yield from (item for place, item in page.items() if place not in seen)
            seen.update(page)
            if len(page) < 2:  # noqa: PLR2004 - nothing, or what was seen
                return
            offset += len(page) - 1

    def _place(self, key: str) -> tuple[tuple[str, ...], str]:
        scope, _, digest = require_storage_key(key).partition("/")
        return (*self._namespace, scope), digest
