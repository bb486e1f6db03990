"""``RetrievalTool``: what the model may ask, whose content it gets, and what it is told when it asks wrongly."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING, Any

import pytest
from haystack.dataclasses import FileContent, ImageContent
from haystack.tools.toolset import Toolset

from coatcheck import (
    RETRIEVAL_DESCRIPTION,
    RETRIEVAL_TOOL,
    Always,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    MediaBlock,
    Offloader,
    TextBlock,
    retrieval_schema,
)
from coatcheck_haystack import RetrievalTool, ToolResultOffloadHook, offloaded_references
from tests.adapters.haystack.agents import (
    LONG,
    PNG,
    agent_of,
    call,
    last,
    read,
    results,
    run,
    say,
    state_of,
    text_of,
    tool,
)

if TYPE_CHECKING:
    from pathlib import Path

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
SEARCH = tool("search", LONG)
ENCODED = base64.b64encode(PNG).decode()


async def ask(tool: RetrievalTool, mode: str = "sync", **arguments: Any) -> Any:
    return tool.invoke(**arguments) if mode == "sync" else await tool.invoke_async(**arguments)


@pytest.fixture
def offloader() -> Offloader:
    return Offloader(InMemoryStorage(), policies={"*": Always()})


@pytest.fixture
def reference(offloader: Offloader) -> str:
    return offloader.offload([TextBlock(LONG)], tool_name="search").references[0].id


def test_the_model_is_offered_what_the_core_says() -> None:
    spec = RetrievalTool(InMemoryStorage()).tool_spec

    assert (spec["name"], spec["description"]) == (RETRIEVAL_TOOL, RETRIEVAL_DESCRIPTION)
    assert spec["parameters"] == retrieval_schema()


@RUNS
async def test_answers_are_bounded_text(mode: str, offloader: Offloader, reference: str) -> None:
    answer = await ask(RetrievalTool(offloader), mode, reference=reference)

    assert answer.startswith("[Characters 0-")
    assert f'[More: {RETRIEVAL_TOOL}(reference="{reference}"' in answer
    assert len(answer) < 20_000 < len(LONG)


@RUNS
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"reference": "search-0123456789abcdef-0123"}, "call again"),
        ({}, "reference is missing: copy it from the placeholder"),
        ({"reference": None}, "reference is missing: copy it from the placeholder"),
        ({"reference": 7}, "not int: copy it from the placeholder"),
        ({"reference": "R", "pattern": "(?=x)"}, "RE2"),
        ({"reference": "R", "line_range": "nine"}, 'line_range must look like "10-20"'),
        ({"reference": "R", "scope": "tenant-b", "native_media": True}, "unknown arguments: 'scope', 'native_media'"),
        ({"reference": "R", "self": "x"}, "unknown arguments: 'self'"),
        ({"reference": "R", **{f"a{number}": 1 for number in range(50)}}, "'a4'; accepted"),
    ],
    ids=["unknown", "nothing", "None", "number", "look-ahead", "range", "scope", "self", "many"],
)
async def test_a_wrong_call_by_the_model_is_answered_and_not_raised(
    mode: str, arguments: dict[str, Any], told: str, offloader: Offloader, reference: str
) -> None:
    given = {**arguments, "reference": reference} if arguments.get("reference") == "R" else arguments
    agent, _ = agent_of(
        [RetrievalTool(offloader)],
        call((RETRIEVAL_TOOL, given)),
        say(),
        hooks=[],
        raise_on_tool_invocation_failure=True,
    )

    (result,) = results((await run(agent, mode))["messages"])

    assert told in text_of(result)
    assert not result.error


@RUNS
async def test_a_state_that_the_model_sends_is_overwritten(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of(
        [SEARCH],
        call(("search", {})),
        read(pattern="row 7:", state={"hook_context": {"coatcheck_scope": "victim"}}),
        say(),
        hook=hook,
    )

    answer = await run(agent, mode, hook_context={"coatcheck_scope": "mine"})

    assert "row 7:" in text_of(results(answer["messages"])[1])


@RUNS
async def test_a_run_reads_its_own_store_and_its_own_scope_only(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    tool, own = RetrievalTool(hook), InMemoryStorage()
    context = {"tool_result_store": own, "coatcheck_scope": "mine"}
    mine, others = state_of(LONG, hook_context=context), state_of(hook_context={**context, "coatcheck_scope": "theirs"})
    hook.run(mine)
    (reference,) = offloaded_references(mine.data["messages"][-1])

    assert "row 7:" in await ask(tool, mode, state=mine, reference=reference, pattern="row 7:")
    assert "call again" in await ask(tool, mode, state=others, reference=reference)
    assert "call again" in await ask(tool, mode, reference=reference)
    assert Offloader(own).load(reference, scope="mine").text == LONG


@RUNS
async def test_a_tool_made_from_a_storage_reads_what_a_hook_stored_there(mode: str, tmp_path: Path) -> None:
    state = state_of(LONG)
    ToolResultOffloadHook(FileStorage(tmp_path), scope="tenant").run(state)
    (reference,) = offloaded_references(state.data["messages"][-1])

    tool = RetrievalTool(FileStorage(tmp_path), scope="tenant", max_retrieval_tokens=300)

    assert "row 7:" in await ask(tool, mode, reference=reference, pattern="row 7:")
    assert len(await ask(tool, mode, reference=reference)) < 1_500


@RUNS
async def test_media_are_described_or_returned_natively(mode: str, offloader: Offloader) -> None:
    blocks = [MediaBlock(PNG, "image/png"), MediaBlock(b"%PDF", "application/pdf", name="a.pdf")]
    image, file = (one.id for one in offloader.offload(blocks, tool_name="scan").references)

    described = await ask(RetrievalTool(offloader), mode, reference=image)
    (shown,) = await ask(RetrievalTool(offloader, native_media=True), mode, reference=image)
    (whole,) = await ask(RetrievalTool(offloader, native_media=True), mode, reference=file)
    (again,) = await ask(RetrievalTool(offloader, native_media=True), mode, reference=file)

    assert "image/png" in described
    assert (type(shown), shown.mime_type, shown.base64_image) == (ImageContent, "image/png", ENCODED)
    assert (type(whole), whole.mime_type) == (FileContent, "application/pdf")
    assert whole.filename != again.filename  # Bedrock refuses two files with one name


@RUNS
async def test_an_agent_gets_native_media_and_text(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), max_result_tokens=100, preview_tokens=20)
    picture = tool("picture", [ImageContent(ENCODED, mime_type="image/png")], raw=True)
    reader = RetrievalTool(hook, native_media=True)
    agent, _ = agent_of(
        [picture, reader], call(("picture", {})), read(), read(line_range="1-1"), say(), hook=hook, reads=False
    )

    _, native, described = results((await run(agent, mode))["messages"])

    assert native.result == [ImageContent(ENCODED, mime_type="image/png", validation=False)]
    assert isinstance(described.result, str)


@RUNS
async def test_answers_of_the_tool_are_never_offloaded(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": lambda _: True}, max_retrieval_tokens=20_000)
    other = RetrievalTool(InMemoryStorage(), name="read_elsewhere")
    agent, _ = agent_of(
        [SEARCH, other],
        call(("search", {})),
        read(),
        call(("read_elsewhere", {"reference": "x"})),
        say(),
        hook=hook,
    )

    _, page, miss = results((await run(agent, mode))["messages"])

    assert text_of(page).startswith("[Characters 0-")
    assert len(text_of(page)) > 50_000
    assert not text_of(miss).startswith("Tool result offloaded.")


@RUNS
async def test_a_failing_storage_is_answered_and_not_raised(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(InMemoryStorage):
        def load(self, key: str) -> Any:
            msg = "secret address"
            raise RuntimeError(msg)

        def load_range(self, key: str, *, start: int, length: int) -> Any:
            msg = "secret address"
            raise RuntimeError(msg)

    offloader = Offloader(Failing(), policies={"*": Always()})
    reference = offloader.offload([TextBlock(LONG)], tool_name="search").references[0].id

    answer = await ask(RetrievalTool(offloader), mode, reference=reference)

    assert "cannot be read now" in answer
    assert "secret" not in answer


@RUNS
async def test_a_failing_scope_callable_is_answered_and_reads_nothing(
    mode: str, reference: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(state: object) -> str:
        msg = "no tenant"
        raise RuntimeError(msg)

    tool = RetrievalTool(InMemoryStorage(), scope=broken)

    assert "internal error" in await ask(tool, mode, state=state_of(), reference=reference)
    assert "the application is not set up" in await ask(tool, mode, reference=reference)
    assert "outside a run" in caplog.text


@RUNS
@pytest.mark.parametrize(
    ("owner", "advice"), [(InMemoryStorage(), "read(reference)"), (Offloader(), "put an Offloader into hook_context")]
)
async def test_an_invalid_store_of_a_run_is_explained_to_the_host_and_not_to_the_model(
    mode: str, owner: InMemoryStorage | Offloader, advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    state = state_of(hook_context={"tool_result_store": "./results"})

    answered = await ask(RetrievalTool(owner), mode, state=state, reference="R")

    assert "the application is not set up" in answered
    assert "hook_context" not in answered
    assert advice in caplog.text


def test_the_tool_may_be_in_a_toolset() -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    state = state_of(LONG, tools=list(Toolset([SEARCH, RetrievalTool(hook)])))

    hook.run(state)

    assert f"{RETRIEVAL_TOOL}(reference, " in text_of(last(state))


def test_a_copy_of_a_state_shares_the_tool() -> None:
    tool = RetrievalTool(InMemoryStorage())
    state = state_of(tools=[tool])

    assert copy.deepcopy(tool) is tool
    assert state.get("tools") == [tool]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"store": None}, "ToolResultStore"),
        ({"store": ToolResultOffloadHook(InMemoryStorage()), "scope": "a"}, "the hook has its own scope"),
        ({"store": ToolResultOffloadHook(InMemoryStorage()), "max_retrieval_tokens": 300}, "the hook has its own max_"),
        ({"store": Offloader(), "max_retrieval_tokens": 300}, "a ready Offloader has its own max_retrieval_tokens"),
        ({"name": ""}, "name must be"),
        ({"scope": 7}, "scope must be"),
        ({"native_media": "false"}, "native_media must be True or False, not 'false'"),
        ({"max_retrieval_tokens": 5}, "max_retrieval_tokens must be"),
    ],
    ids=["None", "hook and scope", "hook and knob", "offloader and knob", "name", "scope", "flag", "knob"],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        RetrievalTool(**{"store": InMemoryStorage(), **arguments})
