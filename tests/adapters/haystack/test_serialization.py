"""Hooks and tools as dictionaries and YAML, alone and in pipelines, even in a process that has not imported us yet."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import haystack.hooks.tool_result_offloading as upstream
import pytest
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator
from haystack.core.errors import DeserializationError, SerializationError

from coatcheck import (
    Always,
    ByteCounter,
    FileStorage,
    InMemoryStorage,
    Never,
    Offloader,
    OverChars,
    OverShare,
    OverTokens,
    Settings,
)
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    NeverOffload,
    OffloadOverChars,
    OffloadOverTokens,
    OffloadPolicy,
    RetrievalTool,
    ToolResultOffloadHook,
    offloaded_references,
)
from tests.adapters.haystack.agents import LONG, OPENING, last, state_of, text_of

if TYPE_CHECKING:
    from pathlib import Path

OURS = "haystack_integrations.hooks.coatcheck."
THEIRS = "haystack.hooks.tool_result_offloading.hooks."


class EncryptedFiles(FileStorage):
    """Transforms what it saves, so a plain ``FileStorage`` cannot stand in for it."""


class Custom(OffloadPolicy):
    """A policy without arguments. It serializes by methods that it inherits."""

    def should_offload(self, tool_name: str, result: str, state: Any) -> bool:
        return True


STRATEGIES: dict[Any, Any] = {
    "search": OffloadOverTokens(700),
    ("a", "b"): OffloadOverChars(4_000),
    "kept": NeverOffload(),
    "*": AlwaysOffload(),
}


def hook_of(root: Path, **knobs: Any) -> ToolResultOffloadHook:
    return ToolResultOffloadHook(FileSystemToolResultStore(root), STRATEGIES, **knobs)


def test_a_hook_serializes_the_arguments_that_it_was_given(tmp_path: Path) -> None:
    written = hook_of(tmp_path, preview_tokens=90, scope="tenant", max_step_tokens=9_000).to_dict()

    assert written == {
        "type": OURS + "ToolResultOffloadHook",
        "init_parameters": {
            "store": {"type": OURS + "FileSystemToolResultStore", "init_parameters": {"root": str(tmp_path)}},
            "offload_strategies": {
                "search": {"type": OURS + "OffloadOverTokens", "init_parameters": {"threshold": 700}},
                '["a", "b"]': OffloadOverChars(4_000).to_dict(),
                "kept": NeverOffload().to_dict(),
                "*": AlwaysOffload().to_dict(),
            },
            "preview_tokens": 90,
            "scope": "tenant",
            "max_step_tokens": 9_000,
        },
    }
    assert json.loads(json.dumps(written)) == written


@pytest.mark.parametrize(
    "knobs", [{}, {"preview_chars": 400}, {"preview_tokens": 90, "scope": "a", "offload_errors": True}]
)
def test_a_loaded_hook_serializes_the_same(tmp_path: Path, knobs: dict[str, Any]) -> None:
    hook = hook_of(tmp_path, **knobs)

    loaded = ToolResultOffloadHook.from_dict(json.loads(json.dumps(hook.to_dict())))

    assert loaded.to_dict() == hook.to_dict()
    assert {type(key) for key in loaded.offload_strategies or ()} == {str, tuple}
    assert loaded.preview_chars == hook.preview_chars


def test_loading_does_not_change_its_input(tmp_path: Path) -> None:
    written = hook_of(tmp_path).to_dict()
    copy = json.loads(json.dumps(written))

    ToolResultOffloadHook.from_dict(written)

    assert written == copy


def test_a_loaded_hook_offloads_the_same(tmp_path: Path) -> None:
    hook = hook_of(tmp_path, preview_chars=80)
    loaded = ToolResultOffloadHook.from_dict(hook.to_dict())
    here, there = state_of(LONG), state_of(LONG)

    hook.run(here)
    loaded.run(there)

    assert text_of(last(here)) == text_of(last(there))
    assert text_of(last(here)).startswith(OPENING)


@pytest.mark.parametrize("package", [THEIRS, OURS], ids=["as it is", "with the type changed"])
def test_a_serialized_hook_of_haystacks_own_can_be_loaded(package: str, tmp_path: Path) -> None:
    theirs = upstream.ToolResultOffloadHook(
        upstream.FileSystemToolResultStore(tmp_path), {("a", "search"): upstream.AlwaysOffload()}, preview_chars=40
    )
    state = state_of(LONG)

    loaded = ToolResultOffloadHook.from_dict({**theirs.to_dict(), "type": package + "ToolResultOffloadHook"})
    loaded.run(state)

    assert text_of(last(state)).startswith(OPENING)
    assert loaded.to_dict()["type"] == OURS + "ToolResultOffloadHook"


def test_a_hook_with_our_own_file_storage_is_serialized(tmp_path: Path) -> None:
    files = FileStorage(tmp_path, fsync=True, refresh_on_read=False, max_age=timedelta(days=7), max_bytes=10**9)
    hook = ToolResultOffloadHook(files, max_result_tokens=700)
    state = state_of(LONG)

    loaded = ToolResultOffloadHook.from_dict(hook.to_dict())
    hook.run(state)

    assert isinstance(loaded.store, FileStorage)
    assert (loaded.store.root, loaded.store.fsync, loaded.store.refresh_on_read) == (tmp_path, True, False)
    assert (loaded.store.max_age, loaded.store.max_bytes, loaded.store.max_scope_bytes) == (604_800.0, 10**9, None)
    assert loaded.offload_strategies is None
    (reference,) = offloaded_references(state.data["messages"][-1])
    assert loaded.offloader.load(reference).text == LONG


@pytest.mark.parametrize("root", ["./artifacts", "artifacts", "~/artifacts"])
def test_a_folder_is_serialized_as_it_was_given(root: str) -> None:
    written = ToolResultOffloadHook(FileStorage(root)).to_dict()

    assert written["init_parameters"]["store"]["init_parameters"]["root"] == root
    assert ToolResultOffloadHook.from_dict(written).to_dict() == written


def test_a_scope_of_several_parts_is_serialized(tmp_path: Path) -> None:
    hook = hook_of(tmp_path, scope=("tenant-7", "thread-1"))

    for made in (hook, RetrievalTool(hook)):
        written = json.loads(json.dumps(made.to_dict()))
        assert type(made).from_dict(written).to_dict() == made.to_dict()
    assert RetrievalTool.from_dict(RetrievalTool(hook).to_dict()).source.scope == ("tenant-7", "thread-1")


def test_a_retrieval_tool_is_serialized_with_its_hooks_store_and_scope(tmp_path: Path) -> None:
    hook = hook_of(tmp_path, scope="tenant", max_retrieval_tokens=300)
    state = state_of(LONG)
    hook.run(state)
    (reference,) = offloaded_references(state.data["messages"][-1])

    loaded = RetrievalTool.from_dict(json.loads(json.dumps(RetrievalTool(hook, name="read_back").to_dict())))

    assert (loaded.name, loaded.source.scope) == ("read_back", "tenant")
    assert "row 1999:" in loaded.invoke(reference=reference, pattern="row 1999:")
    assert len(loaded.invoke(reference=reference)) < 300 * 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ToolResultOffloadHook(Offloader()), "it has a ready Offloader. Pass the storage and the options"),
        (lambda: ToolResultOffloadHook(InMemoryStorage()), "InMemoryStorage has no to_dict. Use FileStorage"),
        (lambda: ToolResultOffloadHook(EncryptedFiles("x")), "EncryptedFiles has no to_dict. Use FileStorage"),
        (lambda: ToolResultOffloadHook(FileStorage("x"), scope=str), "scope is <class 'str'>. Leave it out, and set"),
        (lambda: ToolResultOffloadHook(FileStorage("x"), token_counter=ByteCounter()), "or make the agent in Python"),
        (lambda: ToolResultOffloadHook(FileStorage("x"), on_event=print), "on_event is <built-in"),
        (lambda: ToolResultOffloadHook(FileStorage("x"), settings=Settings()), "Pass what it holds as arguments"),
        (lambda: ToolResultOffloadHook(FileStorage("x"), {"*": lambda _: True}), "Use a policy with to_dict"),
        (lambda: RetrievalTool(FileStorage("x"), policies={"a": lambda _: True}), "Use Always, Never, OverTokens"),
        (lambda: RetrievalTool(ToolResultOffloadHook(Offloader())), "RetrievalTool cannot be serialized"),
        (lambda: RetrievalTool(InMemoryStorage()), "RetrievalTool cannot be serialized: InMemoryStorage"),
    ],
    ids=[
        "offloader",
        "memory",
        "subclass",
        "callable scope",
        "counter",
        "on_event",
        "settings",
        "callable strategy",
        "policy of your own",
        "tool of an offloader",
        "tool",
    ],
)
def test_the_error_names_what_cannot_be_serialized_and_what_to_do(make: Any, message: str) -> None:
    with pytest.raises(SerializationError) as raised:
        make().to_dict()

    assert message in str(raised.value)


def test_policies_of_the_core_survive_a_round_trip(tmp_path: Path) -> None:
    policies: dict[Any, Any] = {
        "a": Always(),
        "b": Never(),
        ("c", "d"): OverTokens(5),
        "e": OverChars(6),
        "*": OverShare(0.5, context_window=8_000),
    }
    hook = ToolResultOffloadHook(FileStorage(tmp_path), policies)

    loaded = ToolResultOffloadHook.from_dict(json.loads(json.dumps(hook.to_dict())))

    assert loaded.offload_strategies == policies


def test_policies_that_are_an_option_survive_a_round_trip(tmp_path: Path) -> None:
    policies: dict[Any, Any] = {"a": Never(), ("b", "c"): OverTokens(5), "*": OverShare(0.5, context_window=8_000)}
    hook = ToolResultOffloadHook(FileStorage(tmp_path), policies=policies)

    for made in (hook, RetrievalTool(hook)):
        loaded = type(made).from_dict(json.loads(json.dumps(made.to_dict())))
        assert loaded.source.options["policies"] == policies


def test_a_custom_policy_is_serialized_by_inherited_methods(tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), {"*": Custom()})

    written = hook.to_dict()["init_parameters"]["offload_strategies"]["*"]

    assert written == {"type": f"{Custom.__module__}.Custom", "init_parameters": {}}
    assert isinstance(Custom.from_dict(written), Custom)
    with pytest.raises(DeserializationError, match="allow"):
        ToolResultOffloadHook.from_dict(hook.to_dict())


# Agents and pipelines.


def agent_over(hook: ToolResultOffloadHook) -> Agent:
    """Return an agent in which only the hook and the tool are ours."""
    return Agent(
        chat_generator=MockChatGenerator(responses="done"), tools=[RetrievalTool(hook)], hooks={"after_tool": [hook]}
    )


def test_an_agent_with_hook_and_tool_survives_a_round_trip(tmp_path: Path) -> None:
    agent = agent_over(hook_of(tmp_path, scope="tenant"))

    loaded = Agent.from_dict(json.loads(json.dumps(agent.to_dict())))

    assert loaded.to_dict() == agent.to_dict()
    assert [type(hook) for hook in loaded.hooks["after_tool"]] == [ToolResultOffloadHook]
    assert [type(tool) for tool in loaded.tools] == [RetrievalTool]


FRESH = """
import sys
from haystack import Pipeline

assert not any(name.startswith(("coatcheck", "haystack_integrations")) for name in sys.modules)
pipeline = Pipeline.loads(sys.stdin.read())
assert "langchain_core" not in sys.modules
agent = pipeline.get_component("agent")

from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, ToolCall

call = ToolCall("search", {}, id="1")
state = State(schema={"messages": {"type": list[ChatMessage]}, "tools": {"type": list}})
messages = [ChatMessage.from_assistant(tool_calls=[call]), ChatMessage.from_tool("word " * 9_000, origin=call)]
state.set("messages", messages)
state.set("tools", agent.tools)
(hook,) = agent.hooks["after_tool"]
hook.run(state)
message = state.data["messages"][-1]
(reference,) = message.meta["tool_result_offloaded"]
print(type(hook).__name__, agent.tools[0].invoke(state=state, reference=reference, offset=-10))
print(pipeline.dumps())
"""


@pytest.mark.parametrize("storage", ["store", "files"])
def test_a_pipeline_loads_from_yaml_in_a_fresh_process_without_an_allowlist(tmp_path: Path, storage: str) -> None:
    store = FileSystemToolResultStore(tmp_path) if storage == "store" else FileStorage(tmp_path)
    pipeline = Pipeline()
    pipeline.add_component("agent", agent_over(ToolResultOffloadHook(store, STRATEGIES, scope="tenant")))
    written = pipeline.dumps()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    env = {**env, "HAYSTACK_TELEMETRY_ENABLED": "False"}

    ran = subprocess.run(
        [sys.executable, "-c", FRESH], input=written, capture_output=True, text=True, env=env, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("ToolResultOffloadHook [Characters 44,990-")
    assert ran.stdout.partition("components:")[2].strip() == written.partition("components:")[2].strip()


def test_a_hook_that_cannot_be_serialized_says_so_for_the_whole_pipeline() -> None:
    pipeline = Pipeline()
    pipeline.add_component("agent", agent_over(ToolResultOffloadHook(InMemoryStorage())))

    with pytest.raises(SerializationError, match="InMemoryStorage has no to_dict"):
        pipeline.dumps()
