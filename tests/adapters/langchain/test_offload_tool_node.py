"""Any wrapped runnable that returns tool messages. Needs langchain-core alone."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, tool

import coatcheck
from coatcheck import InvalidRequest, TiktokenCounter, ToolResult
from coatcheck_langchain import offload_tool_node, offloaded_references, retrieval_tool
from tests.adapters.langchain.samples import LONG, OPENING, SHORT, SURROGATE, make_offloader, text_of, tool_call

MIDDLING = LONG[:7_000]
"""Some 1,750 tokens: within the default threshold."""


def answer(content: str = LONG, call_id: str = "call-1", **fields: Any) -> ToolMessage:
    return ToolMessage(content=content, tool_call_id=call_id, **fields)


def asking(*names: str) -> list[Any]:
    calls = [tool_call(name, {"q": name}, call_id=f"call-{place}") for place, name in enumerate(names, 1)]
    return [HumanMessage("hello"), AIMessage("", tool_calls=calls)]


def returning(result: Any) -> Runnable[Any, Any]:
    return RunnableLambda(lambda _: result)


class ToolRunner(Runnable[Any, Any]):
    """A user's own tool node, which shows its tools."""

    def __init__(self, *tools: BaseTool) -> None:
        self.tools_by_name = {each.name: each for each in tools}

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        return [self.tools_by_name[call["name"]].invoke(call, config) for call in input[-1].tool_calls]

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        return [await self.tools_by_name[call["name"]].ainvoke(call, config) for call in input[-1].tool_calls]


@tool
def search(q: str) -> str:
    """Search."""
    return LONG


@tool(return_direct=True)
def final(q: str) -> str:
    """Answer the user."""
    return LONG


@tool
def marked(q: str) -> str:
    """Search, marked."""
    return LONG


marked.metadata = {"coatcheck": "keep"}


@pytest.mark.parametrize(
    "result",
    [[answer()], {"messages": [answer()]}, answer(), [{"messages": [answer()]}]],
    ids=["list", "update", "message", "list of updates"],
)
async def test_results_of_every_form_are_offloaded(result: Any) -> None:
    node = offload_tool_node(returning(result), make_offloader())

    assert OPENING in repr(node.invoke(asking("search")))
    assert OPENING in repr(await node.ainvoke(asking("search")))
    assert OPENING not in repr(result)


def test_a_result_that_stays_is_the_very_same_object() -> None:
    result = [answer(SHORT), HumanMessage("hello")]

    assert offload_tool_node(returning(result), make_offloader()).invoke(asking("search")) is result


def test_messages_that_were_there_before_stay() -> None:
    earlier = answer(LONG, "call-0", name="search")
    question = [AIMessage("", tool_calls=[tool_call("search", call_id="call-0")]), earlier, *asking("search")]

    new = offload_tool_node(returning([earlier, answer()]), make_offloader()).invoke(question)

    assert new[0] is earlier
    assert text_of(new[1]).startswith(OPENING)


def test_the_name_and_the_arguments_come_from_the_call() -> None:
    asked: list[ToolResult] = []
    offloader = make_offloader(policies={"*": asked.append})

    offload_tool_node(returning([answer()]), offloader).invoke(asking("search"))

    assert [(result.tool_name, dict(result.tool_args)) for result in asked] == [("search", {"q": "search"})]


def test_errors_stay_unless_offload_errors_is_set_and_keep_their_status() -> None:
    result = [answer(status="error")]

    assert offload_tool_node(returning(result), make_offloader()).invoke(asking("search")) is result
    left = offload_tool_node(returning(result), make_offloader(offload_errors=True)).invoke(asking("search"))
    assert text_of(left[0]).startswith(OPENING)
    assert left[0].status == "error"


def test_an_error_above_the_hard_limit_is_offloaded() -> None:
    offloader = make_offloader(max_inline_tokens=2_500)

    left = offload_tool_node(returning([answer(status="error")]), offloader).invoke(asking("search"))

    assert text_of(left[0]).startswith(OPENING)


async def test_a_step_over_its_budget_offloads_the_largest_result_first() -> None:
    result = [answer(MIDDLING, "call-1"), answer(MIDDLING + "more" * 100, "call-2"), answer(MIDDLING, "call-3")]
    node = offload_tool_node(returning(result), make_offloader(max_step_tokens=5_000))

    first, second, third = node.invoke(asking("a", "b", "c"))

    assert first is result[0]
    assert third is result[2]
    assert text_of(second).startswith(OPENING)
    assert await node.ainvoke(asking("a", "b", "c")) == [first, second, third]
    assert sum(TiktokenCounter().count(text_of(message)) for message in (first, second, third)) <= 5_000


def test_final_answers_and_results_of_marked_tools_stay() -> None:
    node = offload_tool_node(ToolRunner(final, marked, search), make_offloader(), retrieval_tool=None)

    messages = node.invoke(asking("final", "marked", "search"))

    assert [text_of(message).startswith(OPENING) for message in messages] == [False, False, True]


def test_a_screenshot_for_openais_computer_use_stays() -> None:
    shot = f"data:image/png;base64,{'A' * 400_000}"
    contents: list[Any] = [shot, [{"type": "input_image", "image_url": shot}]]
    for content in contents:
        message = ToolMessage(content, tool_call_id="1", additional_kwargs={"type": "computer_call_output"})
        node = offload_tool_node(returning([message]), make_offloader(max_result_tokens=1_000, preview_tokens=100))

        (stayed,) = node.invoke(asking())

        assert stayed is message


def test_results_of_exempt_tools_stay_up_to_the_hard_limit() -> None:
    question = asking("search")

    kept = offload_tool_node(returning([answer()]), make_offloader(), exempt=["search"]).invoke(question)
    left = offload_tool_node(returning([answer()]), make_offloader(max_inline_tokens=2_500), exempt=["search"]).invoke(
        question
    )

    assert text_of(kept[0]) == LONG
    assert text_of(left[0]).startswith(OPENING)


@pytest.mark.parametrize("threads", [("a", "a"), ("a", "b")], ids=["same thread", "another thread"])
async def test_the_thread_is_also_the_scope_of_a_retrieval_tool_inside_the_node(threads: tuple[str, str]) -> None:
    offloader = make_offloader()
    node = offload_tool_node(ToolRunner(search, retrieval_tool(offloader)), offloader)
    first, second = (RunnableConfig(configurable={"thread_id": thread}) for thread in threads)

    (stored,) = await node.ainvoke(asking("search"), first)
    call = tool_call(coatcheck.RETRIEVAL_TOOL, {"reference": offloaded_references(stored)[0], "line_range": "7"})
    (read,) = await node.ainvoke([AIMessage("", tool_calls=[call])], second)

    assert ("row 7: the quick" in text_of(read)) is (threads[0] == threads[1])


def test_the_scope_of_the_node_is_also_that_of_a_retrieval_tool_inside() -> None:
    offloader = make_offloader()
    inner = ToolRunner(search, retrieval_tool(offloader))
    node = offload_tool_node(inner, offloader, scope=lambda config: config["configurable"]["tenant"])

    (stored,) = node.invoke(asking("search"), {"configurable": {"thread_id": "a", "tenant": "t"}})
    call = tool_call(coatcheck.RETRIEVAL_TOOL, {"reference": offloaded_references(stored)[0]})
    (own,) = node.invoke([AIMessage("", tool_calls=[call])], {"configurable": {"thread_id": "b", "tenant": "t"}})
    (other,) = node.invoke([AIMessage("", tool_calls=[call])], {"configurable": {"thread_id": "a", "tenant": "u"}})

    assert (own.status, other.status) == ("success", "error")


def test_answers_of_the_retrieval_tool_are_never_offloaded() -> None:
    offloader = make_offloader(policies={"*": coatcheck.Always()})
    node = offload_tool_node(ToolRunner(search, retrieval_tool(offloader)), offloader)

    (stored,) = node.invoke(asking("search"))
    call = tool_call(coatcheck.RETRIEVAL_TOOL, {"reference": offloaded_references(stored)[0]})
    (read,) = node.invoke([AIMessage("", tool_calls=[call])])

    assert text_of(read).startswith("[")
    assert not offloaded_references(read)


def test_a_node_without_the_retrieval_tool_does_not_name_it(caplog: pytest.LogCaptureFixture) -> None:
    node = offload_tool_node(ToolRunner(search), make_offloader())

    texts = [text_of(node.invoke(asking("search"))[0]) for _ in range(2)]

    assert all(coatcheck.RETRIEVAL_TOOL not in text for text in texts)
    assert len([record for record in caplog.records if "Add retrieval_tool" in record.getMessage()]) == 1


def test_a_node_that_does_not_show_its_tools_is_assumed_to_have_the_retrieval_tool() -> None:
    (message,) = offload_tool_node(returning([answer()]), make_offloader()).invoke(asking("search"))

    assert coatcheck.RETRIEVAL_TOOL in text_of(message)


def test_a_message_that_carries_the_mark_stays_whatever_it_says() -> None:
    result = [answer(LONG, additional_kwargs={"coatcheck": {"references": []}})]

    assert offload_tool_node(returning(result), make_offloader()).invoke(asking("search")) is result


def test_a_marked_message_is_never_offloaded_again() -> None:
    offloader = make_offloader(policies={"*": coatcheck.Always()})
    once = offload_tool_node(returning([answer()]), offloader)

    assert len(offload_tool_node(once, offloader).invoke(asking("search"))) == 1
    assert offloader.stats().offloaded == 1


async def test_exceptions_from_the_node_propagate() -> None:
    error = KeyError("their own")

    def fail(_: object) -> None:
        raise error

    node = offload_tool_node(RunnableLambda(fail), make_offloader())

    with pytest.raises(KeyError) as raised:
        node.invoke(asking("search"))
    with pytest.raises(KeyError) as araised:
        await node.ainvoke(asking("search"))

    assert raised.value is araised.value is error


async def test_a_scope_that_cannot_be_found_leaves_the_raw_result(caplog: pytest.LogCaptureFixture) -> None:
    def broken(config: object) -> str:
        raise LookupError

    result = [answer()]
    node = offload_tool_node(returning(result), make_offloader(), scope=broken)

    assert node.invoke(asking("search")) is result
    assert await node.ainvoke(asking("search")) is result
    assert "could not offload" in caplog.text


@pytest.mark.parametrize("call_id", ["../../x", "x" * 1_400, "", "None", SURROGATE, "a\nb\0c"])
@pytest.mark.parametrize("name", ["../../x", "x" * 1_400, "", "None", SURROGATE, "a\nb\0c"])
def test_hostile_names_and_ids_do_no_harm(call_id: str, name: str, tmp_path: Any) -> None:
    offloader = coatcheck.Offloader(coatcheck.FileStorage(tmp_path / "inside"))
    call = tool_call(name, call_id=call_id)
    node = offload_tool_node(returning([answer(LONG, call_id, name=name)]), offloader)

    (message,) = node.invoke([AIMessage("", tool_calls=[call])])

    text_of(message).encode("utf-8")
    assert message.tool_call_id == call_id
    assert offloader.load(offloaded_references(message)[0]).text == LONG
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_two_calls_with_one_id_are_two_results() -> None:
    offloader = make_offloader()
    calls = [tool_call("one", call_id="same"), tool_call("two", call_id="same")]
    result = [answer(LONG + "one", "same", name="one"), answer(LONG + "two", "same", name="two")]

    messages = offload_tool_node(returning(result), offloader).invoke([AIMessage("", tool_calls=calls)])

    references = [offloaded_references(message)[0] for message in messages]
    assert [offloader.load(reference).text[-3:] for reference in references] == ["one", "two"]
    assert [reference.partition("-")[0] for reference in references] == ["one", "two"]


def test_without_calls_in_the_input_the_messages_own_names_are_used() -> None:
    (message,) = offload_tool_node(returning([answer(name="lookup")]), make_offloader()).invoke({"anything": 1})

    assert offloaded_references(message)[0].startswith("lookup-")


def test_a_repeated_step_gives_the_same_bytes() -> None:
    offloader = make_offloader()
    node = offload_tool_node(returning([answer()]), offloader)

    assert node.invoke(asking("search")) == node.invoke(asking("search"))


def test_the_wrapper_has_the_name_of_the_node() -> None:
    assert offload_tool_node(RunnableLambda(lambda _: [], name="tools"), make_offloader()).get_name() == "tools"


@pytest.mark.parametrize("node", [lambda given: given, "tools", None], ids=["function", "text", "None"])
def test_an_object_that_is_not_a_runnable_is_refused(node: Any) -> None:
    with pytest.raises(InvalidRequest, match="RunnableLambda"):
        offload_tool_node(node, make_offloader())


@pytest.mark.parametrize(
    "arguments",
    [
        {"exempt": "search"},
        {"exempt": [7]},
        {"exempt": None},
        {"retrieval_tool": ""},
        {"retrieval_tool": 7},
        {"scope": ""},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(arguments))):
        offload_tool_node(returning([]), make_offloader(), **arguments)


def test_an_offloader_and_knobs_together_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="max_step_tokens"):
        offload_tool_node(returning([]), make_offloader(), max_step_tokens=5_000)
