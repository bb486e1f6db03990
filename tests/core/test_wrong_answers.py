"""Storages that return the wrong thing: a StorageError says what is wrong, and no foreign error escapes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import Always, CorruptContent, InMemoryStorage, Listed, Offloader, StorageError, Stored, TextBlock
from coatcheck.engine.cleanup import GRACE_SECONDS
from coatcheck.engine.entries import damage
from coatcheck.engine.execution import StorageAccess, run
from tests.core.storages import DictStorage, RangeStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

BIG = "".join(f"line {number} of a report\n" for number in range(100_000))

WRONG_FIELDS = [
    ("content", "text", "str as content, where it must have bytes"),
    ("content", bytearray(b"x"), "bytearray as content, where it must have bytes"),
    ("content", None, "NoneType as content"),
    ("content_type", None, "NoneType as content_type, where it must have str"),
    ("content_type", b"text/plain", "bytes as content_type"),
    ("metadata", None, "NoneType as metadata, where it must have Mapping"),
    ("metadata", [("sha256", "0")], "list as metadata"),
    ("size", None, "NoneType as size, where it must have int"),
    ("size", "4", "str as size"),
    ("size", 4.0, "float as size"),
    ("size", True, "bool as size"),
    ("size", -1, "of size -1"),
    ("whole", "text", "str as whole, where it must have bytes"),
]
WRONG_ANSWERS = [(b"raw", "answered with bytes"), ({"content": b""}, "answered with dict"), (42, "answered with int")]


class AnsweringStorage(RangeStorage):
    """Returns what ``change`` makes of each entry."""

    change: Callable[[Stored], Any] = staticmethod(lambda found: found)

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return None if found is None else self.change(found)

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        found = super().load_range(key, start=start, length=length)
        return None if found is None else self.change(found)

    def entries(self, prefix: str) -> Any:  # noqa: ANN401 - whatever a test tries
        return [Listed(key=key, size=1, modified=0.0) for key in self.kept if key.startswith(prefix)]

    def delete(self, key: str) -> None:
        self.kept.pop(key)


class WholeStorage(DictStorage):
    """The same, but loads only whole entries."""

    change: Callable[[Stored], Any] = staticmethod(lambda found: found)

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return None if found is None else self.change(found)


def wrong(field: str, value: Any) -> Callable[[Stored], Stored]:  # noqa: ANN401 - of no type that would do
    return lambda found: replace(found, **{field: value})


CHANGES = [
    *(pytest.param(wrong(field, value), words, id=f"{field}={value!r}") for field, value, words in WRONG_FIELDS),
    *(pytest.param(lambda _, answer=answer: answer, words, id=repr(answer)) for answer, words in WRONG_ANSWERS),
]


@pytest.mark.parametrize("kind", [AnsweringStorage, WholeStorage])
@pytest.mark.parametrize(("change", "words"), CHANGES)
async def test_a_wrong_answer_to_a_load_is_a_storage_error_that_says_what_is_wrong(
    kind: type[AnsweringStorage | WholeStorage], change: Callable[[Stored], Any], words: str
) -> None:
    storage = kind()
    offloader = Offloader(storage, policies={"*": Always()})
    reference = str(offloader.offload([TextBlock(BIG)], tool_name="t", scope="s").references[0])
    storage.change = change

    for read in (offloader.load, offloader.retrieve):
        with pytest.raises(StorageError, match=words):
            read(reference, scope="s")
    for aread in (offloader.aload, offloader.aretrieve):
        with pytest.raises(StorageError, match=words):
            await aread(reference, scope="s")
    with pytest.raises(StorageError, match=words):
        offloader.expand(f"see {reference}", scope="s")


@pytest.mark.parametrize("kind", [AnsweringStorage, WholeStorage])
def test_an_intact_entry_under_another_entrys_key_is_refused(kind: type[AnsweringStorage | WholeStorage]) -> None:
    storage = kind()
    offloader = Offloader(storage, policies={"*": Always()})
    references = [
        str(offloader.offload([TextBlock(text)], tool_name="t", scope="s").references[0]) for text in ("mine", "yours")
    ]
    mine, yours = storage.kept
    storage.kept[mine] = storage.kept[yours]  # with its own checksum

    with pytest.raises(CorruptContent, match=mine):
        offloader.load(references[0], scope="s")
    with pytest.raises(CorruptContent, match=mine):
        offloader.retrieve(references[0], scope="s")
    assert offloader.load(references[1], scope="s").text == "yours"


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_a_check_for_damage_says_what_is_wrong(change: Callable[[Stored], Any], words: str) -> None:
    storage = AnsweringStorage()
    Offloader(storage, policies={"*": Always()}).offload([TextBlock("text")], tool_name="t", scope="s")
    (entry,) = storage.entries("")
    storage.change = change

    found = run(damage(StorageAccess(storage), entry, keys={entry.key}))

    assert isinstance(found, StorageError)
    assert words in str(found)


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_a_wrong_line_index_costs_only_time(change: Callable[[Stored], Any], words: str) -> None:
    del words
    storage = AnsweringStorage()
    offloader = Offloader(storage)
    reference = str(offloader.offload([TextBlock(BIG)], tool_name="t", scope="s").references[0])
    assert any(key.endswith("-lines") for key in storage.kept)
    storage.change = lambda found: change(found) if "json" in found.content_type else found

    assert "line 90000 of" in offloader.retrieve(reference, scope="s", line_range="90001-90001").text


def listed(*, key: Any = "k", size: Any = 1, modified: Any = 0.0) -> Listed:  # noqa: ANN401 - of types that do not fit
    return Listed(key=key, size=size, modified=modified)


def failing() -> Iterator[Listed]:
    yield Listed(key="0" * 16 + "/" + "0" * 16, size=1, modified=0.0)
    message = "the connection broke"
    raise OSError(message)


async def streaming() -> AsyncIterator[Listed]:
    yield Listed(key="0" * 16 + "/" + "0" * 16, size=1, modified=0.0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "Storage.entries must return an iterable of coatcheck.Listed, not NoneType; fix the storage"),
        (42, "entries must return an iterable of coatcheck.Listed, not int; fix the storage"),
        (streaming(), "entries must return an iterable of coatcheck.Listed, not async_generator; fix the storage"),
        (failing(), r"listing \(Storage\) failed: OSError"),
        (["content"], "must list coatcheck.Listed .*, not str; fix"),
        ([listed(key=5)], r"must list .* key: str.*, not .*Listed\(key: int, "),
        ([listed(size=None)], r"must list .* size: int.*, not .*size: NoneType, "),
        ([listed(modified="now")], r"must list .* modified: float.*, not .*modified: str, "),
        ([listed(modified=10**400)], r"must list .* modified: float.*, not .*modified: int, "),
    ],
    ids=["None", "int", "async generator", "raises amid", "str", "key", "size", "modified", "too late"],
)
def test_a_wrong_listing_is_a_storage_error(answer: object, words: str) -> None:
    class Storage(AnsweringStorage):
        def entries(self, prefix: str) -> Any:  # noqa: ANN401 - whatever a test tries
            del prefix
            return answer

    with pytest.raises(StorageError, match=words):
        Offloader(Storage()).delete_scope("s")


def test_a_wrong_answer_to_a_sweep_is_a_storage_error() -> None:
    class Storage(AnsweringStorage):
        def sweep(self, keys: object, *, before: float) -> Any:  # noqa: ANN401 - whatever a test tries
            del keys, before

    with pytest.raises(
        StorageError, match="sweep must return the number of entries that it removed, an int, not NoneType"
    ):
        Offloader(Storage()).sweep(max_bytes=0)


class OddlyListing(InMemoryStorage):
    """Lists what ``listed`` makes of its entries. It has no ``sweep``, so the engine sweeps."""

    sweep = None  # type: ignore[assignment]
    listed: Callable[[list[Listed]], list[Listed]] = staticmethod(lambda entries: entries)
    ignores_prefix = False

    def entries(self, prefix: str) -> list[Listed]:
        return self.listed(super().entries("" if self.ignores_prefix else prefix))


def test_a_storage_that_ignores_the_prefix_loses_no_content_of_other_scopes() -> None:
    storage = OddlyListing()
    offloader = Offloader(storage, policies={"*": Always()})
    references = {scope: _stored(offloader, scope, scope=scope) for scope in ("mine", "yours")}
    storage.ignores_prefix = True

    assert offloader.delete_scope("mine") == 1
    assert offloader.load(references["yours"], scope="yours").text == "yours"


def test_a_storage_that_lists_an_entry_twice_loses_nothing_within_the_limit() -> None:
    storage = OddlyListing()
    offloader = Offloader(storage, policies={"*": Always()})
    references = [_stored(offloader, f"text {number}", scope="s") for number in range(4)]
    storage.listed = lambda entries: [replace(each, modified=each.modified - 2 * GRACE_SECONDS) for each in entries * 2]

    assert offloader.sweep(max_bytes=4 * len("text 0")) == 0
    assert {offloader.load(each, scope="s").text for each in references} == {f"text {number}" for number in range(4)}
    assert offloader.sweep(max_bytes=3 * len("text 0")) == 1


def test_the_later_save_of_an_entry_listed_twice_counts() -> None:
    storage = OddlyListing()
    offloader = Offloader(storage, policies={"*": Always()})
    reference = _stored(offloader, "text", scope="s")
    storage.listed = lambda entries: [*entries, *(replace(each, modified=0.0) for each in entries)]

    assert offloader.sweep(max_age_seconds=2 * GRACE_SECONDS) == 0
    assert offloader.load(reference, scope="s").text == "text"


def _stored(offloader: Offloader, text: str, *, scope: str) -> str:
    return str(offloader.offload([TextBlock(text)], tool_name="t", scope=scope).references[0])
