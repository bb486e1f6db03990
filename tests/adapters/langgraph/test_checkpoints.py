"""Threads that go on later in another process: references still work, and no checkpoint holds the bytes."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from coatcheck import FileStorage, Offloader
from coatcheck_langchain import (
    OffloadMiddleware,
    offload_tool_calls,
    offload_tool_node,
    offloaded_references,
    retrieval_tool,
)
from tests.adapters.langchain.samples import BIG_MEDIUM, LONG, OPENING, make_offloader, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, graph_of, question, read, say, thread, tool_node

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]

MARKER = "row 1500: the quick brown fox"
"""In the middle of the result, so in no preview."""

PROGRAM = """
import json, sys
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from coatcheck import FileStorage
from coatcheck_langchain import OffloadMiddleware
from tests.adapters.langchain.samples import LONG, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, question, read, say, thread

folder, part = sys.argv[1:]

@tool
def search(query: str) -> str:
    "Search for rows."
    return LONG

turns = {"ask": (call(("search", {"query": "q"})), say()), "read": (read(pattern="row 1500:"), say())}[part]
with SqliteSaver.from_conn_string(folder + "/checkpoints.sqlite") as saver:
    middleware = OffloadMiddleware(FileStorage(folder + "/artifacts"))
    agent, _ = agent_of([search], *turns, middleware=[middleware], checkpointer=saver)
    messages = agent.invoke(question(part), thread("a"))["messages"]
print(json.dumps([[message.status, text_of(message)] for message in answers(messages)]))
"""


def python(folder: Path, part: str) -> list[Any]:
    path = [str(ROOT), str(ROOT / "src"), str(ROOT / "adapters")]
    code = f"import sys; sys.path[:0] = {path!r}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", code, str(folder), part], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answered: list[Any] = json.loads(done.stdout)
    return answered


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Return the folder that another process left, and its answers. Once per module: LangGraph loads slowly."""
    folder = tmp_path_factory.mktemp("asked")
    return folder, python(folder, "ask")


def test_a_thread_goes_on_in_a_new_process(asked: tuple[Path, list[Any]], tmp_path: Path) -> None:
    folder, ((status, placeholder),) = asked
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)

    first, second = python(tmp_path, "read")

    assert status == "success"
    assert first == [status, placeholder]
    assert second[0] == "success"
    assert MARKER in second[1]


def test_the_bytes_are_in_no_checkpoint(asked: tuple[Path, list[Any]]) -> None:
    folder, _ = asked

    with closing(sqlite3.connect(folder / "checkpoints.sqlite")) as connection:
        dump = "\n".join(connection.iterdump())
    assert "Tool result offloaded" in bytes.fromhex("".join(_hex_in(dump))).decode("utf-8", "replace")
    for path in folder.glob("checkpoints*"):
        assert MARKER.encode() not in path.read_bytes()


def _hex_in(dump: str) -> list[str]:
    return [part.partition("'")[0] for part in dump.split("X'")[1:]]


@tool
def search(query: str) -> Any:
    """Search for rows and a picture."""
    return [{"type": "text", "text": LONG}, {"type": "image", "base64": BIG_MEDIUM, "mime_type": "image/png"}]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("way", ["middleware", "calls", "node"])
async def test_neither_text_nor_media_are_in_the_state_or_its_checkpoints(way: str, mode: str) -> None:
    saver = InMemorySaver()
    offloader = make_offloader()
    tools = [search, retrieval_tool(offloader)]
    turns = (call(("search", {"query": "q"})), read(pattern="row 7:"), say())
    graph: Any
    if way == "middleware":
        graph, _ = agent_of([search], *turns, middleware=[OffloadMiddleware(offloader)], checkpointer=saver)
    elif way == "calls":
        graph, _ = graph_of(tool_node(tools, **offload_tool_calls(offloader)), *turns, checkpointer=saver)
    else:
        graph, _ = graph_of(offload_tool_node(tool_node(tools), offloader), *turns, checkpointer=saver)

    if mode == "sync":
        graph.invoke(question(), thread("a"))
    else:
        await graph.ainvoke(question(), thread("a"))

    states = list(graph.get_state_history(thread("a")))
    assert any(OPENING in repr(state) for state in states)
    assert not any(MARKER in repr(state) or BIG_MEDIUM[:1_000] in repr(state) for state in states)
    kept = _bytes_of(saver.blobs) + _bytes_of(saver.writes)
    assert OPENING.encode() in kept
    assert MARKER.encode() not in kept
    assert BIG_MEDIUM[:1_000].encode() not in kept


def _bytes_of(stored: Mapping[Any, Any]) -> bytes:
    found: list[bytes] = []

    def walk(value: object) -> None:
        if isinstance(value, bytes):
            found.append(value)
        elif isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, tuple | list):
            for each in value:
                walk(each)

    walk(dict(stored))
    return b"".join(found)


def test_a_restored_thread_does_not_offload_again(tmp_path: Path) -> None:
    saver = InMemorySaver()
    offloader = Offloader(FileStorage(tmp_path))
    first, _ = agent_of(
        [search], call(("search", {"query": "q"})), say(), middleware=[OffloadMiddleware(offloader)], checkpointer=saver
    )
    first.invoke(question(), thread("a"))

    later = Offloader(FileStorage(tmp_path))
    second, model = agent_of(
        [search], read(pattern="row 1500:"), say(), middleware=[OffloadMiddleware(later)], checkpointer=saver
    )
    messages = second.invoke(question("go on"), thread("a"))["messages"]

    placeholder, match = answers(messages)
    assert later.stats().offloaded == 0
    assert MARKER in text_of(match)
    assert answers(model.seen[0])[0].content == placeholder.content


def test_references_survive_a_round_trip_of_a_message_through_json() -> None:
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say())
    messages = agent.invoke(question())["messages"]

    restored = messages_from_dict(json.loads(json.dumps(messages_to_dict(messages))))

    (before,), (after,) = answers(messages), answers(restored)
    assert isinstance(after, ToolMessage)
    assert offloaded_references(after) == offloaded_references(before) != ()


def test_the_thread_id_deletes_a_conversation_in_checkpointer_and_storage() -> None:
    @tool
    def given() -> str:
        """Give a long text."""
        return LONG

    saver, offloader = InMemorySaver(), make_offloader()
    for name in ("one", "two"):
        middleware = [OffloadMiddleware(offloader)]
        agent, _ = agent_of([given], call(("given", {})), say(), middleware=middleware, checkpointer=saver)
        agent.invoke(question(), thread(name))

    saver.delete_thread("one")
    deleted = offloader.delete_scope("one")

    assert deleted > 0
    assert agent.get_state(thread("one")).values == {}
    assert offloader.delete_scope("one") == 0
    assert offloader.delete_scope("two") == deleted
