"""The hooks for the Claude Agent SDK: what they answer, and that the SDK's own runner accepts it."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookContext, HookMatcher, Transport
from claude_agent_sdk._internal.query import Query
from claude_agent_sdk.types import PostToolUseHookInput, PostToolUseHookSpecificOutput

import coatcheck_claude.hook
from coatcheck import InMemoryStorage, InvalidRequest, Never, Offloader, ReferenceNotFound, StorageError
from coatcheck_claude import READ_BACK, SERVER, hooks, server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OPENING = "Tool result offloaded. [Offloaded: "
LARGE = "".join(f"line {number} of a result that is large\n" for number in range(2_000))
BASH = {"stdout": LARGE, "stderr": "", "interrupted": False, "isImage": False}
SESSION = "50b10772-851d-4a10-b80a-0bca2ab05479"


class FailingStorage(InMemoryStorage):
    def save(self, *args: object, **named: object) -> None:
        msg = "the disk is full"
        raise StorageError(msg)


def said(response: object, *, tool: str = "Bash") -> PostToolUseHookInput:
    return PostToolUseHookInput(
        session_id=SESSION,
        transcript_path="/a",
        cwd="/a",
        hook_event_name="PostToolUse",
        tool_name=tool,
        tool_input={"command": "journalctl"},
        tool_response=response,
        tool_use_id="toolu_1",
    )


async def answer(matchers: dict[Any, list[HookMatcher]], response: object, **options: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what the hook replaces a response with, or None if it leaves the response alone."""
    ((event, (matcher,)),) = matchers.items()
    assert event == "PostToolUse"
    (hook,) = matcher.hooks
    answered = cast("dict[str, Any]", await hook(said(response, **options), "toolu_1", HookContext(signal=None)))
    if not answered:
        return None
    output = answered["hookSpecificOutput"]
    assert output.keys() <= PostToolUseHookSpecificOutput.__annotations__.keys()
    return output["updatedToolOutput"]


@pytest.mark.parametrize("step", ["texts_to_offload", "replaced"])
async def test_a_large_response_is_searched_and_rebuilt_off_the_event_loop(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, works = list[threading.Thread](), getattr(coatcheck_claude.hook, step)

    def noting(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the arguments of either function
        threads.append(threading.current_thread())
        return works(*arguments, **named)

    monkeypatch.setattr(coatcheck_claude.hook, step, noting)

    assert (await answer(hooks(Offloader()), {"stdout": LARGE * 10}))["stdout"].startswith(OPENING)
    assert threads
    assert threading.main_thread() not in threads


async def test_no_response_waits_for_the_thread_pool_of_the_host() -> None:
    busy, release = anyio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    waiting = loop.run_in_executor(None, lambda: (loop.call_soon_threadsafe(busy.set), release.wait()))
    await busy.wait()
    try:
        with anyio.fail_after(60):
            assert await answer(hooks(Offloader()), {"stdout": "ok"}) is None
            assert (await answer(hooks(Offloader()), {"stdout": LARGE * 10}))["stdout"].startswith(OPENING)
    finally:
        release.set()
        await waiting


async def test_a_placeholder_replaces_large_text_and_the_response_keeps_its_shape() -> None:
    found = await answer(hooks(Offloader()), BASH)

    assert found["stdout"].startswith(OPENING)
    assert f"To read more: {READ_BACK}(" in found["stdout"]
    assert {**found, "stdout": LARGE} == BASH


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {**BASH, "stdout": "small"}),
        ("Bash", {**BASH, "persistedOutputPath": "/a"}),
        (READ_BACK, LARGE),
        ("Bash", None),
    ],
    ids=["small", "spilled", "read back", "nothing"],
)
async def test_a_result_that_stays_gets_no_answer(tool: str, response: object) -> None:
    assert await answer(hooks(Offloader()), response, tool=tool) is None


async def test_a_list_above_the_hard_limit_is_offloaded_too() -> None:
    offloader = Offloader()
    rows = [{"id": number, "state": "open"} for number in range(10_000)]

    found = await answer(hooks(offloader), {"content": [], "structuredContent": {"rows": rows}}, tool="mcp__a__b")

    (row,) = found["structuredContent"]["rows"]
    reference = row["state"].splitlines()[2].split()[0]
    assert row["id"] == 0
    assert json.loads(offloader.load(reference, scope=SESSION).text) == rows


async def test_the_policies_of_the_offloader_decide() -> None:
    assert await answer(hooks(Offloader(policies={"Bash": Never()})), BASH) is None


async def test_without_a_scope_the_session_is_the_scope() -> None:
    offloader = Offloader(require_scope=True)
    placeholder = (await answer(hooks(offloader), BASH))["stdout"]
    reference = placeholder.splitlines()[2].split()[0]

    assert offloader.load(reference, scope=SESSION).text == LARGE
    with pytest.raises(ReferenceNotFound):
        offloader.load(reference, scope="another")


@pytest.mark.parametrize("scope", [5, "", print], ids=["number", "empty", "callable"])
def test_an_invalid_scope_is_refused(scope: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^scope must be ((?!callable).)*$"):
        hooks(Offloader(), scope=cast("Any", scope))
    with pytest.raises(InvalidRequest, match=r"^scope must be ((?!callable).)*$"):
        server(Offloader(), scope=cast("Any", scope))


def test_a_server_without_a_scope_is_refused_since_it_could_not_read_what_the_hooks_store() -> None:
    with pytest.raises(InvalidRequest, match=r"^scope must be .* not None$"):
        server(Offloader(), scope=cast("Any", None))


@pytest.mark.parametrize("wrong", [None, InMemoryStorage(), Offloader], ids=["nothing", "storage", "class"])
def test_an_argument_that_is_not_an_offloader_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^hooks needs an Offloader, such as "):
        hooks(cast("Any", wrong))
    with pytest.raises(InvalidRequest, match=r"^server needs an Offloader, such as "):
        server(cast("Any", wrong), scope="s")


async def test_if_nothing_can_be_stored_a_result_stays_or_is_cut_above_the_hard_limit() -> None:
    assert await answer(hooks(Offloader(FailingStorage())), BASH) is None
    cut = await answer(hooks(Offloader(FailingStorage(), max_inline_tokens=3_000)), BASH)
    assert cut["stdout"].startswith("Tool result cut. ")


async def test_after_an_error_of_ours_a_result_stays_up_to_the_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: object, **named: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(Offloader, "aoffload", fail)
    assert await answer(hooks(Offloader()), BASH) is None
    last = await answer(hooks(Offloader(max_inline_tokens=3_000)), BASH)
    assert last["stdout"].startswith(OPENING)


async def test_a_response_that_is_too_deep_to_measure_stays(caplog: pytest.LogCaptureFixture) -> None:
    deep: list[Any] = [LARGE]
    for _ in range(100_000):
        deep = [deep]

    assert await answer(hooks(Offloader()), deep) is None
    assert "cannot tell what is large in a result of Bash" in caplog.text


class Wire(Transport):
    """Stands in for the client that the SDK's runner talks to. Calls one hook and keeps the answers."""

    def __init__(self, event: object) -> None:
        self.answers: list[dict[str, Any]] = []
        self.answered = anyio.Event()
        self._event = event
        self._initialized = anyio.Event()
        self._callback = ""

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            self._callback = message["request"]["hooks"]["PostToolUse"][0]["hookCallbackIds"][0]
            self._id = message["request_id"]
            self._initialized.set()
        else:
            self.answers.append(message)
            self.answered.set()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        await self._initialized.wait()
        yield {"type": "control_response", "response": {"subtype": "success", "request_id": self._id, "response": {}}}
        request = {
            "subtype": "hook_callback",
            "callback_id": self._callback,
            "input": self._event,
            "tool_use_id": "toolu_1",
        }
        yield {"type": "control_request", "request_id": "r1", "request": request}
        await self.answered.wait()

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        return self._messages()

    async def close(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the runner leaves a stream open
async def test_the_sdks_runner_accepts_the_hooks_and_their_answer() -> None:
    options = ClaudeAgentOptions(hooks=hooks(Offloader()))
    assert options.hooks is not None
    wire = Wire(said(BASH))
    internal = {
        str(event): [{"matcher": each.matcher, "hooks": each.hooks} for each in matchers]
        for event, matchers in options.hooks.items()
    }
    runner = Query(transport=wire, is_streaming_mode=True, hooks=internal)
    await runner.start()
    await runner.initialize()
    with anyio.fail_after(30):
        await wire.answered.wait()
    await runner.close()

    (answered,) = wire.answers
    assert answered["response"]["subtype"] == "success"
    output = answered["response"]["response"]["hookSpecificOutput"]
    assert output["updatedToolOutput"]["stdout"].startswith(OPENING)


async def test_the_server_reads_back_and_answers_an_unknown_reference_with_an_error() -> None:
    offloader = Offloader()
    placeholder = (await answer(hooks(offloader, scope="user-7"), BASH))["stdout"]
    reference = placeholder.splitlines()[2].split()[0]
    config = server(offloader, scope="user-7")

    assert (config["type"], config["name"]) == ("sdk", SERVER)
    from mcp.client.session import ClientSession  # noqa: PLC0415 - the protocol's own client
    from mcp.shared.memory import create_client_server_memory_streams  # noqa: PLC0415

    async with create_client_server_memory_streams() as (near, far), anyio.create_task_group() as tasks:
        instance = config["instance"]
        tasks.start_soon(lambda: instance.run(*far, instance.create_initialization_options()))
        async with ClientSession(*near) as client:
            await client.initialize()
            (tool,) = (await client.list_tools()).tools
            read = await client.call_tool(tool.name, {"reference": reference, "line_range": "1000:1001"})
            wrong = await client.call_tool(tool.name, {"reference": "nothing-0000000000000000-0000"})
        tasks.cancel_scope.cancel()

    assert "line 999 of a result" in str(read.content)
    assert wrong.model_dump(by_alias=True)["isError"]  # the name in Python differs between versions of `mcp`
    assert "reference not found" in str(wrong.content)
