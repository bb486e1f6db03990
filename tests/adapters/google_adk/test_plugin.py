"""What the plugin does with one call: what it offloads, what stays, and what it warns about."""

# ruff: noqa: ANN401 - what ADK and tools pass is of any type

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent, RunConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import Blob, GenerateContentConfig, GoogleSearch, Part, Tool
from pydantic import BaseModel

from coatcheck import RETRIEVAL_TOOL, FileStorage, InMemoryStorage, InvalidRequest, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_adk import OffloadPlugin, hook
from coatcheck_adk import plugin as plugin_module
from coatcheck_adk.convert import media_tokens
from tests.adapters.google_adk.agents import CONVERSATION, Talk, playing, returning, run
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.contract.google_adk_harness import agent_on

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_response import LlmResponse

    from tests.contract.gemini import GeminiServer

KEEP = {"coatcheck": "keep"}


async def test_a_result_is_stored_and_its_search_finds_a_line(server: GeminiServer, tmp_path: Path) -> None:
    plugin = OffloadPlugin(FileStorage(tmp_path))

    script = await run(server, plugin, [returning(BIG)], call(), reading(pattern="^line 1,000 "))

    placeholder, found = script.shown[-1]
    assert placeholder.startswith("Tool result offloaded.")
    assert MIDDLE not in placeholder
    assert MIDDLE in found
    assert plugin.offloader.load(shown_references(placeholder)[0], scope=CONVERSATION).text == BIG


async def test_a_dictionary_that_a_function_returns_is_offloaded_as_json(server: GeminiServer) -> None:
    def fetch(count: int) -> dict[str, Any]:
        """Fetch rows."""
        return {"status": "success", "rows": [{"id": number, "text": "x" * 50} for number in range(count)]}

    turns = (call(count=500), reading(query="rows[?id==`499`].text"))
    script = await run(server, OffloadPlugin(), [FunctionTool(fetch)], *turns)

    placeholder, found = script.shown[-1]
    assert "rows: list of 500 objects" in placeholder
    assert "xxxx" in found


async def test_a_result_that_stays_is_the_very_same_object(server: GeminiServer) -> None:
    class Few(BaseModel):  # not recognised as small at once, so that it takes the whole path
        rows: list[int]

    class Last(BasePlugin):
        async def after_tool_callback(self, *, result: Any, **_: Any) -> None:
            seen.append(result)

    few, seen = Few(rows=[1, 2, 3]), list[object]()
    with playing(server, Script(call()), [returning(few)]) as agent:
        await Talk(agent=agent, plugins=[OffloadPlugin(), Last("last")]).ask()

    assert seen == [few]
    assert seen[0] is few


@pytest.mark.parametrize("wrap", [iter, lambda rows: {"rows": iter(rows)}], ids=["alone", "in a dictionary"])
async def test_a_small_result_that_can_be_read_only_once_reaches_the_model(wrap: Any, server: GeminiServer) -> None:
    def fetch() -> Any:
        """Fetch rows."""
        return wrap(["row 1", "row 2"])

    script = await run(server, OffloadPlugin(), [FunctionTool(fetch)], call())

    assert "row 1" in script.shown[-1][0]
    assert "row 2" in script.shown[-1][0]


async def test_an_iterator_for_the_user_is_left_alone(server: GeminiServer) -> None:
    class Last(BasePlugin):
        async def after_tool_callback(self, *, result: Any, **_: Any) -> None:
            seen.append(result)

    rows, seen = iter(["row 1"]), list[object]()
    with playing(server, Script(call()), [returning(rows, skip=True)]) as agent:
        await Talk(agent=agent, plugins=[OffloadPlugin(), Last("last")]).ask()

    assert len(seen) == 1
    assert seen[0] is rows


async def test_the_cost_of_media_is_not_counted_on_the_event_loop(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counting(result: object) -> int | None:
        threads.append(threading.current_thread())
        return media_tokens(result)

    threads = list[threading.Thread]()
    monkeypatch.setattr(hook, "media_tokens", counting)
    image = {"type": "image", "data": "iVBORw0K" * 5_000, "mimeType": "image/png"}

    await run(server, OffloadPlugin(), [returning({"content": [image], "isError": False})], call())

    assert len(threads) == 1
    assert threading.current_thread() not in threads


async def test_media_are_counted_only_in_results_of_mcp_servers(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "media_tokens", None)  # a call would log a warning and leave the raw result

    script = await run(server, OffloadPlugin(), [returning({"rows": BIG})], call())

    assert script.shown[-1][0].startswith("Tool result offloaded.")


async def test_the_agent_and_its_tools_are_not_changed(server: GeminiServer) -> None:
    tool = returning(BIG)
    before = dict(vars(tool))
    with playing(server, Script(call()), [tool]) as agent:
        await Talk(agent=agent, plugins=[OffloadPlugin()]).ask()

        assert agent.tools == [tool]
    assert vars(tool) == before


async def test_a_result_for_the_user_stays(server: GeminiServer) -> None:
    storage = InMemoryStorage()
    with playing(server, Script(call()), [returning(BIG, skip=True)]) as agent:
        events = await Talk(agent=agent, plugins=[OffloadPlugin(storage)]).ask()

    (response,) = events[-1].get_function_responses()
    assert response.response == {"result": BIG}
    assert list(storage.entries("")) == []


@pytest.mark.parametrize(
    ("of_the_tool", "of_the_run"), [(KEEP, None), (None, KEEP)], ids=["custom_metadata of a tool", "of a run"]
)
async def test_the_host_may_keep_results(server: GeminiServer, of_the_tool: Any, of_the_run: Any) -> None:
    tool = returning(BIG, custom_metadata=of_the_tool)

    script = await run(server, OffloadPlugin(), [tool], call(), config=RunConfig(custom_metadata=of_the_run))

    assert script.shown[-1] == [BIG]


async def test_a_callbacks_answer_in_place_of_a_tool_is_offloaded_like_any_result(server: GeminiServer) -> None:
    def answer(tool: Any, args: Any, tool_context: Any) -> dict[str, Any]:
        return {"result": BIG}

    script = await run(server, OffloadPlugin(), [returning("")], call(), agent={"before_tool_callback": answer})

    assert script.shown[-1][0].startswith("Tool result offloaded.")


async def test_an_exception_from_a_tool_propagates(server: GeminiServer) -> None:
    with pytest.raises(LookupError, match="no such page"):
        await run(server, OffloadPlugin(), [returning(LookupError("no such page"))], call())


async def test_an_error_that_another_plugin_makes_from_an_exception_stays(server: GeminiServer) -> None:
    class Excusing(BasePlugin):
        async def on_tool_error_callback(self, **_: Any) -> dict[str, Any]:
            return {"error": BIG}

    script = Script(call())
    with playing(server, script, [returning(LookupError())]) as agent:
        await Talk(agent=agent, plugins=[Excusing("excusing"), OffloadPlugin()]).ask()

    assert script.shown[-1] == [BIG]


async def test_policies_see_the_arguments(server: GeminiServer) -> None:
    def by_rows(result: Any) -> bool:
        return bool(result.tool_args["rows"] > 1)

    plugin = OffloadPlugin(policies={"fetch": by_rows})

    script = await run(server, plugin, [returning(BIG)], [("fetch", {"rows": 1}), ("fetch", {"rows": 2})])

    assert [text == BIG for text in script.shown[-1]] == [True, False]


@pytest.mark.parametrize("native_media", [False, True], ids=["described", "native"])
async def test_an_image_is_read_back_as_itself_only_with_native_media(server: GeminiServer, native_media: bool) -> None:
    tool = returning([BIG, Part(inline_data=Blob(data=b"\x89PNG" * 3_000, mime_type="image/png"))])

    def second(received: Any) -> Any:
        references = [word for word in received[0].text.split() if word.startswith("fetch-")]
        return [(RETRIEVAL_TOOL, {"reference": references[1]})]

    with server.conversation(Script(call(), second)) as conversation:
        plugin = OffloadPlugin(native_media=native_media)
        await Talk(agent=agent_on(conversation, [tool]), plugins=[plugin]).ask()
        raw = conversation.transcript().received[-1].raw

    assert ("inline_data" in raw) is native_media


def offered(server: GeminiServer, **agent: Any) -> Any:
    """Return a coroutine for the names of the tools that an agent is offered in its first request."""

    async def ask() -> frozenset[str]:
        with server.conversation(lambda _: ()) as conversation:
            await Talk(agent=agent_on(conversation, **agent), plugins=[OffloadPlugin()]).ask()
            return conversation.transcript().offered

    return ask()


async def test_an_agent_with_tools_is_offered_the_tool_and_one_without_is_not(server: GeminiServer) -> None:
    assert await offered(server, tools=[returning("")]) == {"fetch", RETRIEVAL_TOOL}
    assert await offered(server, tools=[]) == frozenset()


async def test_an_agent_that_has_the_tool_already_is_offered_it_once(
    server: GeminiServer, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = OffloadPlugin()

    script = await run(server, plugin, [returning(BIG), plugin.retrieval_tool], call(), reading(pattern="line 1,000 "))

    assert MIDDLE in script.shown[-1][1]
    assert not caplog.records


async def test_a_users_tool_of_the_same_name_logs_a_warning_and_no_placeholder_names_it(
    server: GeminiServer, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [returning(BIG), returning("mine", RETRIEVAL_TOOL)]

    script = await run(server, OffloadPlugin(), tools, call(), call(RETRIEVAL_TOOL))

    assert RETRIEVAL_TOOL not in script.shown[-1][0]
    assert script.shown[-1][1] == "mine"
    assert sum(RETRIEVAL_TOOL in record.getMessage() for record in caplog.records) == 1


class AsksTheModel(BasePlugin):
    """Asks the model itself, as Restate's plugin does: ADK then shows the request to no later plugin."""

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse:
        agent = callback_context.get_invocation_context().agent
        assert isinstance(agent, LlmAgent)
        return await anext(agent.canonical_model.generate_content_async(llm_request))


@pytest.mark.parametrize("has_tool", [True, False], ids=["with the tool", "without the tool"])
async def test_behind_a_plugin_that_asks_the_model_a_placeholder_names_the_tool_only_if_the_agent_has_it(
    server: GeminiServer, caplog: pytest.LogCaptureFixture, *, has_tool: bool
) -> None:
    plugin = OffloadPlugin()
    script = Script(call(), *([reading(pattern="line 1,000 ")] * has_tool))
    with playing(server, script, [returning(BIG), *([plugin.retrieval_tool] * has_tool)]) as agent:
        await Talk(agent=agent, plugins=[AsksTheModel("asks"), plugin]).ask()

    placeholder, *answers = script.shown[-1]
    assert placeholder.startswith("Tool result offloaded.")
    assert (RETRIEVAL_TOOL in placeholder) == has_tool
    assert [MIDDLE in answer for answer in answers] == [True] * has_tool
    warnings = [record.getMessage() for record in caplog.records if record.name.startswith("coatcheck")]
    assert ["Add the plugin's retrieval_tool to" in warning for warning in warnings] == [True] * (not has_tool)


async def test_only_the_agents_that_asked_their_models_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_module, "MAX_AGENTS", 2)
    plugin = OffloadPlugin()

    for name in ("one", "two", "one", "three"):
        context: Any = SimpleNamespace(agent_name=name)
        await plugin.before_model_callback(callback_context=context, llm_request=LlmRequest())

    assert [*plugin._names] == ["one", "three"]


@pytest.mark.parametrize(
    "config",
    [
        GenerateContentConfig(tools=[Tool(google_search=GoogleSearch())]),
        GenerateContentConfig(response_mime_type="application/json"),
    ],
    ids=["a tool of Gemini's", "an answer with a schema"],
)
async def test_a_request_that_takes_no_functions_is_left_alone(config: GenerateContentConfig) -> None:
    context: Any = SimpleNamespace(agent_name="scripted")
    request = LlmRequest(config=config, contents=[])
    before = request.model_copy(deep=True)

    await OffloadPlugin().before_model_callback(callback_context=context, llm_request=request)

    assert request.config == before.config


def test_a_budget_for_a_step_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="one call at a time"):
        OffloadPlugin(max_step_tokens=1_000)


def test_an_invalid_scope_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        OffloadPlugin(scope=7)  # type: ignore[arg-type]


def test_a_flag_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="native_media must be True or False, not 'false'"):
        OffloadPlugin(native_media="false")  # type: ignore[arg-type]


def test_several_plugins_may_share_one_offloader() -> None:
    offloader = Offloader()

    assert OffloadPlugin(offloader).offloader is OffloadPlugin(offloader, name="second").offloader is offloader
