"""Threads and stores that earlier versions left: the thread continues, and the store is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from coatcheck import FileStorage
from coatcheck.storage import LangGraphStoreBridge
from coatcheck_langchain import OffloadMiddleware, offloaded_references
from tests.adapters.langchain.samples import text_of
from tests.adapters.langgraph.agents import agent_of, answers, question, read, say, thread
from tests.formats.kept import check_storage, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path


@tool
def other() -> str:
    """Do nothing."""
    return ""


@every_version
def test_a_thread_from_an_earlier_version_continues(version: str, tmp_path: Path) -> None:
    left = left_by(version, "langchain", tmp_path)
    middleware = [OffloadMiddleware(FileStorage(tmp_path / "artifacts"))]
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        turns = (read(pattern="^line 1,000 of"), say())
        agent, _ = agent_of([other], *turns, middleware=middleware, checkpointer=saver)
        before = answers(agent.get_state(thread("thread-1")).values["messages"])
        after = answers(agent.invoke(question("go on"), thread("thread-1"))["messages"])

    assert after[:-1] == before, "nothing is offloaded again"
    assert [list(offloaded_references(message)) for message in before] == left.references
    assert "> 1000| line 1,000 of 2,000" in text_of(after[-1])


@every_version
def test_a_store_from_an_earlier_version_is_read(version: str, tmp_path: Path) -> None:
    left = left_by(version, "langgraph-sqlite", tmp_path)

    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
        store.setup()
        check_storage(LangGraphStoreBridge(store), left)
