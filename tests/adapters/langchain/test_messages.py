"""Walking through what tools and nodes return: every tool message is found, and nothing else changes."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage

from coatcheck_langchain.messages import Calls, find_messages, replace_messages
from coatcheck_langchain.tool_node import find_calls
from tests.adapters.langchain.samples import tool_call

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Command:
    """Like LangGraph's, which is not installed here."""

    update: Any = None
    graph: str | None = None
    resume: Any = None
    goto: Any = ()


@dataclass(frozen=True)
class Overwrite:
    """Like LangGraph's."""

    value: Any


@dataclass
class State:
    messages: list[Any] = field(default_factory=list)


def answer(call_id: str = "call-1", **fields: Any) -> ToolMessage:
    return ToolMessage(content="words", tool_call_id=call_id, **fields)


def upper(result: object, key: str = "messages") -> Any:
    found = find_messages(result, key=key)
    copies = {id(native): message.model_copy(update={"content": "WORDS"}) for native, message in found}
    return replace_messages(result, copies, key=key)


def found_in(result: object, key: str = "messages") -> list[ToolMessage]:
    return [message for _, message in find_messages(result, key=key)]


FORMS: dict[str, Any] = {
    "message": answer(),
    "list": [answer(), answer()],
    "tuple": (answer(),),
    "update": {"messages": [answer()], "other": [1]},
    "update with one message": {"messages": answer()},
    "command": Command(update={"messages": [answer()]}),
    "overwrite as a mapping": {"messages": {"__overwrite__": [answer()]}},
    "overwrite after JSON": {"messages": {"value": [answer()], "type": "__overwrite__"}},
    "command with a list": Command(update=[answer()]),
    "list of both": [answer(), Command(update={"messages": [answer()]}), {"messages": [answer()]}],
    "overwrite": {"messages": Overwrite([answer()])},
    "mapping for a message": {"messages": [{"role": "tool", "content": "words", "tool_call_id": "call-1"}]},
}

NO_MESSAGES: dict[str, Any] = {
    "nothing": None,
    "text": "words",
    "command without update": Command(goto="next"),
    "removal": Command(update={"messages": [RemoveMessage(id="__remove_all__")]}),
    "another key": {"documents": [answer()]},
    "other messages": [AIMessage("words"), HumanMessage("words")],
    "empty": [],
}


@pytest.mark.parametrize("result", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_walked_and_rebuilt(result: Any) -> None:
    before = repr(result)

    new = upper(result)

    assert "WORDS" in repr(new)
    assert "words" not in repr(new)
    assert repr(result) == before


@pytest.mark.parametrize("result", {**FORMS, **NO_MESSAGES}.values(), ids={**FORMS, **NO_MESSAGES}.keys())
def test_an_unchanged_result_is_the_very_same_object(result: Any) -> None:
    assert replace_messages(result, {}, key="messages") is result


@pytest.mark.parametrize("result", NO_MESSAGES.values(), ids=NO_MESSAGES.keys())
def test_nothing_is_found_without_a_tool_message(result: Any) -> None:
    assert found_in(result) == []


def test_a_command_keeps_everything_else() -> None:
    command = Command(
        update={"messages": [answer()], "count": 3}, graph="__parent__", resume={"a": 1}, goto=["next", "other"]
    )

    new = upper(command)

    assert type(new) is Command
    assert (new.graph, new.resume, new.goto) == (command.graph, command.resume, command.goto)
    assert new.update["count"] == 3


@dataclass
class Counting:
    """A state whose fields are not all arguments."""

    messages: list[Any]
    seed: InitVar[int]
    made: int = field(init=False, default=0)

    def __post_init__(self, seed: int) -> None:
        self.made += seed


def test_a_typed_state_keeps_everything_else_and_is_not_constructed_again() -> None:
    state = Counting([answer()], 1)
    state.made += 1

    changed = upper(state)

    assert (changed.messages[0].content, changed.made) == ("WORDS", 2)
    assert (state.messages[0].content, state.made) == ("words", 2)


@dataclass
class Registered:
    """Cannot be copied: Python makes the copy without arguments."""

    messages: list[Any]

    def __new__(cls, messages: list[Any]) -> Self:
        return super().__new__(cls)


def test_a_typed_state_that_cannot_be_copied_is_constructed_again() -> None:
    assert upper(Registered([answer()])).messages[0].content == "WORDS"


def test_other_messages_keep_their_places() -> None:
    messages = [RemoveMessage(id="__remove_all__"), HumanMessage("hello"), answer(), AIMessage("bye")]

    new = upper({"messages": messages})["messages"]

    assert [new[0], new[1], new[3]] == [messages[0], messages[1], messages[3]]
    assert all(new[place] is messages[place] for place in (0, 1, 3))
    assert new[2].content == "WORDS"


def test_only_the_pairs_for_messages_in_a_command_are_changed() -> None:
    message = answer()
    update = [("messages", [message]), ("audit", [message, answer()])]

    changed = upper(Command(update=update)).update

    assert [[each.content for each in held] for _, held in changed] == [["WORDS"], ["words", "words"]]


def test_messages_may_be_under_another_key() -> None:
    result = {"history": [answer()], "messages": [answer()]}

    assert len(found_in(result, key="history")) == 1


AI = AIMessage("", tool_calls=[tool_call("search", {"q": "cats"}, call_id="b")])
EARLIER = [
    AIMessage("", tool_calls=[tool_call("search", {"q": "dogs"}, call_id="a")]),
    ToolMessage("x", tool_call_id="a"),
]


def calls_of(value: object, key: str = "messages") -> Calls:
    return find_calls(value, key=key, tools={}, config={}, retrieval_tool=None)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ([*EARLIER, AI], "messages"),
        ({"messages": [*EARLIER, AI]}, "messages"),
        ({"history": [*EARLIER, AI]}, "history"),
        (State([*EARLIER, AI]), "messages"),
        (
            {"__type": "tool_call_with_context", "tool_call": AI.tool_calls[0], "state": {"messages": [*EARLIER, AI]}},
            "messages",
        ),
    ],
    ids=["list", "mapping", "another key", "object", "one call with its state"],
)
def test_the_calls_are_found_in_the_input(value: object, key: str) -> None:
    calls = calls_of(value, key)

    assert {call_id: call["args"] for call_id, call in calls.by_id.items()} == {"b": {"q": "cats"}}
    assert calls.find_answered() == {"a"}


def test_calls_may_be_the_input_themselves() -> None:
    assert calls_of([tool_call("search", call_id="c")]).by_id.keys() == {"c"}


@pytest.mark.parametrize("value", [None, "words", 7, {}, [], {"messages": None}, {"messages": "words"}, [None]])
def test_an_input_of_another_form_has_no_calls(value: object) -> None:
    calls = calls_of(value)

    assert not calls.by_id
    assert not calls.find_answered()


def test_an_id_that_a_new_call_repeats_is_not_answered_yet() -> None:
    again = AIMessage("", tool_calls=[tool_call("search", call_id="a")])

    assert calls_of([*EARLIER, again]).find_answered() == set()


def test_an_id_used_twice_in_a_step_names_no_tool() -> None:
    calls = [tool_call("one", call_id=""), tool_call("two", call_id="")]

    assert calls_of([AIMessage("", tool_calls=calls)]).by_id == {"": {}}
