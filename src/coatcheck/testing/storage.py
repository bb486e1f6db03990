"""The storage contract: what every storage promises, and what each capability adds. Subclass to test yours.

    class TestMyStorage(StorageContract, ReadsRangesContract, DeletesContract):
        @pytest.fixture
        def storage(self, tmp_path):
            return MyStorage(tmp_path)

One suite for sync and async storages. It tests behaviour only, never the words of an error; each test says what to
check if it fails. Capabilities are in ``capabilities``.
"""

# ruff: noqa: S101 - assert is how pytest asks

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pytest

from coatcheck.core.blocks import JsonBlock, MediaBlock, Offloaded, TextBlock
from coatcheck.core.errors import StorageError
from coatcheck.core.policy import Always
from coatcheck.offloader import Offloader
from coatcheck.storage.protocol import (
    Deletes,
    DeletesMany,
    Lists,
    ListsPages,
    LocalPath,
    ReadsRanges,
    Storage,
    Stored,
    Sweeps,
)
from coatcheck.testing.samples import EVERY_BYTE, MALFORMED_KEYS, Entry, id_of_key, make_entry, noise, numbered_lines
from coatcheck.testing.suite import Contract, require_same, wait_for

if TYPE_CHECKING:
    from coatcheck.core.blocks import Outcome
    from coatcheck.core.retrieved import Content

__all__ = ("THREADS", "StorageContract", "check_holds", "load", "save")

LARGE_BYTES = 5_000_000
"""Larger than the buffers and the part sizes of usual backends, small enough for every test run."""

THREADS = 8

LONGEST_HOLD_UP_SECONDS = 0.25
"""Far longer than starting a call takes, too short for a person or a framework's timeout to notice."""

REFUSALS = (StorageError, ValueError)
"""The errors with which a storage may refuse a key that the engine never makes."""

CAPABILITIES = (ReadsRanges, Deletes, DeletesMany, Lists, ListsPages, Sweeps, LocalPath)


class StorageContract(Contract):
    """What every storage promises: bytes under keys, whole and exact, for one scope only."""

    @pytest.fixture
    def storage(self) -> Storage:
        """Override: return your storage, empty or at least without anything from earlier tests of this process."""
        message = (
            f"{type(self).__name__} does not say which storage to test: give it a fixture\n\n"
            "    @pytest.fixture\n"
            "    def storage(self):\n"
            "        return MyStorage(...)\n"
        )
        raise NotImplementedError(message)

    def test_has_the_methods_of_a_storage(self, storage: Storage) -> None:
        """A storage has ``save`` and ``load``, by these names.

        If this fails, check that the fixture returns an instance, not a class, and that both methods are there.
        """
        assert isinstance(storage, Storage), f"{storage!r} lacks save or load"
        assert not isinstance(storage, type), f"the fixture returned the class {storage!r}, not an instance"

    def test_tests_every_capability_that_the_storage_has(self, storage: Storage) -> None:
        """Every capability of the storage is tested: the engine uses each one that it finds.

        If this fails, check that your class also inherits the contract named after the capability, such as
        ``ReadsRangesContract``, or that the storage has no method of that name by accident.
        """
        has = {capability.__name__ for capability in CAPABILITIES if isinstance(storage, capability)}
        tested = {capability.__name__ for capability in CAPABILITIES if _tests(type(self), capability)}
        assert has == tested, f"the storage has {sorted(has)}, the suite tests {sorted(tested)}"

    def test_loads_the_bytes_that_were_saved(self, storage: Storage) -> None:
        """``load`` returns what was saved, to the last byte, and ``size`` is its length.

        If this fails, check for text conversions (line ends, encodings), for truncation, and for padding.
        """
        check_round_trip(storage, make_entry(b"first line\nsecond line\r\nno line end at the end"))

    def test_keeps_empty_content(self, storage: Storage) -> None:
        """Empty content is content: it is loaded as an entry of 0 bytes, not as None.

        If this fails, check for a truthiness test on the bytes where a test for None is meant.
        """
        check_round_trip(storage, make_entry(b""))

    def test_keeps_every_byte(self, storage: Storage) -> None:
        """NUL, line ends of every kind, bytes that are not UTF-8, and a byte order mark come back unchanged.

        If this fails, check that nothing decodes, strips or escapes the content on the way.
        """
        check_round_trip(storage, make_entry(EVERY_BYTE, content_type="image/png"))

    def test_keeps_large_content(self, storage: Storage) -> None:
        """Five megabytes come back whole.

        If this fails, check for limits of the backend on one value, and for reads that return less than asked.
        """
        check_round_trip(storage, make_entry(noise(LARGE_BYTES), content_type="application/octet-stream"))

    @pytest.mark.parametrize(
        "content_type",
        ["text/plain", "application/json", "image/svg+xml", "application/vnd.a.b-c+json", 'x/y; a="b c"'],
    )
    def test_keeps_the_content_type(self, storage: Storage, content_type: str) -> None:
        """The content type comes back as it was saved: reading and the model's view depend on it.

        If this fails, check that the type is stored, not guessed again from a name or from the content.
        """
        entry = make_entry(b"[1, 2]", content_type=content_type)
        save(storage, entry)
        assert load(storage, entry).content_type == content_type, "the content type was not kept"

    def test_keeps_the_metadata(self, storage: Storage) -> None:
        """Metadata, a mapping of strings to strings, comes back unchanged.

        If this fails, check that all of it is stored, and that the backend changes no case and adds nothing.
        """
        entry = make_entry(b"content", lines="1", characters="7", index="lines")
        save(storage, entry)
        assert dict(load(storage, entry).metadata) == entry.metadata, "the metadata was not kept"

    def test_an_unknown_key_gives_none(self, storage: Storage) -> None:
        """A key that was never saved does not raise: ``load`` returns None.

        If this fails, check that the backend's "not found", and only that, becomes None: every other failure is raised.
        """
        save(storage, make_entry(b"something else"))
        try:
            found = wait_for(storage.load(make_entry(b"never saved").key))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the defect
            pytest.fail(f"load of an unknown key raised {error!r} instead of returning None", pytrace=False)
        assert found is None, "load of an unknown key returned something other than None"

    def test_a_miss_is_not_remembered(self, storage: Storage) -> None:
        """A key that was missing once is found after it is saved.

        If this fails, check for a cache that also keeps "not found".
        """
        entry = make_entry(b"looked for too early")
        assert wait_for(storage.load(entry.key)) is None
        save(storage, entry)
        check_holds(storage, entry, "after it was looked for in vain: the miss is remembered")

    def test_saving_again_changes_nothing(self, storage: Storage) -> None:
        """A result saved twice is stored once: the second save succeeds, and the entry stays what it was.

        If this fails, check that an existing key does not raise, and that content is replaced, never appended.
        """
        entry = make_entry(b"the same content")
        save(storage, entry)
        try:
            save(storage, entry)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the defect
            pytest.fail(f"saving the same content again is not idempotent: it raised {error!r}", pytrace=False)
        check_holds(storage, entry, "after a second save")

    def test_saving_again_with_other_metadata_keeps_the_newest(self, storage: Storage) -> None:
        """Two tools may return the same content: a list names the one that returned it last.

        If this fails, check that saving an existing entry also writes its metadata, not only its time.
        """
        entry = make_entry(b"of two tools", tool="first")
        save(storage, entry)
        again = Entry(entry.key, entry.content, entry.content_type, {**entry.metadata, "tool": "second"})
        save(storage, again)
        check_holds(storage, again, "after a second save with other metadata")

    @pytest.mark.parametrize(
        "other", [b"tampered", b"longer than the first", b""], ids=["same size", "longer", "empty"]
    )
    @pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
    def test_refuses_other_content_under_the_same_key(
        self, storage: Storage, *, other: bytes, content_type: str
    ) -> None:
        """Keys are short digests. If two contents share a key, the second is refused and the first stays.

        If this fails, check that ``save`` compares ``metadata["sha256"]`` with that of the existing entry, whatever
        their types and sizes, and raises ``StorageError`` before it writes anything.
        """
        entry = make_entry(b"original")
        intruder = make_entry(other, content_type=content_type)
        save(storage, entry)
        try:
            save(storage, Entry(entry.key, intruder.content, intruder.content_type, intruder.metadata))
        except StorageError:
            check_holds(storage, entry, "after other content was refused")
        else:
            pytest.fail("other content under the same key was accepted silently; StorageError was due", pytrace=False)

    def test_keeps_scopes_apart(self, storage: Storage) -> None:
        """The part of a key before the slash is the scope: equal content in two scopes makes two entries.

        If this fails, check that the whole key is used, not only what follows the slash.
        """
        mine, yours = make_entry(b"equal content", scope="mine"), make_entry(b"equal content", scope="yours")
        save(storage, mine)
        assert wait_for(storage.load(yours.key)) is None, (
            "an entry of one scope was loaded under the key of another scope"
        )
        save(storage, yours)
        check_holds(storage, mine, "after another scope saved the same content")

    @pytest.mark.parametrize("parts", [1, 2, 8])
    def test_keeps_the_scopes_of_tuples_apart(self, storage: Storage, parts: int) -> None:
        """The key of a tuple scope is longer, up to 161 characters, and begins like those of the scopes above it.

        If this fails, check for a truncated key, for a column or name that is too short, and for a key pattern that
        accepts only 16 hex digits before the slash.
        """
        scope = tuple(f"part {number}" for number in range(parts))
        mine = make_entry(b"equal content", scope=scope)
        others = [make_entry(b"equal content", scope=other) for other in (scope[0], (*scope[:-1], "other"))]
        save(storage, mine)
        for other in others:
            assert wait_for(storage.load(other.key)) is None, "an entry was loaded under the key of another scope"
            save(storage, other)
        check_holds(storage, mine, "after other scopes saved the same content")

    def test_keeps_nothing_that_the_caller_can_change(self, storage: Storage) -> None:
        """Saved content stays as it was, whatever the caller does with its own objects afterwards.

        If this fails, copy the content with ``bytes(content)`` and the metadata with ``dict(metadata)``.
        """
        entry = make_entry(b"as it was saved")
        content, metadata = bytearray(entry.content), dict(entry.metadata)
        wait_for(storage.save(entry.key, cast("bytes", content), content_type=entry.content_type, metadata=metadata))
        content[:] = b"changed later!!"
        metadata["sha256"] = "changed later"
        check_holds(storage, entry, "after the caller changed its own copy: a mutable alias is kept")

    def test_many_threads_at_once(self, storage: Storage) -> None:
        """Parallel tool calls save and load at once, even equal content under one key.

        If this fails, check for state that is shared without a lock, and for temporary names that are not unique.
        """
        entries = [make_entry(noise(20_000, seed=number % 10)) for number in range(THREADS * 10)]

        def save_and_load(entry: Entry) -> None:
            save(storage, entry)
            check_holds(storage, entry, "while other threads save and load")

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(save_and_load, entries))

    @pytest.mark.parametrize("key", MALFORMED_KEYS, ids=id_of_key)
    def test_a_malformed_key_does_no_harm(self, storage: Storage, key: str) -> None:
        """A key that the engine never makes is refused with one of ``REFUSALS``, or works like any other.

        If this fails, check that no part of a key ever becomes a path, a pattern or a query without being checked.
        """
        entry = make_entry(b"what is there")
        save(storage, entry)
        with suppress(*REFUSALS):
            assert wait_for(storage.load(key)) is None, f"the malformed key {key!r} reads something that it never saved"
        with suppress(*REFUSALS):
            wait_for(storage.save(key, b"intruder", content_type="text/plain", metadata={"sha256": "0" * 64}))
            found = wait_for(storage.load(key))
            assert found is not None, f"what was saved under the malformed key {key!r} is not there"
            require_same(found.content, b"intruder", f"the malformed key {key!r} reads something else")
        check_holds(storage, entry, f"after a save under the malformed key {key!r}")

    def test_an_offloader_stores_and_reads_back(self, storage: Storage) -> None:
        """The engine offloads to the storage and reads back from it, by pattern, by offset and whole.

        If this fails and the other tests pass, check what the capabilities return: the engine reads through them.
        """
        check_offloader(storage, is_async=False)

    def test_an_offloader_stores_and_reads_back_async(self, storage: Storage) -> None:
        """The same through the async methods, which call a sync storage on threads and an async one on the loop.

        If this fails and the sync one passes, check for objects that belong to one thread or to one event loop.
        """
        check_offloader(storage, is_async=True)

    def test_the_event_loop_stays_free(self, storage: Storage) -> None:
        """While a result is saved and loaded, other conversations go on: nothing holds up the event loop for long.

        If this fails, check for calls in ``async def`` methods that wait without ``await``: files, sockets, locks,
        ``time.sleep``. A storage with plain methods may wait as it likes: the engine calls it on threads.
        """
        # Other load on the machine can hold up a loop, but hardly three times in a row.
        held_up = min(asyncio.run(_longest_hold_up(storage, numbered_lines(9_000 + run))) for run in range(3))
        assert held_up < LONGEST_HOLD_UP_SECONDS, f"the event loop was held up for {held_up:.2f} s"


def save(storage: Storage, entry: Entry) -> None:
    """Save an entry, sync or async."""
    wait_for(
        storage.save(entry.key, entry.content, content_type=entry.content_type, metadata=dict(entry.metadata)),
    )


def load(storage: Storage, entry: Entry) -> Stored:
    """Load an entry that must be there, sync or async."""
    found = wait_for(storage.load(entry.key))
    assert found is not None, f"the entry is not there: load({entry.key!r}) returned None"
    assert isinstance(found, Stored), f"load returned {type(found).__name__} instead of coatcheck.Stored"
    return found


def check_round_trip(storage: Storage, entry: Entry) -> None:
    """Save an entry, and check that the same comes back."""
    save(storage, entry)
    check_holds(storage, entry, "after it was saved")


def check_holds(storage: Storage, entry: Entry, when: str) -> None:
    """Check that an entry is there, as it was saved."""
    found = load(storage, entry)
    require_same(found.content, entry.content, f"the content is not what was saved, {when}")
    assert found.size == len(entry.content), f"the size is wrong, {when}"
    assert found.content_type == entry.content_type, f"the content type was not kept, {when}"
    assert dict(found.metadata) == entry.metadata, f"the metadata was not kept, {when}"


def check_offloader(storage: Storage, *, is_async: bool) -> None:
    """Offload a result of three blocks, and read it back in every way."""
    text = numbered_lines(3_000) + "a lone surrogate \ud800, NUL \0, CRLF\r\n"
    value = {"rows": [{"id": number} for number in range(500)]}
    blocks = (TextBlock(text), JsonBlock(value), MediaBlock(noise(3_000), "image/png"))
    _Driver(storage, is_async=is_async).check(blocks, text=text, value=value)


async def _longest_hold_up(storage: Storage, text: str) -> float:
    """Offload and load a ``TextBlock``; return the longest time, in seconds, that this kept the event loop busy."""
    offloader = Offloader(storage)
    moments = [time.perf_counter()]

    async def note_moments() -> None:
        while True:
            await asyncio.sleep(0.001)
            moments.append(time.perf_counter())

    noting = asyncio.create_task(note_moments())
    outcome = await offloader.aoffload([TextBlock(text)], tool_name="contract")
    assert isinstance(outcome, Offloaded), f"the result was not offloaded: {outcome}"
    await offloader.aload(outcome.references[0].id)
    noting.cancel()
    return max(after - before for before, after in pairwise([*moments, time.perf_counter()]))


class _Driver:
    """Runs the engine over a storage, sync or async."""

    def __init__(self, storage: Storage, *, is_async: bool) -> None:
        self.offloader = Offloader(storage, policies={"*": Always()}, max_retrieval_tokens=1_000)
        self.restarted = Offloader(storage)
        self.is_async = is_async

    def check(self, blocks: tuple[TextBlock, JsonBlock, MediaBlock], *, text: str, value: object) -> None:
        outcome = self.offload(blocks)
        assert isinstance(outcome, Offloaded), f"the result was not offloaded: {outcome}"
        first, second, third = (reference.id for reference in outcome.references)
        require_same(self.load(first).data, text.encode("utf-8", "surrogatepass"), "the text is not what was offloaded")
        assert json.loads(self.load(second).data) == value, "the JSON is not what was offloaded"
        require_same(self.load(third).data, blocks[2].data, "the image is not what was offloaded")
        assert "line 1,234 of" in self.retrieve(first, pattern="^line 1,234 of"), "a pattern found nothing"
        for offset in range(7, len(text) - 100, len(text) // 5):
            assert text[offset : offset + 50] in self.retrieve(first, offset=offset), f"offset {offset} reads elsewhere"

    def offload(self, blocks: tuple[TextBlock, JsonBlock, MediaBlock]) -> Outcome:
        if self.is_async:
            return asyncio.run(self.offloader.aoffload(blocks, tool_name="contract", scope="contract"))
        return self.offloader.offload(blocks, tool_name="contract", scope="contract")

    def load(self, reference: str) -> Content:
        load = self.restarted.aload if self.is_async else self.restarted.load
        return wait_for(load(reference, scope="contract"))

    def retrieve(self, reference: str, *, pattern: str | None = None, offset: int | None = None) -> str:
        retrieve = self.offloader.aretrieve if self.is_async else self.offloader.retrieve
        return wait_for(retrieve(reference, scope="contract", pattern=pattern, offset=offset)).text


def _tests(suite: type, capability: type) -> bool:
    return any(vars(owner).get("capability") is capability for owner in suite.__mro__)
