"""Who may read what: argument, ambient scope, session, default; across sessions, agents and restarts."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from strands import Agent, tool
from strands.hooks import MessageAddedEvent
from strands.multiagent import GraphBuilder, Swarm
from strands.session import FileSessionManager
from strands.tools.executors import SequentialToolExecutor

import coatcheck
from coatcheck import scopes
from coatcheck_strands import ContextOffloader, FileStorage, InMemoryStorage
from tests.adapters.strands.agents import (
    BIG,
    MIDDLE,
    RETRIEVE,
    ScriptedModel,
    agent,
    call,
    reading,
    references,
    results,
    returning,
    text_of,
)
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FOUND = ">  7| line 7 of"
READ = (call(), reading(pattern="^line 7 of"))


def stored_in(storage: InMemoryStorage, **more: Any) -> str:  # noqa: ANN401
    """Offload once, and return the reference."""
    state = more.pop("invocation_state", {})
    subject = agent(ContextOffloader(storage, **more.pop("knobs", {})), **more)
    subject("go", invocation_state=state)
    return references(results(subject)[0])[0]


def scope_holds(storage: InMemoryStorage, reference: str, scope: str) -> bool:
    offloader = coatcheck.Offloader(storage)
    try:
        return offloader.load(reference, scope=scope).text == BIG
    except coatcheck.ReferenceNotFound:
        return False


# Where the scope comes from.


def test_a_str_is_the_scope() -> None:
    storage = InMemoryStorage()

    assert scope_holds(storage, stored_in(storage, knobs={"scope": "tenant-7"}), "tenant-7")


def test_a_scope_callable_gets_the_agent_the_call_and_the_invocation_state() -> None:
    seen: list[Any] = []

    def scope(made: Any) -> str:  # noqa: ANN401
        seen.append(made)
        return str(made.invocation_state["tenant"])

    storage = InMemoryStorage()
    subject = agent(ContextOffloader(storage, scope=scope), turns=READ)
    subject("go", invocation_state={"tenant": "tenant-7"})

    assert FOUND in text_of(results(subject)[-1])
    assert scope_holds(storage, references(results(subject)[0])[0], "tenant-7")
    assert [made.tool_use["name"] for made in seen] == ["fetch", RETRIEVE]
    assert all(made.agent is subject for made in seen)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_ambient_scope_reaches_the_loop_of_the_agent(*, is_async: bool) -> None:
    storage = InMemoryStorage()
    subject = agent(ContextOffloader(storage), turns=READ)

    with coatcheck.scope("tenant-7"):
        asyncio.run(subject.invoke_async("go")) if is_async else subject("go")

    assert FOUND in text_of(results(subject)[-1])
    assert scope_holds(storage, references(results(subject)[0])[0], "tenant-7")


def test_the_argument_takes_precedence_over_the_ambient_scope_and_that_over_the_session(tmp_path: Path) -> None:
    storage = InMemoryStorage()

    def session(name: str) -> FileSessionManager:
        return FileSessionManager(session_id=name, storage_dir=str(tmp_path))

    with coatcheck.scope("ambient"):
        first = stored_in(storage, knobs={"scope": "argument"}, session_manager=session("s1"))
        second = stored_in(storage, session_manager=session("s2"))
    third = stored_in(storage, session_manager=session("s3"))

    assert scope_holds(storage, first, "argument")
    assert scope_holds(storage, second, "ambient")
    assert scope_holds(storage, third, "s3")


def test_without_argument_ambient_scope_and_session_every_agent_has_the_default_scope() -> None:
    storage = InMemoryStorage()

    reference = stored_in(storage)

    assert scope_holds(storage, reference, "default")
    assert stored_in(storage) == reference, "not the random id that an agent has without a session manager"


def test_the_default_scope_can_be_refused() -> None:
    storage = InMemoryStorage()
    subject = agent(ContextOffloader(storage, require_scope=True), turns=(call(), call(RETRIEVE, reference="x")))

    subject("go")

    assert text_of(results(subject)[0]) == BIG
    assert "the application is not set up" in text_of(results(subject)[1])
    assert storage.entries("") == []


def test_the_model_cannot_choose_a_scope() -> None:
    storage = InMemoryStorage()
    reference = stored_in(storage, knobs={"scope": "alice"})
    subject = agent(
        ContextOffloader(storage, scope="bob"),
        turns=(call(RETRIEVE, reference=reference), call(RETRIEVE, reference=reference, scope="alice")),
    )

    subject("go")

    assert text_of(results(subject)[0]).startswith(f"Error: reference not found: {reference}")
    assert "unknown arguments: 'scope'" in text_of(results(subject)[1])


# Sessions and restarts.


def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    """The two processes share only the session and the folder. No saved message holds the raw text."""
    script = f"""
from strands.session import FileSessionManager
from strands.tools.executors import SequentialToolExecutor
from coatcheck_strands import ContextOffloader, FileStorage
from tests.adapters.strands.agents import agent
session = FileSessionManager(session_id="s1", storage_dir={str(tmp_path / "sessions")!r})
agent(ContextOffloader(FileStorage({str(tmp_path / "artifacts")!r})), session_manager=session)("go")
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True)
    saved = [path.read_text() for path in (tmp_path / "sessions").rglob("*.json")]
    assert saved
    assert MIDDLE not in "".join(saved)

    session = FileSessionManager(session_id="s1", storage_dir=str(tmp_path / "sessions"))
    plugin = ContextOffloader(FileStorage(str(tmp_path / "artifacts")))
    subject = agent(plugin, turns=(reading(pattern="^line 7 of"),), session_manager=session)
    subject("and on")

    assert FOUND in text_of(results(subject)[-1])


def test_another_session_cannot_read_the_content(tmp_path: Path) -> None:
    storage = InMemoryStorage()
    manager = FileSessionManager(session_id="s1", storage_dir=str(tmp_path))
    reference = stored_in(storage, session_manager=manager)

    other = FileSessionManager(session_id="s2", storage_dir=str(tmp_path))
    subject = agent(ContextOffloader(storage), turns=(call(RETRIEVE, reference=reference),), session_manager=other)
    subject("go")

    assert text_of(results(subject)[0]).startswith("Error: reference not found")


# Many agents.


def worker(plugin: ContextOffloader, name: str, *turns: Any) -> Agent:  # noqa: ANN401
    return Agent(ScriptedModel(*turns), name=name, tools=[returning(BIG)], plugins=[plugin], callback_handler=None)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_graph_offloads_in_every_node(*, is_async: bool) -> None:
    storage = InMemoryStorage()
    nodes = [worker(ContextOffloader(storage), name, *READ, f"{name} is done") for name in ("one", "two")]
    builder = GraphBuilder()
    for node in nodes:
        builder.add_node(node, node.name)
    builder.add_edge("one", "two")
    builder.set_max_node_executions(5)
    graph = builder.build()

    outcome = asyncio.run(graph.invoke_async("go")) if is_async else graph("go")

    assert str(outcome.status).endswith("COMPLETED")
    for node in nodes:
        assert MIDDLE not in text_of(results(node)[0])
        assert FOUND in text_of(results(node)[-1])


def test_an_agent_of_a_swarm_reads_what_another_one_was_shown() -> None:
    plugin = ContextOffloader(InMemoryStorage())

    def hand_over(messages: Any) -> Any:  # noqa: ANN401
        found = references(messages[-1]["content"][0]["toolResult"])[0]
        return call("handoff_to_agent", agent_name="second", message=f"look into {found}")

    def take_over(messages: Any) -> Any:  # noqa: ANN401
        reference = str(messages[0]["content"]).partition("look into ")[2].split()[0].split("\\n")[0]
        return call(RETRIEVE, reference=reference, pattern="^line 7 of")

    first, second = worker(plugin, "first", call(), hand_over), worker(plugin, "second", take_over)

    Swarm([first, second], entry_point=first)("go")

    assert MIDDLE not in text_of(results(first)[0])
    assert FOUND in text_of(results(second)[-1])


def test_an_agent_as_a_tool_offloads_for_itself() -> None:
    storage = InMemoryStorage()
    expert = worker(ContextOffloader(storage), "expert", *READ, "the expert is done")
    subject = agent(
        ContextOffloader(storage), tools=[expert.as_tool(preserve_context=True)], turns=(call("expert", input="go"),)
    )

    subject("go")

    assert FOUND in text_of(results(expert)[-1])
    assert "the expert is done" in text_of(results(subject)[0])


def handing(storage: InMemoryStorage, **more: Any) -> Agent:  # noqa: ANN401
    """Return an agent that asks another agent, as a tool, for a reference, and reads it back."""

    def hand_over(messages: Any) -> str:  # noqa: ANN401
        return f"look into {references(messages[-1]['content'][0]['toolResult'])[0]}"

    def look(messages: Any) -> Any:  # noqa: ANN401
        answer = messages[-1]["content"][0]["toolResult"]["content"][0]["text"]
        return call(RETRIEVE, reference=answer.split()[-1], pattern="^line 7 of")

    expert = worker(ContextOffloader(storage), "expert", call(), hand_over)
    return agent(ContextOffloader(storage), tools=[expert.as_tool()], turns=(call("expert", input="go"), look), **more)


def test_an_agent_as_a_tool_does_not_have_the_session_of_its_caller(tmp_path: Path) -> None:
    storage = InMemoryStorage()
    subject = handing(storage, session_manager=FileSessionManager(session_id="s1", storage_dir=str(tmp_path)))

    subject("go")

    assert text_of(results(subject)[-1]).startswith("Error: reference not found")
    assert coatcheck.Offloader(storage).list(scope="default").contents


def test_an_ambient_scope_applies_to_an_agent_with_a_session_and_to_agents_that_are_its_tools(tmp_path: Path) -> None:
    storage = InMemoryStorage()
    subject = handing(storage, session_manager=FileSessionManager(session_id="s1", storage_dir=str(tmp_path)))

    with coatcheck.scope("s1"):
        subject("go")

    assert FOUND in text_of(results(subject)[-1])
    assert not coatcheck.Offloader(storage).list(scope="default").contents


def test_the_session_of_a_graph_is_not_that_of_its_agents(tmp_path: Path) -> None:
    storage = InMemoryStorage()
    builder = GraphBuilder()
    builder.add_node(worker(ContextOffloader(storage), "one", call()), "one")
    builder.set_session_manager(FileSessionManager(session_id="s1", storage_dir=str(tmp_path)))
    builder.set_max_node_executions(5)

    builder.build()("go")

    assert coatcheck.Offloader(storage).list(scope="default").contents
    assert not coatcheck.Offloader(storage).list(scope="s1").contents


def test_an_agent_inside_a_tool_is_served_by_its_own_plugin() -> None:
    inner_plugin = ContextOffloader(InMemoryStorage(), scope="inner")

    @tool
    def research() -> str:
        """Ask another agent."""
        inner = agent(inner_plugin, turns=READ)
        inner("go")
        return text_of(results(inner)[-1])

    subject = agent(ContextOffloader(InMemoryStorage(), scope="outer"), tools=[research], turns=(call("research"),))
    subject("go")

    assert FOUND in text_of(results(subject)[0])


async def test_agents_that_each_run_in_a_task_left_by_the_one_before_can_be_collected() -> None:
    plugin, runs = ContextOffloader(InMemoryStorage(), scope="s1"), list[asyncio.Task[None]]()
    agents = list[weakref.ref[Agent]]()

    @tool
    async def schedule() -> str:
        """Run another agent soon."""
        if len(agents) < 12:
            runs.append(asyncio.create_task(run()))
        return "scheduled"

    async def run() -> None:
        subject = agent(plugin, tools=[schedule], turns=(call("schedule"),))
        agents.append(weakref.ref(subject))
        await subject.invoke_async("go")

    await run()
    while runs:
        await runs.pop()
    gc.collect()

    assert len(agents) == 12
    assert sum(each() is not None for each in agents) < 6, "Strands itself keeps the last ones"


@pytest.mark.parametrize("is_same", [False, True])
async def test_a_task_left_by_a_tool_reads_in_the_scope_of_its_call_after_an_agent_ran_in_it(*, is_same: bool) -> None:
    storage, tasks, found = InMemoryStorage(), list[asyncio.Task[None]](), list[object]()
    over = asyncio.Event()
    secret = stored_in(storage, knobs={"scope": "s2"})
    inner = agent(ContextOffloader(storage, scope="s3"), turns=(call(), "done", call()))

    async def work() -> None:
        await over.wait()
        await (subject if is_same else inner).invoke_async("again")
        found.append(await storage.retrieve(references(results(subject)[0])[0]))
        with pytest.raises(KeyError):
            await storage.retrieve(secret)

    @tool
    async def leave() -> str:
        """Leave a task behind."""
        tasks.append(asyncio.create_task(work()))
        return BIG

    turns = (call("leave"), "done", call())
    subject = agent(ContextOffloader(storage, scope="s1"), tools=[leave, returning(BIG)], turns=turns)
    await subject.invoke_async("go")
    over.set()
    await tasks[0]

    assert found == [(BIG.encode(), "text/plain")]


async def test_the_scope_of_a_background_tool_that_ends_at_once_does_not_outlive_the_run() -> None:
    pytest.importorskip("strands.background_tasks", reason="needs a newer Strands")
    storage = InMemoryStorage()
    secret = stored_in(storage, knobs={"scope": "s2"})
    subject = agent(
        ContextOffloader(storage, scope="s1"),
        turns=(call(), "done"),
        tool_executor=SequentialToolExecutor(),  # its calls begin in the task of the run
        background_tasks={"always": ["fetch"]},
    )

    async def wait(event: MessageAddedEvent) -> None:
        background = asyncio.all_tasks() - {asyncio.current_task()}
        if background:  # the tool has returned before the next model call
            await asyncio.wait(background)

    subject.add_hook(wait, MessageAddedEvent)
    await subject.invoke_async("go")

    assert await storage.retrieve(secret) == (BIG.encode(), "text/plain")


def test_a_session_id_deletes_a_conversation_in_session_manager_and_storage(tmp_path: Path) -> None:
    storage, sessions = InMemoryStorage(), FileSessionManager(session_id="s1", storage_dir=str(tmp_path))
    reference = stored_in(storage, session_manager=sessions)

    sessions.delete_session("s1")
    deleted = coatcheck.Offloader(storage).delete_scope("s1")

    assert (deleted, storage.entries("")) == (1, [])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(coatcheck.ReferenceExpired):
        coatcheck.Offloader(storage).load(reference, scope="s1")


def test_a_run_without_a_scope_logs_a_warning_and_a_session_logs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scopes, "_unwarned", [True])
    storage = InMemoryStorage()

    stored_in(storage, session_manager=FileSessionManager("a", storage_dir=str(tmp_path)))
    quiet = [message for message in caplog.messages if "no scope" in message]
    for _ in range(2):
        stored_in(storage)

    assert quiet == []
    assert sum("session manager" in message for message in caplog.messages) == 1
