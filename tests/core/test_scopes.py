"""Which scope is used: the argument, else the ambient scope, else the framework's identity, else the default."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import InvalidRequest, Offloader, Scope, TextBlock, scope, scopes
from coatcheck.adapting import enter_scope
from coatcheck.scopes import choose_scope

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.mark.parametrize(
    ("argument", "ambient", "identity", "expected"),
    [
        ("argument", "ambient", "identity", "argument"),
        (None, "ambient", "identity", "ambient"),
        (None, None, "identity", "identity"),
        (None, None, None, "default"),
    ],
)
def test_scopes_are_chosen_in_this_order(
    argument: str | None, ambient: str | None, identity: str | None, expected: str
) -> None:
    if ambient is None:
        assert choose_scope(argument, identity, required=False) == expected
        return
    with scope(ambient):
        assert choose_scope(argument, identity, required=False) == expected


def test_require_scope_refuses_the_default_with_advice() -> None:
    with pytest.raises(InvalidRequest, match=r"require_scope=True .* thread_id"):
        choose_scope(None, None, required=True)
    assert choose_scope(None, "thread-1", required=True) == "thread-1"


def test_scopes_nest_and_end() -> None:
    with scope("outer"):
        with scope("inner"):
            assert choose_scope(None, None, required=True) == "inner"
        assert choose_scope(None, None, required=True) == "outer"
    assert choose_scope(None, None, required=False) == "default"


async def test_tasks_do_not_see_each_others_scope() -> None:
    async def worker(name: str) -> Scope:
        with scope(name):
            await asyncio.sleep(0)
            return choose_scope(None, None, required=True)

    names = [f"tenant-{number}" for number in range(20)]

    assert await asyncio.gather(*map(worker, names)) == names


def test_a_thread_with_a_copied_context_sees_the_scope() -> None:
    seen: list[Scope] = []
    with scope("tenant"):
        context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: seen.append(context.run(choose_scope, None, None, required=False)))
    thread.start()
    thread.join()

    assert seen == ["tenant"]


def yielding(name: str) -> Generator[None, None, None]:
    with scope(name):
        yield


def test_a_block_that_ends_in_another_context_raises_with_advice() -> None:
    dependency = yielding("tenant")
    # FastAPI runs each step of a sync dependency in a copy of the context.
    contextvars.copy_context().run(next, dependency)

    with pytest.raises(InvalidRequest, match=r"may have had another scope.*pass scope="):
        contextvars.copy_context().run(next, dependency)


def test_blocks_that_end_out_of_order_raise_and_leave_no_scope_behind() -> None:
    one, other = yielding("tenant-1"), yielding("tenant-2")
    next(one)
    next(other)

    for generator in (one, other):
        with pytest.raises(InvalidRequest, match="may have had another scope"):
            next(generator)
    assert choose_scope(None, "thread-1", required=True) == "thread-1"


@pytest.mark.parametrize("error", [KeyError("the host's own"), asyncio.CancelledError()], ids=["error", "cancelled"])
def test_an_error_passes_through_a_block_whose_scope_did_not_hold_and_the_log_says_so(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    left_open = yielding("tenant-2")

    def fail() -> None:
        with scope("tenant-1"):
            next(left_open)
            raise error

    with pytest.raises(type(error)):
        fail()
    assert "may have had another scope" in caplog.text
    assert choose_scope(None, "thread-1", required=True) == "thread-1"


def test_an_adapters_block_tolerates_a_scope_that_a_tool_left_open() -> None:
    left_open = yielding("tenant")

    with enter_scope("thread-1"):
        next(left_open)

    assert choose_scope(None, "thread-2", required=True) == "thread-2"
    with pytest.raises(InvalidRequest):
        left_open.close()


async def test_a_task_left_running_by_a_tool_has_the_adapters_scope_only_until_its_block_ends() -> None:
    seen: list[Scope] = []
    go, looked = asyncio.Event(), asyncio.Event()

    async def worker() -> None:
        for _ in range(2):
            await go.wait()
            go.clear()
            seen.append(choose_scope(None, "of whom it serves now", required=True))
            looked.set()

    with scope("of the host"):
        with enter_scope("outer"), enter_scope("inner"):
            task = asyncio.create_task(worker())
            go.set()
            await looked.wait()
        go.set()
        await task
    assert seen == ["inner", "of the host"]


async def test_runs_that_each_schedule_the_next_one_keep_nothing_of_those_before() -> None:
    loop = asyncio.get_running_loop()
    last = loop.create_future()

    def run(left: int) -> None:
        with enter_scope("thread-1"):
            if left:
                loop.call_soon(run, left - 1)
            else:
                last.set_result(scopes._ambient.get())

    run(100)
    held = await last
    assert isinstance(held, scopes._Held)
    assert held.outer is None


async def test_runs_that_each_begin_before_the_one_that_started_them_ends_keep_only_that_one() -> None:
    runs = list[asyncio.Task[None]]()
    held = list[object]()

    async def run(left: int) -> None:
        with enter_scope("thread-1"):
            if left:
                runs.append(asyncio.create_task(run(left - 1)))
            else:
                held.append(scopes._ambient.get())
            await asyncio.sleep(0)

    await run(100)
    while runs:
        await runs.pop()

    around = 0
    while isinstance(held[-1], scopes._Held):
        held.append(held[-1].outer)
        around += 1
    assert around < 4


@pytest.mark.parametrize("name", ["", None, 7, "x" * 5_000])
def test_an_invalid_scope_is_refused(name: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match="scope"), scope(name):
        pass


def test_the_shared_default_causes_one_warning_per_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scopes, "_unwarned", [True])
    threads = [
        threading.Thread(target=lambda: Offloader().offload([TextBlock("ok")], tool_name="search")) for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [(record.name, record.levelname) for record in caplog.records] == [("coatcheck", "WARNING")]
    for word in (
        "'default'",
        "share it",
        "scope=",
        "thread_id",
        "session manager",
        "hook_context",
        "require_scope=True",
    ):
        assert word in caplog.text


@pytest.mark.parametrize("given", [{"scope": "mine"}, {"identity": "mine"}])
def test_there_is_no_warning_if_a_scope_is_given(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scopes, "_unwarned", [True])

    Offloader().offload([TextBlock("word " * 5_000)], tool_name="search", **given)  # type: ignore[arg-type]
    with scope("ambient"):
        Offloader().offload([TextBlock("word " * 5_000)], tool_name="search")

    assert not caplog.records
    assert scopes._unwarned


def test_a_number_too_long_to_print_is_refused_as_a_scope_and_as_a_reference() -> None:
    huge: Any = 10**5_000  # Python prints no int of more than 4,300 digits

    with pytest.raises(InvalidRequest, match="not a number of more than 15 digits"):
        Offloader().offload([TextBlock("text")], tool_name="t", scope=huge)
    with pytest.raises(InvalidRequest, match="as a string, not int"):
        Offloader().retrieve(huge, scope="s")
