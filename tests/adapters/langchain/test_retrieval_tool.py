"""The retrieval tool with langchain-core alone: its schema, its answers, whose content it reads, and bad arguments."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

import coatcheck
from coatcheck import InvalidRequest, MediaBlock, Offloader, StorageError, Stored, TextBlock, TiktokenCounter
from coatcheck.core.reading.wording import NOTHING_STORED
from coatcheck_langchain import retrieval_tool
from tests.adapters.langchain.samples import LONG, PNG, PNG_TEXT, SURROGATE, make_offloader, text_of, tool_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.tools import BaseTool


def stored(offloader: Offloader, *, scope: str = "default", data: bytes | None = None) -> str:
    block = TextBlock(LONG) if data is None else MediaBlock(data, "image/png")
    outcome = offloader.offload([block], tool_name="search", scope=scope, policy=coatcheck.Always())
    return str(outcome.references[0])


def answer(retrieval: BaseTool, args: dict[str, Any], config: Any = None) -> ToolMessage:
    message = retrieval.invoke(tool_call(retrieval.name, args), config)
    assert isinstance(message, ToolMessage)
    return message


def test_the_schema_has_the_six_arguments_and_nothing_of_the_host() -> None:
    function = convert_to_openai_tool(retrieval_tool(make_offloader()))["function"]

    assert function["name"] == coatcheck.RETRIEVAL_TOOL
    assert function["description"] == coatcheck.RETRIEVAL_DESCRIPTION
    assert function["parameters"] == coatcheck.retrieval_schema()


def test_the_tool_may_have_another_name() -> None:
    retrieval = retrieval_tool(make_offloader(), name="read_more")

    assert retrieval.name == "read_more"
    assert convert_to_openai_tool(retrieval)["function"]["name"] == "read_more"


def test_the_tool_reads_back_what_was_asked_for() -> None:
    offloader = make_offloader()
    message = answer(retrieval_tool(offloader), {"reference": stored(offloader), "pattern": "row 1999:"})

    assert message.status == "success"
    assert "1999| row 1999: the quick" in text_of(message)


async def test_the_tool_reads_back_async() -> None:
    offloader = make_offloader()
    call = tool_call(coatcheck.RETRIEVAL_TOOL, {"reference": stored(offloader), "line_range": {"start": 7, "end": 7}})

    message = await retrieval_tool(offloader).ainvoke(call)

    assert "row 7: the quick" in text_of(message)


def test_without_a_call_it_answers_with_text() -> None:
    offloader = make_offloader()

    found = retrieval_tool(offloader).invoke({"reference": stored(offloader), "line_range": "7"})

    assert "row 7: the quick" in found


def test_a_bare_str_is_the_reference() -> None:
    offloader = make_offloader()

    assert "row 1: the quick" in retrieval_tool(offloader).invoke(stored(offloader))


def test_a_storage_alone_is_enough() -> None:
    storage = coatcheck.InMemoryStorage()
    reference = stored(Offloader(storage))

    assert "row 1: the quick" in text_of(answer(retrieval_tool(storage), {"reference": reference}))


@pytest.mark.parametrize(
    "args",
    [
        {"line_range": {"start": "10", "end": "12"}},
        {"line_range": {"start": 10.0, "end": 12}, "context_lines": "0"},
        {"line_range": "10-12", "pattern": "", "query": None, "offset": None},
        {"line_range": [10, "12"]},
        {"pattern": "row 11:", "context_lines": "1"},
        {"pattern": "row 11:", "context_lines": -1},  # same as 0, like in Strands' own tool
    ],
)
def test_numbers_as_text_are_numbers(args: dict[str, Any]) -> None:
    offloader = make_offloader()

    message = answer(retrieval_tool(offloader), {"reference": stored(offloader), **args})

    assert message.status == "success"
    assert "row 11: the quick" in text_of(message)


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        ({}, "reference is missing: copy it from the placeholder"),
        ({"reference": None}, "reference is missing: copy it from the placeholder"),
        ({"reference": ""}, "reference is missing: copy it from the placeholder"),
        ({"reference": 7}, "not int: copy it from the placeholder"),
        ({"reference": ["a"]}, "not list: copy it from the placeholder"),
        ({"reference": "x" * 5_000}, "5,000 characters"),
        ({"reference": "never-stored"}, "not found"),
        ({"line_range": {"start": 20, "end": 10}}, "line_range.start (20)"),
        ({"line_range": "somewhere"}, 'line_range must look like "10-20"'),
        ({"context_lines": "many"}, "context_lines"),
        ({"offset": {"a": 1}}, "offset"),
        ({"pattern": {"a": 1}}, "pattern"),
        ({"pattern": "(?=ahead)"}, "ook"),
        ({"query": "a", "pattern": "b"}, "query"),
        ({"regex": "row 7"}, "unknown arguments: 'regex'; accepted are reference, pattern"),
        ({"self": 1, "config": {"configurable": {"thread_id": "b"}}, "run_manager": 2}, "'self'"),
        ({"unknown_arguments": "x"}, "'unknown_arguments'"),
        ({"x" * 9_000: 1}, "unknown arguments"),
    ],
)
def test_wrong_arguments_are_answered_not_raised(args: dict[str, Any], hint: str) -> None:
    offloader = make_offloader()
    reference = {} if not args or "reference" in args else {"reference": stored(offloader)}

    message = answer(retrieval_tool(offloader), {**reference, **args})

    assert message.status == "error"
    assert hint in text_of(message)
    assert len(text_of(message)) < 1_000


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=8), values, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from([*coatcheck.retrieval_schema()["properties"], "self", "config", "callbacks", "tool_input", ""]),
        JSON_VALUES,
    )
)
def test_no_arguments_raise_or_reach_another_scope(args: dict[str, Any]) -> None:
    offloader = make_offloader()
    secret = stored(offloader, scope="other")

    message = answer(retrieval_tool(offloader), {"reference": secret, **args}, {"configurable": {"thread_id": "mine"}})

    assert message.status == "error" or text_of(message) == NOTHING_STORED
    assert "quick brown fox" not in text_of(message)


def test_lone_surrogates_never_reach_the_model() -> None:
    offloader = make_offloader()
    content = "\n".join(f"{SURROGATE}{number}" for number in range(9_000))
    reference = str(offloader.offload([TextBlock(content)], tool_name=SURROGATE).references[0])
    retrieval = retrieval_tool(offloader)

    for args in (
        {"reference": reference},
        {"reference": reference, "pattern": "7777"},
        {"reference": reference, "pattern": f"{SURROGATE}7777"},
        {"reference": f"{SURROGATE}nothing"},
        {"reference": reference, f"{SURROGATE}": 1},
        {"reference": reference, "query": f"{SURROGATE}"},
    ):
        text_of(answer(retrieval, args)).encode("utf-8")


def test_the_thread_is_the_scope() -> None:
    offloader = make_offloader()
    reference = stored(offloader, scope="thread-a")
    retrieval = retrieval_tool(offloader)

    own = answer(retrieval, {"reference": reference}, {"configurable": {"thread_id": "thread-a"}})
    other = answer(retrieval, {"reference": reference}, {"configurable": {"thread_id": "thread-b"}})
    none = answer(retrieval, {"reference": reference})

    assert own.status == "success"
    assert other.status == none.status == "error"
    assert "not found" in text_of(other)


async def test_the_thread_is_the_scope_async() -> None:
    offloader = make_offloader()
    call = tool_call(coatcheck.RETRIEVAL_TOOL, {"reference": stored(offloader, scope="thread-a")})

    own = await retrieval_tool(offloader).ainvoke(call, {"configurable": {"thread_id": "thread-a"}})
    other = await retrieval_tool(offloader).ainvoke(call, {"configurable": {"thread_id": "thread-b"}})

    assert (own.status, other.status) == ("success", "error")


def test_a_thread_id_of_another_type_is_taken_as_text() -> None:
    offloader = make_offloader()
    reference = stored(offloader, scope="42")

    assert (
        answer(retrieval_tool(offloader), {"reference": reference}, {"configurable": {"thread_id": 42}}).status
        == "success"
    )


def test_a_scope_that_is_given_takes_precedence_over_the_thread() -> None:
    offloader = make_offloader()
    reference = stored(offloader, scope="tenant-7")
    config = {"configurable": {"thread_id": "thread-a", "tenant": "tenant-7"}}

    fixed = retrieval_tool(offloader, scope="tenant-7")
    found = retrieval_tool(offloader, scope=lambda given: str(given["configurable"]["tenant"]))

    assert answer(fixed, {"reference": reference}, config).status == "success"
    assert answer(found, {"reference": reference}, config).status == "success"


def test_the_ambient_scope_takes_precedence_over_the_thread() -> None:
    offloader = make_offloader()
    reference = stored(offloader, scope="tenant-7")

    with coatcheck.scope("tenant-7"):
        message = answer(retrieval_tool(offloader), {"reference": reference}, {"configurable": {"thread_id": "a"}})

    assert message.status == "success"


def test_a_scope_that_cannot_be_found_refuses_and_does_not_raise(caplog: pytest.LogCaptureFixture) -> None:
    def broken(config: object) -> str:
        msg = "tenant-7"
        raise LookupError(msg)

    offloader = make_offloader()

    message = answer(retrieval_tool(offloader, scope=broken), {"reference": stored(offloader)})

    assert message.status == "error"
    assert "tenant" not in text_of(message)
    assert "could not be read back" in caplog.text


@pytest.mark.parametrize("scope", ["", 7, ["a"]])
def test_an_invalid_scope_is_refused_at_once(scope: Any) -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        retrieval_tool(make_offloader(), scope=scope)


@pytest.mark.parametrize("name", ["", 7])
def test_an_invalid_name_is_refused_at_once(name: Any) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        retrieval_tool(make_offloader(), name=name)


class BrokenStorage:
    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        msg = "/secret/path"
        raise OSError(msg)

    def load(self, key: str) -> Stored | None:
        msg = "/secret/path"
        raise OSError(msg)


def test_a_failing_storage_is_answered_without_its_error_message() -> None:
    reference = stored(make_offloader())

    message = answer(retrieval_tool(BrokenStorage()), {"reference": reference})

    assert message.status == "error"
    assert "secret" not in text_of(message)


def test_media_are_described_by_default() -> None:
    offloader = make_offloader()

    message = answer(retrieval_tool(offloader), {"reference": stored(offloader, data=PNG)})

    assert isinstance(message.content, str)
    assert PNG_TEXT not in message.content


def test_media_are_returned_natively_on_request() -> None:
    offloader = make_offloader()

    message = answer(retrieval_tool(offloader, native_media=True), {"reference": stored(offloader, data=PNG)})

    assert message.content == [{"type": "image", "base64": PNG_TEXT, "mime_type": "image/png"}]


@pytest.mark.parametrize("media_type", ["audio/wav", "video/mp4", "application/pdf"])
async def test_other_media_come_back_as_a_file_that_langchain_does_not_turn_into_text(media_type: str) -> None:
    offloader = make_offloader()
    outcome = offloader.offload([MediaBlock(PNG, media_type)], tool_name="t", policy=coatcheck.Always())
    call = tool_call(coatcheck.RETRIEVAL_TOOL, {"reference": str(outcome.references[0])})

    message = await retrieval_tool(offloader, native_media=True).ainvoke(call)

    assert message.content == [{"type": "file", "base64": PNG_TEXT, "mime_type": media_type}]


def test_text_stays_text_even_if_media_are_returned_natively() -> None:
    offloader = make_offloader()

    message = answer(retrieval_tool(offloader, native_media=True), {"reference": stored(offloader)})

    assert isinstance(message.content, str)


def test_every_answer_fits_the_budget() -> None:
    offloader = make_offloader(max_retrieval_tokens=400)

    message = answer(retrieval_tool(offloader), {"reference": stored(offloader)})

    assert TiktokenCounter().count(text_of(message)) <= 400


def test_a_storage_error_says_to_try_once_more() -> None:
    assert StorageError("x").for_model in text_of(
        answer(retrieval_tool(BrokenStorage()), {"reference": stored(make_offloader())})
    )


def test_the_tool_can_be_told_from_a_users_tool_of_the_same_name() -> None:
    @tool
    def retrieve_offloaded_content(reference: str) -> str:
        """Read something else."""
        return reference

    assert type(retrieval_tool(make_offloader())) is not type(retrieve_offloaded_content)


def test_the_call_that_an_answer_suggests_uses_the_tools_own_name() -> None:
    offloader = coatcheck.Offloader(coatcheck.InMemoryStorage())
    outcome = offloader.offload([coatcheck.TextBlock("word " * 90_000)], tool_name="t")
    tool = retrieval_tool(offloader, name="read_more")

    assert "[More: read_more(" in tool.invoke({"reference": str(outcome.references[0])})


def test_an_owner_without_an_offloader_to_share_is_refused() -> None:
    with pytest.raises(coatcheck.InvalidRequest, match="share"):
        retrieval_tool(None)  # type: ignore[arg-type]
