"""Where Strands' own offloader and ours put content, and when they evict it: one test for both where they agree."""

from __future__ import annotations

import asyncio
import errno
import gc
import time
from typing import TYPE_CHECKING, Any

import pytest
from strands import Agent
from strands import storage as unified
from strands.vended_plugins import context_offloader as theirs

import coatcheck
import coatcheck_strands as ours
from coatcheck_strands.compat import cycles as cycles_module
from coatcheck_strands.compat.cycles import FOLDER, Cycles, used_by
from tests.adapters.strands.agents import (
    BIG,
    RETRIEVE,
    ScriptedModel,
    agent,
    call,
    reading,
    references,
    results,
    returning,
    run,
    text_of,
)
from tests.adapters.strands.sandboxes import FolderSandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(params=[theirs, ours], ids=["theirs", "ours"])
def package(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


class Custom:
    """A user's own unified storage: the four methods, and no more."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    async def write(self, key: str, data: bytes) -> None:
        self.held[key] = data

    async def read(self, key: str) -> bytes | None:
        return self.held.get(key)

    async def delete(self, key: str) -> None:
        self.held.pop(key, None)

    async def list(self, query: str) -> list[str]:
        return sorted(key for key in self.held if key.startswith(query))

    async def search(self, query: str) -> Any:  # noqa: ANN401 - never called
        raise NotImplementedError


def read_after(
    package: ModuleType,
    cycles: int,
    *,
    storage: Any = None,  # noqa: ANN401
    reads: tuple[int, ...] = (),
    **knobs: Any,  # noqa: ANN401
) -> Agent:
    """Run an agent that offloads, and reads back ``cycles`` cycles later and in each cycle of ``reads``."""
    plugin = package.ContextOffloader(storage, **knobs)
    between = [reading(pattern="^line 5 of") if number in reads else call("small") for number in range(1, cycles)]
    turns = (call(), *between, reading(pattern="^line 7 of"), "done")
    subject = agent(plugin, turns=turns, tools=[returning(BIG), returning("small", name="small")])
    subject("go")
    return subject


# Which storage is used.


def test_by_default_the_agents_storage_is_used(package: ModuleType) -> None:
    storage = Custom()

    run(package.ContextOffloader(), storage=storage)

    assert storage.held
    assert all(key.startswith("offloader/") for key in storage.held)


def test_without_any_storage_content_is_kept_in_memory(package: ModuleType) -> None:
    subject = agent(package.ContextOffloader(), turns=(call(), reading(pattern="^line 7 of")))

    subject("go")

    assert ">  7| line 7 of" in text_of(results(subject)[-1])


class ByName(Agent):
    """An agent whose host compares agents by name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByName) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def test_agents_that_are_equal_have_their_own_storages() -> None:
    plugin, storages = ours.ContextOffloader(), (Custom(), Custom())

    agents = [
        ByName(ScriptedModel(call()), tools=[returning(BIG)], plugins=[plugin], storage=storage) for storage in storages
    ]
    for each in agents:
        each("go")

    assert [len(storage.held) for storage in storages] == [1, 1]


def test_equal_agents_count_as_separate_users_of_content() -> None:
    cycles, agents = Cycles(20), [ByName(ScriptedModel("x")) for _ in range(2)]
    for each in agents:
        with used_by(each):
            cycles.note("key")

    assert all(cycles.is_used_by_another(each, "key") for each in agents)


def test_a_storage_that_is_given_takes_precedence_over_the_agents(package: ModuleType) -> None:
    given, agents = Custom(), Custom()

    run(package.ContextOffloader(given), storage=agents)

    assert given.held
    assert not agents.held


@pytest.mark.parametrize("make", [Custom, unified.InMemoryStorage], ids=["users", "strands"])
def test_a_unified_storage_keeps_our_keys_apart_from_others(package: ModuleType, make: Any) -> None:  # noqa: ANN401
    storage = make()
    subject = agent(package.ContextOffloader(storage), turns=(call(), reading(pattern="^line 7 of")))

    subject("go")

    assert ">  7| line 7 of" in text_of(results(subject)[-1])
    keys = storage.held if isinstance(storage, Custom) else storage._store
    assert keys
    assert all(key.startswith("offloader/") for key in keys)


def test_a_storage_with_a_namespace_gets_no_second_one(package: ModuleType) -> None:
    storage = unified.InMemoryStorage()

    run(package.ContextOffloader(storage.namespace("mine")))

    assert all(key.startswith("mine/") and "offloader" not in key for key in storage._store)


def test_a_file_storage_is_bound_to_the_agents_sandbox(package: ModuleType, tmp_path: Path) -> None:
    plugin = package.ContextOffloader(unified.LocalFileStorage("stored"))
    for name in ("one", "two"):
        sandbox = FolderSandbox(tmp_path / name)
        subject = agent(plugin, turns=(call(), reading(pattern="^line 7 of")), sandbox=sandbox)
        subject("go")

        assert ">  7| line 7 of" in text_of(results(subject)[-1])
        assert sandbox.files()
        assert all(file.startswith("stored/offloader/") for file in sandbox.files())


def test_a_folder_outlives_the_agent(package: ModuleType, tmp_path: Path) -> None:
    storage = unified.LocalFileStorage(str(tmp_path))
    first = agent(package.ContextOffloader(storage))
    first("go")

    again = package.ContextOffloader(unified.LocalFileStorage(str(tmp_path)))
    second = agent(again, turns=(reading(pattern="^line 7 of"),), messages=first.messages)
    second("and on")

    assert ">  7| line 7 of" in text_of(results(second)[-1])


# Content that is no longer used.


def memory(package: ModuleType) -> Any:  # noqa: ANN401
    return package.InMemoryStorage(3)


@pytest.mark.parametrize("kind", ["memory", "unified"])
@pytest.mark.parametrize(("cycles", "there"), [(2, True), (3, True), (4, False)])
def test_content_that_is_unused_for_too_many_cycles_is_evicted(
    package: ModuleType, kind: str, cycles: int, *, there: bool
) -> None:
    storage = memory(package) if kind == "memory" else Custom()

    subject = read_after(package, cycles, storage=storage, evict_after_cycles=3)

    assert (results(subject)[-1]["status"] == "success") is there


@pytest.mark.parametrize("kind", ["memory", "unified"])
def test_reading_content_puts_off_its_eviction(package: ModuleType, kind: str) -> None:
    storage = memory(package) if kind == "memory" else Custom()

    subject = read_after(package, 7, storage=storage, evict_after_cycles=3, reads=(3, 5))

    assert results(subject)[-1]["status"] == "success"


@pytest.mark.parametrize("kind", ["memory", "unified"])
def test_none_means_that_content_is_never_evicted(package: ModuleType, kind: str) -> None:
    storage = package.InMemoryStorage(None) if kind == "memory" else Custom()

    subject = read_after(package, 25, storage=storage, evict_after_cycles=None)

    assert results(subject)[-1]["status"] == "success"


def test_by_default_content_is_evicted_after_twenty_cycles(package: ModuleType) -> None:
    there, gone = read_after(package, 20), read_after(package, 21)

    assert results(there)[-1]["status"] == "success"
    assert results(gone)[-1]["status"] == "error"


def test_files_are_never_evicted(package: ModuleType, tmp_path: Path) -> None:
    subject = read_after(package, 6, storage=package.FileStorage(str(tmp_path)), evict_after_cycles=2)

    assert results(subject)[-1]["status"] == "success"


# Deviations.


def test_ours_says_which_call_to_repeat_when_content_is_gone() -> None:
    subject = read_after(ours, 5, storage=ours.InMemoryStorage(3))

    answer = text_of(results(subject)[-1])
    assert answer.startswith(f"Error: reference expired: {references(results(subject)[0])[0]}")
    assert "call again the tool whose result it replaced" in answer


def test_ours_evicts_content_together_with_its_index() -> None:
    storage = Custom()
    tools = [returning("x" * 3_000_000), returning("small", name="small")]
    subject = agent(
        ours.ContextOffloader(storage, evict_after_cycles=2), turns=(call(), *[call("small")] * 5), tools=tools
    )

    subject("go")

    assert storage.held == {}


def test_ours_evicts_nothing_that_another_agent_uses() -> None:
    storage = ours.InMemoryStorage(2)
    tools = [returning(BIG), returning("small", name="small")]
    busy = agent(ours.ContextOffloader(storage), turns=(call(), "x", reading(pattern="^line 7 of")), tools=tools)
    idle = agent(ours.ContextOffloader(storage), turns=(call(), *[call("small")] * 6), tools=tools)

    busy("go")
    idle("go")
    busy("and on")

    assert ">  7| line 7 of" in text_of(results(busy)[-1])


def test_ours_evicts_nothing_that_another_plugin_saved_too() -> None:
    storage = Custom()
    tools = [returning(BIG), returning("small", name="small")]
    plugin = ours.ContextOffloader
    busy = agent(plugin(storage), turns=(call(), "x", reading(pattern="^line 7 of")), tools=tools)
    first = agent(plugin(storage, evict_after_cycles=2), turns=(call(), *[call("small")] * 6), tools=tools)
    last = agent(plugin(storage, evict_after_cycles=2), turns=(call(), *[call("small")] * 6), tools=tools)

    first_call = agent(plugin(storage), turns=(call(),), tools=tools)
    for one in (first_call, busy, first, last):
        one("go")
    busy("and on")

    assert ">  7| line 7 of" in text_of(results(busy)[-1])


class Stubborn(Custom):
    """Never deletes the first key that it is asked to delete."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()

    async def delete(self, key: str) -> None:
        if not self.refused:
            self.refused.add(key)
        if key in self.refused:
            raise OSError(errno.EIO, "stubborn")
        await super().delete(key)


def test_an_entry_that_cannot_be_evicted_does_not_stop_the_eviction_of_others(caplog: pytest.LogCaptureFixture) -> None:
    storage = Stubborn()
    tools = [returning(BIG), returning(BIG.upper(), name="other"), returning("small", name="small")]
    plugin = ours.ContextOffloader(storage, evict_after_cycles=2)
    subject = agent(plugin, turns=(call(), call("other"), *[call("small")] * 6), tools=tools)

    subject("go")

    assert len(storage.held) == 1
    assert caplog.text.count("failed to evict") == 1


class Slow(Custom):
    """Runs the next function of ``meanwhile`` before each deletion."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], object]] = []

    async def delete(self, key: str) -> None:
        if self.meanwhile:
            await asyncio.to_thread(self.meanwhile.pop(0))
        await super().delete(key)


def test_content_that_another_agent_saves_during_its_eviction_stays() -> None:
    storage = Slow()
    tools = [returning(BIG), returning("small", name="small")]
    plugin = ours.ContextOffloader(storage, evict_after_cycles=2)
    idle = agent(plugin, turns=(call(), *[call("small")] * 6), tools=tools)
    busy = agent(plugin, turns=(call(), "x", reading(pattern="^line 7 of")), tools=tools)
    storage.meanwhile.append(lambda: busy("go"))

    idle("go")
    busy("and on")

    assert ">  7| line 7 of" in text_of(results(busy)[-1])


@pytest.mark.parametrize("deleted", [0, 1])
def test_content_that_another_agent_saves_during_its_eviction_keeps_its_index_of_items(deleted: int) -> None:
    storage = Slow()
    items = [f"item {number} " + "word " * 900 for number in range(20)]
    tools = [returning(*items), returning("small", name="small")]
    plugin = ours.ContextOffloader(storage, evict_after_cycles=2)
    idle = agent(plugin, turns=(call(), *[call("small")] * 6), tools=tools)
    busy = agent(plugin, turns=(call(), "x"), tools=tools)
    storage.meanwhile += [lambda: None] * deleted + [lambda: busy("go")]

    idle("go")

    assert sum(key.endswith("-lines") for key in storage.held) == 1
    assert len(storage.held) == 2


def test_ours_keeps_no_record_of_agents_that_are_gone() -> None:
    storage = ours.InMemoryStorage(2)
    run(ours.ContextOffloader(storage))

    deadline = time.monotonic() + 60
    while len(storage.cycles._last) and time.monotonic() < deadline:
        gc.collect()  # again, because a thread may not have released the last step yet

    assert len(storage.cycles._last) == 0


@pytest.mark.parametrize("storage", [ours.InMemoryStorage(None), Slow()], ids=["in memory", "of strands.storage"])
def test_ours_records_no_use_if_nothing_is_ever_evicted(storage: object) -> None:
    plugin = ours.ContextOffloader(storage, evict_after_cycles=None)
    used = agent(plugin, turns=(call(), "x"))

    used("go")
    if isinstance(storage, ours.InMemoryStorage):
        asyncio.run(storage.store("key", b"content"))

    cycles = plugin.offloaders.of(used).storage.cycles  # type: ignore[union-attr]
    assert references(results(used)[0])
    assert (len(cycles._last), len(cycles._unowned)) == (0, 0)


def test_only_the_latest_of_what_a_host_stored_without_an_agent_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles_module, "MAX_UNOWNED", 3)
    cycles, subject = Cycles(limit=-100), agent()
    for number in (0, 1, 2, 3, 1):
        cycles.note(f"{FOLDER}/{number}")
    cycles.begin(subject)

    assert cycles.stale(subject) == [f"{FOLDER}/{number}" for number in (2, 3, 1)]


def test_theirs_refuses_one_memory_for_two_agents_and_ours_accepts_it() -> None:
    shared: Any = theirs.InMemoryStorage()
    first = agent(theirs.ContextOffloader(shared))
    with pytest.raises(ValueError, match="cannot be shared"):  # as long as the first agent lives
        agent(theirs.ContextOffloader(shared))
    del first

    storage = ours.InMemoryStorage()
    for scope in ("one", "two"):
        subject = agent(ours.ContextOffloader(storage, scope=scope), turns=(call(), reading(pattern="^line 7 of")))
        subject("go")
        assert ">  7| line 7 of" in text_of(results(subject)[-1])


def test_two_conversations_with_one_call_id_mix_in_theirs_and_not_in_ours() -> None:
    def second_reads(package: ModuleType, **scopes: str) -> str:
        storage = Custom()
        knobs = ({"scope": scopes["first"]}, {"scope": scopes["second"]}) if scopes else ({}, {})
        mine = agent(package.ContextOffloader(storage, **knobs[0]), tools=[returning(BIG)])
        mine("go")
        other = agent(package.ContextOffloader(storage, **knobs[1]), tools=[returning(BIG.replace("line", "row"))])
        other("go")
        asking = agent(
            package.ContextOffloader(storage, **knobs[0]),
            turns=(call(RETRIEVE, reference=references(results(mine)[0])[0], pattern="^(line|row) 7 of"),),
        )
        asking("go")
        return text_of(results(asking)[-1])

    assert ">  7| line 7 of" in second_reads(ours)
    assert ">  7| line 7 of" in second_reads(ours, first="one", second="two")
    assert ">  7| row 7 of" in second_reads(theirs)


def test_ours_does_not_read_what_theirs_kept_under_the_id_of_a_call() -> None:
    storage = Custom()
    before = agent(theirs.ContextOffloader(storage))
    before("go")
    asked = call(RETRIEVE, reference=references(results(before)[0])[0])

    answers = [run(module.ContextOffloader(storage), turns=(asked,)) for module in (theirs, ours)]

    assert [answer["status"] for answer in answers] == ["success", "error"]


def test_ours_names_no_call_in_a_key() -> None:
    storage = Custom()

    run(ours.ContextOffloader(storage))

    assert "call_1" not in str(list(storage.held))


def test_ours_takes_storages_of_the_core(tmp_path: Path) -> None:
    for storage in (coatcheck.InMemoryStorage(), coatcheck.FileStorage(tmp_path)):
        subject = agent(ours.ContextOffloader(storage), turns=(call(), reading(pattern="^line 7 of")))
        subject("go")
        assert ">  7| line 7 of" in text_of(results(subject)[-1])


@pytest.mark.parametrize("name", ["InMemoryStorage", "FileStorage"])
def test_ours_takes_their_storages(name: str, tmp_path: Path) -> None:
    storage = theirs.InMemoryStorage() if name == "InMemoryStorage" else theirs.FileStorage(str(tmp_path))
    subject = agent(ours.ContextOffloader(storage), turns=(call(), reading(pattern="^line 7 of")))

    subject("go")

    assert ">  7| line 7 of" in text_of(results(subject)[-1])


@pytest.mark.parametrize("wrong", ["./artifacts", 7, object()], ids=["path", "number", "object"])
def test_ours_explains_what_a_storage_may_be(wrong: object) -> None:
    with pytest.raises(ValueError, match="storage must be an Offloader, a storage of coatcheck"):
        ours.ContextOffloader(wrong)


def test_ours_refuses_a_class_in_place_of_a_storage() -> None:
    with pytest.raises(ValueError, match="storage must be an object, not the class dict"):
        ours.ContextOffloader(dict)
