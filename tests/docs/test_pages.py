"""Every page does what it says: its Python runs from top to bottom, and its shown blocks are what the code returns.

A page runs once for each installed part that it needs: the core's blocks together with those of that part.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import CORE, PAGES, Block, blocks_of, shown
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from coatcheck.testing.server import Conversation

AT_RUN_TIME = {"python", "shown"}

NEEDED_BY = {
    "agent-framework": ("agent_framework", "agent_framework_openai"),
    "claude": ("claude_agent_sdk",),
    "google-adk": ("google", "google.adk"),  # `google` is a namespace package, which may be missing
    "langgraph": ("langgraph", "langchain_openai"),
    "llamaindex": ("llama_index",),
    "mcp": ("fastmcp", "uncalled_for"),  # other frameworks install the client without the server's requirements
    "openai-agents": ("agents",),
    "pydantic-ai": ("pydantic_ai",),
}
"""The modules that a part's blocks import, if these are not the one of the part's name."""

# A page ends like a script, with its connections open.
ENDS_AS_A_SCRIPT = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Inheritance class AiohttpClientSession:DeprecationWarning",  # from Google's client
    "ignore:'(CompactionHook|Summari.*)' is an experimental component",  # from Haystack, as its page says
)


def is_installed(part: str) -> bool:
    """Return whether everything that the blocks of a part import is installed."""
    return all(find_spec(name) is not None for name in NEEDED_BY.get(part, (part,)))


def pages_with(*, core: bool) -> list[Any]:
    """Return each page with its part: ``core``, or else each installed framework for which it has blocks."""
    found = []
    for page in PAGES:
        parts = {block.part for block in blocks_of(page) if block.kind in AT_RUN_TIME}
        chosen = parts & {CORE} if core else {part for part in parts - {CORE} if is_installed(part)}
        found += [pytest.param(page, part, id=f"{page.relative_to(ROOT).as_posix()}-{part}") for part in sorted(chosen)]
    return found


@pytest.mark.parametrize(("page", "part"), pages_with(core=True))
def test_a_page_of_the_core_does_what_it_says(
    page: Path, part: str, conversation: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    run_page(page, part, conversation=conversation, folder=tmp_path)


@pytest.fixture
def own_loop() -> Iterator[None]:
    """Close the event loop that a page leaves on this thread: the sync runners of some frameworks leave one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    with suppress(RuntimeError):  # the page left none, for example after `asyncio.run`
        asyncio.get_event_loop_policy().get_event_loop().close()
    asyncio.set_event_loop(None)
    loop.close()


@ENDS_AS_A_SCRIPT
@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize(("page", "part"), pages_with(core=False))
def test_a_page_with_an_extra_does_what_it_says(
    page: Path, part: str, conversation: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem == "deepagents" and sys.version_info < (3, 11):
        pytest.skip("deepagents needs Python 3.11")
    monkeypatch.chdir(tmp_path)

    run_page(page, part, conversation=conversation, folder=tmp_path)


def run_page(page: Path, part: str, *, conversation: Conversation, folder: Path) -> None:
    """Run the blocks of the core and of ``part``, in order."""
    blocks = [block for block in blocks_of(page) if block.kind in AT_RUN_TIME and block.part in {CORE, part}]
    if any("import pytest" in block.text for block in blocks):
        run_as_tests(blocks, folder)
    else:
        run(blocks, str(page), conversation)


def run(blocks: Sequence[Block], page: str, conversation: Conversation) -> None:
    """Run the Python of a page in one namespace, and compare each shown block with the value at that point."""

    def received() -> list[str]:
        """Return to hidden code the tool results in the model's last request."""
        return [result.text for result in conversation.transcript().received]

    names: dict[str, Any] = {"__name__": "__main__", "received": received}
    for block in blocks:
        if block.kind == "python":
            code = compile("\n" * block.line + block.text, page, "exec", dont_inherit=True)
            exec(code, names)  # noqa: S102 - the code under test
        else:
            assert block.text == shown(names[block.name]), "python -m tests.docs.rewrite"


def run_as_tests(blocks: Sequence[Block], folder: Path) -> None:
    """Run a page that shows tests as a reader would: in a file, with pytest."""
    (folder / "test_shown.py").write_text("\n\n".join(block.text for block in blocks), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "test_shown.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
