"""The user's own tool and the host read with the storage that the plugin was given, but only in the right scope."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from strands import tool
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor

import coatcheck
from coatcheck_strands import ContextOffloader, FileStorage, InMemoryStorage, S3Storage
from tests.adapters.strands.agents import (
    BIG,
    ScriptedModel,
    agent,
    call,
    references,
    results,
    returning,
    text_of,
)
from tests.storage.seaweed import BUCKET, session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from strands import Agent
    from strands.types.tools import AgentTool


@pytest.fixture(params=["memory", "files", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    if request.param == "memory":
        return InMemoryStorage()
    if request.param == "files":
        return FileStorage(str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", request.getfixturevalue("server").endpoint)
    return S3Storage(BUCKET, tmp_path.name, session())


def reader(storage: Any) -> AgentTool:  # noqa: ANN401
    """Return an async tool that reads with a storage, as users write it."""

    @tool
    async def my_read(ref: str) -> str:
        """Read what a placeholder refers to."""
        content, content_type = await storage.retrieve(ref)
        return f"{content_type} {len(content)} {content[-20:].decode()!r}"

    return my_read


def blocking_reader(storage: Any) -> AgentTool:  # noqa: ANN401
    """Return a plain tool, which Strands runs on a thread."""

    @tool
    def my_read(ref: str) -> str:
        """Read what a placeholder refers to."""
        content, content_type = asyncio.run(storage.retrieve(ref))
        return f"{content_type} {len(content)} {content[-20:].decode()!r}"

    return my_read


def asking(*tools: Any, **more: Any) -> tuple[ContextOffloader, Callable[..., Agent]]:  # noqa: ANN401
    """Return a plugin without our tool, and a function that makes an agent with these tools and a script."""
    plugin = ContextOffloader(more.pop("storage"), include_retrieval_tool=False, **more)

    def make(*turns: Any, **of_agent: Any) -> Agent:  # noqa: ANN401
        return agent(plugin, tools=[returning(BIG), *tools], turns=turns, **of_agent)

    return plugin, make


def first_reference(subject: Agent) -> str:
    return references(results(subject)[0])[0]


def read_own(messages: Any) -> Any:  # noqa: ANN401
    """Return a turn that reads what the first placeholder refers to."""
    found = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
    return call("my_read", ref=references(found[0])[0])


SEEN = f"text/plain {len(BIG.encode())} {BIG[-20:]!r}"


@pytest.mark.parametrize("make_reader", [reader, blocking_reader])
@pytest.mark.parametrize("executor", [ConcurrentToolExecutor, SequentialToolExecutor])
def test_the_users_own_tool_reads_with_the_storage(storage: Any, make_reader: Any, executor: Any) -> None:  # noqa: ANN401
    _, make = asking(make_reader(storage), storage=storage)
    subject = make(call(), read_own, tool_executor=executor())

    subject("go")

    assert text_of(results(subject)[1]) == SEEN


def tenants(storage: Any) -> tuple[Agent, Agent]:  # noqa: ANN401
    """Return an agent of tenant ``a`` that offloaded, and one of ``b`` that asks for the same reference."""
    _, make = asking(reader(storage), storage=storage, scope=lambda one: one.invocation_state["tenant"])
    mine = make(call())
    mine("go", invocation_state={"tenant": "a"})
    other = make(call("my_read", ref=first_reference(mine)))
    other("go", invocation_state={"tenant": "b"})
    return mine, other


def test_a_tool_reads_nothing_of_another_scope(storage: Any) -> None:  # noqa: ANN401
    _, other = tenants(storage)

    assert results(other)[0]["status"] == "error"
    assert "Reference not found" in text_of(results(other)[0])


def test_the_host_reads_what_any_scope_saved_with_this_object(storage: Any) -> None:  # noqa: ANN401
    mine, _ = tenants(storage)

    assert asyncio.run(storage.retrieve(first_reference(mine))) == (BIG.encode(), "text/plain")


def test_the_host_in_a_scope_reads_that_scope_only(storage: Any) -> None:  # noqa: ANN401
    mine, _ = tenants(storage)

    with coatcheck.scope("a"):
        assert asyncio.run(storage.retrieve(first_reference(mine))) == (BIG.encode(), "text/plain")
    with coatcheck.scope("b"), pytest.raises(KeyError, match="Reference not found"):
        asyncio.run(storage.retrieve(first_reference(mine)))


def test_after_a_restart_the_host_must_give_the_scope(tmp_path: Path) -> None:
    mine, _ = tenants(FileStorage(str(tmp_path)))
    again = FileStorage(str(tmp_path))

    with pytest.raises(KeyError, match="Reference not found"):
        asyncio.run(again.retrieve(first_reference(mine)))
    with coatcheck.scope("a"):
        assert asyncio.run(again.retrieve(first_reference(mine))) == (BIG.encode(), "text/plain")


def test_only_a_bounded_number_of_scopes_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_strands.compat.storing.MAX_SCOPES", 2)
    storage = InMemoryStorage()
    _, make = asking(storage=storage, scope=lambda one: one.invocation_state["tenant"])
    found = []
    for tenant in ("a", "b", "c"):
        subject = make(call())
        subject("go", invocation_state={"tenant": tenant})
        found.append(first_reference(subject))

    assert storage.known_scopes.names() == ["c", "b"]
    with pytest.raises(KeyError):
        asyncio.run(storage.retrieve(found[0]))


def test_the_plugins_method_reads_no_other_scope() -> None:
    storage = InMemoryStorage()
    mine, _ = tenants(storage)
    plugin = ContextOffloader(storage)

    with pytest.raises(ValueError, match="reference not found"):
        asyncio.run(plugin.retrieve_offloaded_content(first_reference(mine)))


def test_a_sub_agent_in_a_tool_keeps_the_scope_of_the_call_around_it() -> None:
    storage = InMemoryStorage()
    plugin, _ = asking(storage=storage, scope=lambda one: one.invocation_state.get("tenant", "inner"))
    read = reader(storage)

    @tool(context=True)
    async def ask_expert(ref: str, tool_context: Any) -> str:  # noqa: ANN401
        """Let an agent of another scope run, and read afterwards."""
        expert = agent(plugin, tools=[returning(BIG), read], turns=(call(), call("my_read", ref=ref)))
        await expert.invoke_async("go")
        content, _ = await storage.retrieve(ref)
        try:
            await storage.retrieve(first_reference(expert))
        except KeyError:
            return f"{results(expert)[1]['status']} {len(content)}"
        return "reads what the other scope has"

    subject = agent(
        plugin,
        tools=[returning(BIG), ask_expert],
        turns=(call(), lambda messages: call("ask_expert", ref=read_own(messages)[0][1]["ref"])),
        tool_executor=SequentialToolExecutor(),
    )
    subject("go", invocation_state={"tenant": "outer"})

    assert text_of(results(subject)[1]) == f"error {len(BIG.encode())}"


async def test_after_a_call_the_scope_of_the_host_applies_again() -> None:
    storage = InMemoryStorage()
    _, make = asking(storage=storage, scope="a")
    subject = make(call(), tool_executor=SequentialToolExecutor())
    await subject.invoke_async("go")

    with coatcheck.scope("b"), pytest.raises(KeyError):
        await storage.retrieve(first_reference(subject))


async def test_an_interrupted_call_leaves_no_scope_behind() -> None:
    storage = InMemoryStorage()

    @tool(context=True)
    def approve(tool_context: Any) -> str:  # noqa: ANN401
        """Ask a human."""
        return str(tool_context.interrupt("ok?"))

    _, make = asking(approve, storage=storage, scope="a")
    subject = make(call(), call("approve"), tool_executor=SequentialToolExecutor())
    answer = await subject.invoke_async("go")

    assert answer.stop_reason == "interrupt"
    with coatcheck.scope("b"), pytest.raises(KeyError):
        await storage.retrieve(first_reference(subject))


def test_a_scope_that_fails_reads_nothing() -> None:
    storage = InMemoryStorage()
    mine, _ = tenants(storage)
    _, make = asking(reader(storage), storage=storage, scope=lambda one: one.invocation_state["tenant"])
    subject = make(call("my_read", ref=first_reference(mine)))

    subject("go")

    assert results(subject)[0]["status"] == "error"


def test_without_our_tool_the_placeholder_names_the_file(tmp_path: Path) -> None:
    shown = text_of(results_of(ContextOffloader(FileStorage(str(tmp_path)), include_retrieval_tool=False)))
    (path,) = tmp_path.rglob("*.txt")

    assert f"file: {path}" in shown
    assert path.read_text(encoding="utf-8") == BIG


def test_with_our_tool_the_placeholder_names_no_file(tmp_path: Path) -> None:
    assert str(tmp_path) not in text_of(results_of(ContextOffloader(FileStorage(str(tmp_path)))))


def results_of(plugin: ContextOffloader) -> Any:  # noqa: ANN401
    subject = agent(plugin)
    subject("go")
    assert isinstance(subject.model, ScriptedModel)
    return results(subject)[0]
