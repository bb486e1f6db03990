"""Checks what docs/comparison.md says about deepagents' file system middleware, and that ours differs as it says.

deepagents is installed only for these tests and for its page: no part of coatcheck needs it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.tools import StructuredTool

from coatcheck import FileStorage
from coatcheck.testing.samples import long_line, numbered_lines
from coatcheck_langchain import OffloadMiddleware
from tests.adapters.langgraph.agents import agent_of, answers, call, question, read, reference_in, say, thread

if sys.version_info < (3, 11):
    pytest.skip("deepagents needs Python 3.11", allow_module_level=True)

from deepagents.backends import FilesystemBackend
from deepagents.middleware.filesystem import FilesystemMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import ToolMessage

BIG = numbered_lines(4_000)
LINE = long_line(300_000)
EVICTED = "/large_tool_results/call-1"


def theirs(folder: Path) -> FilesystemMiddleware[Any, Any]:
    return FilesystemMiddleware(backend=FilesystemBackend(root_dir=folder, virtual_mode=True))


def ours(folder: Path) -> OffloadMiddleware:
    return OffloadMiddleware(FileStorage(folder))


def answered(middleware: object, text: str, *reads: Any, thread_id: str = "1") -> Sequence[ToolMessage]:  # noqa: ANN401
    """Return the tool messages of an agent whose first call returns ``text`` and that then reads back."""
    fetch = StructuredTool.from_function(lambda: text, name="fetch", description="Gives a text.")
    agent, _ = agent_of([fetch], call(("fetch", {})), *reads, say(), middleware=[middleware])
    return answers(agent.invoke(question(), thread(thread_id))["messages"])


def from_files(tool: str, **arguments: object) -> Any:  # noqa: ANN401
    return call((tool, arguments), prefix="read")


@pytest.mark.parametrize(("characters", "leaves"), [(80_000, False), (80_001, True)])
def test_theirs_counts_four_characters_per_token(characters: int, *, leaves: bool, tmp_path: Path) -> None:
    (message,) = answered(theirs(tmp_path), "x" * characters)

    assert str(message.content).startswith("Tool result too large") is leaves


def test_theirs_shows_five_lines_of_head_and_five_of_tail(tmp_path: Path) -> None:
    shown = str(answered(theirs(tmp_path), BIG)[0].content)

    assert [f"line {number:,} of" in shown for number in (1, 5, 6, 3_995, 3_996, 4_000)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


def test_theirs_cannot_read_the_end_of_one_long_line_without_a_sandbox(tmp_path: Path) -> None:
    end = "<299990>"
    ways = [
        from_files("read_file", file_path=EVICTED),
        from_files("read_file", file_path=EVICTED, offset=1),
        from_files("grep", pattern=end, path="/large_tool_results", output_mode="content"),
    ]

    assert not any(end in str(message.content) for message in answered(theirs(tmp_path / "theirs"), LINE, *ways))
    assert end in str(answered(ours(tmp_path / "ours"), LINE, read(pattern=end))[-1].content)


def test_theirs_keeps_one_content_per_call_id_and_anyone_with_the_path_can_read_it(tmp_path: Path) -> None:
    middleware = theirs(tmp_path)
    answered(middleware, BIG, thread_id="1")
    answered(middleware, BIG.replace("line", "row"), thread_id="2")

    seen = answered(middleware, "few", from_files("read_file", file_path=EVICTED), thread_id="1")

    assert "row 7 of" in str(seen[-1].content)
    assert "line 7 of" not in str(seen[-1].content)


def test_ours_keeps_both_contents_each_for_its_own_conversation(tmp_path: Path) -> None:
    middleware = ours(tmp_path)
    first = answered(middleware, BIG, thread_id="1")
    answered(middleware, BIG.replace("line", "row"), thread_id="2")
    reference = reference_in(first)
    ask = call(("retrieve_offloaded_content", {"reference": reference, "line_range": "7-7"}), prefix="read")

    assert "line 7 of" in str(answered(middleware, "few", ask, thread_id="1")[-1].content)
    assert "reference not found" in str(answered(middleware, "few", ask, thread_id="2")[-1].content)


def test_what_theirs_reads_back_is_bounded(tmp_path: Path) -> None:
    seen = answered(theirs(tmp_path), LINE, from_files("read_file", file_path=EVICTED))

    assert len(str(seen[-1].content)) <= 80_000
