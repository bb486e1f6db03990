"""What the middleware does around a call: results, errors, control flow, other middleware, and the retrieval tool."""

# ruff: noqa: ANN401 - what the framework and tools pass is of any type

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import (
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
    UserInputRequiredException,
    WorkflowBuilder,
)
from agent_framework.exceptions import MiddlewareException, ToolException

from coatcheck import RETRIEVAL_TOOL, FileStorage, InMemoryStorage, InvalidRequest, Offloader
from coatcheck.adapting import Failure, aanswer
from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader
from coatcheck_agent_framework.convert import contents_of
from coatcheck_agent_framework.hook import OffloadMiddleware
from tests.adapters.agent_framework.agents import agent_on, offloading, playing, results_in, returning, run
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.contract.agent_framework_harness import client_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from coatcheck.testing import ScriptedServer


class Around(FunctionMiddleware):
    """The user's own middleware: notes the result that it sees after a call, and may change it."""

    def __init__(self, then: Callable[[FunctionInvocationContext], None] = lambda _: None) -> None:
        self.then = then
        self.seen: list[str] = []

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        self.seen.append(context.result[0].text)
        self.then(context)


async def processed(offload: ToolOffloader, result: object) -> FunctionInvocationContext:
    """Return the context after our middleware has seen a call that returned this result, or raised it."""
    _, hook = offload.middleware
    assert isinstance(hook, OffloadMiddleware)
    context = FunctionInvocationContext(function=returning(""), arguments={})

    async def call_next() -> None:
        if isinstance(result, Exception):
            raise result
        context.result = result

    await hook.process(context, call_next)
    return context


async def test_a_result_is_stored_and_its_search_finds_a_line(server: ScriptedServer, tmp_path: Path) -> None:
    offload = ToolOffloader(FileStorage(tmp_path))

    script = await run(server, offload, [returning(BIG)], call(), reading(pattern="^line 1,000 "))

    placeholder, found = script.shown[-1]
    assert placeholder.startswith("Tool result offloaded.")
    assert MIDDLE not in placeholder
    assert MIDDLE in found
    assert offload.offloader.load(shown_references(placeholder)[0], scope="conversation-1").text == BIG


@pytest.mark.parametrize(
    "result",
    ["few", Content.from_text("few"), [Content.from_text("few")], [Content.from_text("few")] * 3, {"rows": [1]}, None],
    ids=["str", "Content", "list", "several", "dict", "None"],
)
async def test_a_small_result_is_the_very_same_object(result: object) -> None:
    assert (await processed(ToolOffloader(), result)).result is result


async def test_the_list_that_a_tool_returned_is_not_changed() -> None:
    result = [Content.from_text(BIG)]

    context = await processed(ToolOffloader(), result)

    assert result[0].text == BIG
    assert context.result[0].text.startswith("Tool result offloaded.")


@pytest.mark.parametrize(
    "raised",
    [
        MiddlewareFailure(BIG),
        MiddlewareTermination(result=BIG),
        UserInputRequiredException(contents=[Content.from_text(BIG)], message=BIG),
    ],
    ids=type,
)
async def test_control_flow_exceptions_propagate_untouched(raised: Exception) -> None:
    storage = InMemoryStorage()

    with pytest.raises(type(raised)) as caught:
        await processed(ToolOffloader(storage, max_inline_tokens=5_000), raised)

    assert caught.value is raised
    assert list(storage.entries("")) == []


async def test_an_approval_request_passes_through_untouched() -> None:
    asked = Content.from_function_call("1", "delete", arguments={"what": BIG})
    request = Content.from_function_approval_request("1", asked)

    assert (await processed(ToolOffloader(max_inline_tokens=5_000), request)).result is request


async def test_a_single_content_is_offloaded_like_a_list_of_one(server: ScriptedServer) -> None:
    def unpack(context: FunctionInvocationContext) -> None:
        context.result = context.result[0]

    parts = offloading(offload := ToolOffloader(), after=[Around(unpack)])

    script = await run(server, offload, [returning(BIG)], call(), **parts)

    (reference,) = set(shown_references(script.shown[-1][0]))
    assert offload.offloader.load(reference, scope="conversation-1").text == BIG


async def test_an_error_below_the_hard_limit_is_the_very_same_object() -> None:
    error = LookupError(BIG)

    with pytest.raises(LookupError) as caught:
        await processed(ToolOffloader(), error)

    assert caught.value is error


@pytest.mark.parametrize("error", [LookupError(BIG), MiddlewareException(BIG)], ids=type)
async def test_the_text_of_a_huge_error_is_offloaded_and_the_error_is_its_cause(error: Exception) -> None:
    offload = ToolOffloader(max_inline_tokens=5_000)

    with pytest.raises(ToolException, match="Tool result offloaded") as caught:
        await processed(offload, error)

    assert caught.value.__cause__ is error
    assert offload.offloader.load(shown_references(str(caught.value))[0], scope="default").text == BIG


async def test_an_error_that_cannot_be_printed_is_raised_as_it_is() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise LookupError

    with pytest.raises(Odd):
        await processed(ToolOffloader(), Odd())


async def test_middleware_before_ours_sees_placeholders_and_middleware_after_ours_sees_whole_results(
    server: ScriptedServer,
) -> None:
    outer, inner = Around(), Around()
    parts = offloading(offload := ToolOffloader(), before=[outer], after=[inner])

    await run(server, offload, [returning(BIG)], call(), **parts)

    assert inner.seen == [BIG]
    assert outer.seen[0].startswith("Tool result offloaded.")


async def test_a_result_that_middleware_after_ours_changes_is_offloaded(server: ScriptedServer) -> None:
    def redact(context: FunctionInvocationContext) -> None:
        context.result = str(context.result[0].text).replace("fox", "***")

    parts = offloading(offload := ToolOffloader(), after=[Around(redact)])

    script = await run(server, offload, [returning(BIG)], call(), **parts)

    stored = offload.offloader.load(shown_references(script.shown[-1][0])[0], scope="conversation-1").text
    assert stored == BIG.replace("fox", "***")


async def test_a_result_that_ends_the_run_reaches_the_user_whole(server: ScriptedServer) -> None:
    def end(_: object) -> None:
        raise MiddlewareTermination

    storage = InMemoryStorage()
    parts = offloading(offload := ToolOffloader(storage), after=[Around(end)])
    with playing(server, Script(call())) as client:
        response = await agent_on(client, offload, [returning(BIG)], **parts).run("Go.")

    assert results_in(response.messages)[0].result == BIG
    assert list(storage.entries("")) == []


async def test_a_run_may_ask_to_keep_its_results(server: ScriptedServer) -> None:
    keeping = {"function_invocation_kwargs": {"coatcheck": "keep"}}

    script = await run(server, ToolOffloader(), [returning(BIG)], call(), options=keeping)

    assert script.shown[-1] == [BIG]


async def test_an_agent_without_the_retrieval_tool_logs_a_warning(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    script = await run(server, ToolOffloader(), [returning(BIG)], call(), context_providers=[])

    assert RETRIEVAL_TOOL not in script.shown[-1][0]
    assert caplog.messages[-1].endswith("Pass context_providers=[offload] to the agent")


@pytest.mark.parametrize("brackets", [False, True], ids=["without middleware", "a list in a list"])
async def test_an_agent_without_the_middleware_logs_one_warning(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, brackets: bool
) -> None:
    offload = ToolOffloader()
    middleware: Any = [offload.middleware] if brackets else []

    await run(server, offload, [], middleware=middleware, name="helper")
    script = await run(server, offload, [returning(BIG)], call(), middleware=middleware, name="helper")

    (warning,) = [record.getMessage() for record in caplog.records if record.name == "coatcheck_agent_framework"]
    assert "The agent 'helper'" in warning
    assert "middleware=offload.middleware, without brackets" in warning
    assert script.shown[-1] == [BIG]


@pytest.mark.parametrize("session", ["conversation-1", None], ids=["session", "no session"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("of_run", [False, True], ids=["of the agent", "of the run"])
async def test_a_run_with_the_middleware_logs_no_warning(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, session: str | None, stream: bool, of_run: bool
) -> None:
    offload, given = ToolOffloader(), None if session is None else AgentSession(session_id=session)
    more: dict[str, Any] = {"middleware": offload.middleware} if of_run else {}
    with playing(server, script := Script(call())) as client:
        agent: Any = agent_on(client, offload, [returning(BIG)], **({"middleware": []} if of_run else {}))
        run = agent.run("Go.", session=given, stream=stream, **more)
        await (run.get_final_response() if stream else run)

    assert script.shown[-1][0].startswith("Tool result offloaded.")
    assert not caplog.records


async def test_a_workflow_cannot_take_middleware_so_it_logs_no_warning(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    offload = ToolOffloader()
    with playing(server, Script()) as client:
        workflow = WorkflowBuilder(start_executor=agent_on(client, offload, [])).build()
        await workflow.as_agent(context_providers=[offload]).run("Go.")

    assert [record for record in caplog.records if record.name == "coatcheck_agent_framework"] == []


async def test_the_retrieval_tool_may_be_among_the_agents_own_tools(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    tools = [returning(BIG), offload.retrieval_tool]

    script = await run(server, offload, tools, call(), reading(pattern="^line 1,000 "), context_providers=[])

    assert MIDDLE in script.shown[-1][1]


async def test_the_models_arguments_reach_the_core_unchanged(server: ScriptedServer) -> None:
    odd: Any = [{"reference": 7}, {"reference": "x", "offset": "x"}, {"as_sent": 1}, {"reference": "x", "more": None}]

    script = await run(server, offload := ToolOffloader(), [], [(RETRIEVAL_TOOL, arguments) for arguments in odd])

    answers = []
    for arguments in odd:
        answer = await aanswer(
            lambda: (offload.offloader, {"scope": "conversation-1"}), arguments, convert_media=contents_of
        )
        answers.append(answer.text if isinstance(answer, Failure) else answer)
    assert script.shown[-1] == answers


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("null", "reference is missing"),
        ("[]", "not list"),
        ('"fetch-0123456789abcdef-0123"', "reference not found: fetch-0123456789abcdef-0123"),
        ('{"raw": 1, "offset": 2}', "unknown arguments: 'raw'"),
    ],
)
async def test_arguments_that_are_not_an_object_are_the_reference(sent: str, said: str) -> None:
    tool = ToolOffloader().retrieval_tool
    arguments = Content.from_function_call("call-1", tool.name, arguments=sent).parse_arguments()

    (answer,) = await tool.invoke(arguments=arguments, context=FunctionInvocationContext(tool, {}))

    assert said in (answer.text or "")


@pytest.mark.parametrize("native_media", [False, True], ids=["described", "native"])
async def test_an_image_is_read_back_as_itself_only_with_native_media(
    server: ScriptedServer, native_media: bool
) -> None:
    url = "data:image/png;base64," + "iVBORw0K" * 2_000
    tool = returning([Content.from_text(BIG), Content.from_uri(url, media_type="image/png")])

    def second(received: Any) -> Any:
        references = [word for word in received[0].text.split() if word.startswith("fetch-")]
        return [(RETRIEVAL_TOOL, {"reference": references[1]})]

    script = Script(call(), second)
    with server.conversation(script) as conversation:
        offload = ToolOffloader(native_media=native_media)
        await agent_on(client_on(conversation), offload, [tool]).run("Go.")
        raw = conversation.transcript().received[-1].raw

    assert ("input_image" in raw) is native_media
    assert (url in raw) is native_media


async def test_a_copy_of_the_retrieval_tool_may_have_another_name(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    renamed = copy.copy(offload.retrieval_tool)
    renamed.name = "read_back"
    script = Script(call(), lambda shown: [("read_back", {"reference": shown_references(shown[-1].text)[0]})])
    with playing(server, script) as client:
        agent = agent_on(client, None, [returning(BIG), renamed], middleware=offload.middleware)
        await agent.run("Go.")

    placeholder, page = script.shown[-1]
    assert "To read more: read_back(" in placeholder
    assert "[More: read_back(" in page


def test_a_budget_for_a_step_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="one call at a time"):
        ToolOffloader(max_step_tokens=1_000)


def test_several_tool_offloaders_may_share_one_offloader() -> None:
    offloader = Offloader()

    assert ToolOffloader(offloader).offloader is ToolOffloader(offloader).offloader is offloader
