"""Reading back with Strands' own tool and with ours: one test for both, and a test for each deviation."""

from __future__ import annotations

import inspect
import time
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from strands.vended_plugins import context_offloader as theirs

import coatcheck_strands as ours
from coatcheck.testing.samples import long_line
from tests.adapters.strands.agents import (
    BIG,
    RETRIEVE,
    agent,
    call,
    reading,
    references,
    results,
    returning,
    text_of,
)

if TYPE_CHECKING:
    from types import ModuleType

    from strands import Agent

STRANDS = tuple(int(part) for part in version("strands-agents").split(".")[:2])
PNG = b"\x89PNG" * 26
BLOCKS = (
    {"text": BIG},
    {"json": {"rows": list(range(300))}},
    {"image": {"format": "png", "source": {"bytes": PNG}}},
    {"document": {"format": "pdf", "name": "report.pdf", "source": {"bytes": b"%PDF" * 27}}},
)
NUMBERED = "".join(f"row {number}{' needle' if number in {12, 14, 40} else ''}\n" for number in range(1, 3_001))


@pytest.fixture(params=[theirs, ours], ids=["theirs", "ours"])
def package(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def conversation(package: ModuleType, *turns: Any, blocks: Any = (NUMBERED,), **knobs: Any) -> Agent:  # noqa: ANN401
    plugin = package.ContextOffloader(package.InMemoryStorage(), **knobs)
    subject = agent(plugin, turns=(call(), *turns), tools=[returning(*blocks)])
    subject("go")
    return subject


def read(package: ModuleType, **selectors: Any) -> str:  # noqa: ANN401
    result = results(conversation(package, reading(**selectors)))[-1]
    assert result["status"] == "success"
    return text_of(result)


def held(package: ModuleType) -> tuple[Any, list[str], Agent]:
    """Return a plugin, the references of ``BLOCKS`` that it offloaded, and the agent."""
    plugin = package.ContextOffloader(package.InMemoryStorage())
    subject = agent(plugin, tools=[returning(*BLOCKS)])
    subject("go")
    return plugin, references(results(subject)[0]), subject


async def ask(plugin: Any, subject: Agent, **arguments: Any) -> Any:  # noqa: ANN401
    context = SimpleNamespace(agent=subject, tool_use={}, invocation_state={})
    return await plugin.retrieve_offloaded_content(tool_context=context, **arguments)


# The tool.


def test_the_tool_has_the_same_name_and_takes_the_same_arguments(package: ModuleType) -> None:
    specification = agent(package.ContextOffloader()).tool_registry.registry[RETRIEVE].tool_spec
    properties = specification["inputSchema"]["json"]["properties"]

    assert specification["inputSchema"]["json"].get("required") in (None, ["reference"]), "ours lists without one"
    assert {"reference", "pattern", "line_range", "context_lines"} <= properties.keys()
    assert properties["pattern"]["type"] == "string"
    assert properties["context_lines"]["type"] == "integer"


def test_the_tool_can_be_left_out(package: ModuleType) -> None:
    assert RETRIEVE not in agent(package.ContextOffloader(include_retrieval_tool=False)).tool_names


# What it answers.


@pytest.mark.parametrize(
    ("selectors", "shown"),
    [
        (
            {"pattern": "needle", "context_lines": 0},
            ["[3 matches for /needle/]", "> 12| row 12 needle\n", "> 40| row 40"],
        ),
        ({"pattern": "needle", "context_lines": 1}, ["  11| row 11\n> 12| row 12 needle\n  13| row 13\n> 14| row 14"]),
        ({"pattern": "needle"}, ["   7| row 7\n", "  19| row 19\n---\n  35| row 35\n"]),
        ({"pattern": "needle", "line_range": {"start": 10, "end": 20}}, ["[2 matches for /needle/ in lines 10-20]"]),
        ({"pattern": "^row 4[01]( |$)"}, ["[2 matches for", "> 40| row 40 needle\n> 41| row 41\n"]),
        ({"pattern": "haystack"}, ["No matches found for pattern 'haystack'"]),
        ({"pattern": "row ("}, ["No matches found for pattern 'row ('"]),
        ({"line_range": {"start": 5, "end": 10}}, ["[Lines 5-10 of 300", "   5| row 5\n", "  10| row 10"]),
        ({"line_range": {"start": 2_999, "end": 9_999}}, ["  2999| row 2999\n", "  3000| row 3000"]),
        ({"context_lines": 3}, ["[Lines 1-3 of 300", "  1| row 1\n  2| row 2\n  3| row 3"]),
        ({"pattern": "row", "context_lines": 0}, ["output truncated, narrow your search"]),
        ({"line_range": {"start": 1, "end": 3_000}}, ["output truncated, narrow your range"]),
    ],
    ids=str,
)
def test_a_selection_is_answered_in_the_same_form(
    package: ModuleType, selectors: dict[str, Any], shown: list[str]
) -> None:
    answer = read(package, **selectors).replace("    ", "  ")

    for words in shown:
        assert words.replace("   ", "  ") in answer.replace("   ", "  ")


async def test_media_come_back_as_themselves(package: ModuleType) -> None:
    plugin, found, subject = held(package)

    image = await ask(plugin, subject, reference=found[2])
    document = await ask(plugin, subject, reference=found[3])

    assert image == {"status": "success", "content": [BLOCKS[2]]}
    (block,) = document["content"]
    assert block["document"]["source"]["bytes"] == b"%PDF" * 27
    assert block["document"]["format"] == "pdf"


async def test_ours_returns_the_whole_if_max_retrieval_tokens_is_none() -> None:
    plugin = ours.ContextOffloader(ours.InMemoryStorage(), max_retrieval_tokens=None)
    subject = agent(plugin, tools=[returning(*BLOCKS)])
    await subject.invoke_async("go")
    found = references(results(subject)[0])

    assert await ask(plugin, subject, reference=found[0]) == BIG
    value = await ask(plugin, subject, reference=found[1])
    assert value == {"status": "success", "content": [BLOCKS[1]]}
    assert "[Lines 2-3 of" in await ask(plugin, subject, reference=found[0], line_range={"start": 2, "end": 3})


async def test_theirs_always_returns_the_whole() -> None:
    plugin, found, subject = held(theirs)

    assert await ask(plugin, subject, reference=found[0]) == BIG
    assert await ask(plugin, subject, reference=found[1]) == {"status": "success", "content": [BLOCKS[1]]}


# What it refuses.


@pytest.mark.parametrize(
    ("position", "arguments", "said"),
    [
        (0, {"line_range": {"start": 9_000, "end": 9_001}}, "beyond content length (2"),
        (0, {"line_range": {"start": 5, "end": 4}}, "start"),
        (0, {"line_range": {"start": 0, "end": 4}}, "start"),
        (2, {"pattern": "x"}, "cannot search binary content (image/png)"),
        (2, {"context_lines": 3}, "cannot search binary content (image/png)"),
    ],
    ids=str,
)
async def test_a_wrong_selection_by_the_host_is_a_value_error(
    package: ModuleType, position: int, arguments: dict[str, Any], said: str
) -> None:
    plugin, found, subject = held(package)

    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace(")", r"\)")):
        await ask(plugin, subject, reference=found[position], **arguments)


async def test_an_unknown_reference_from_the_host_is_a_value_error(package: ModuleType) -> None:
    plugin, _, subject = held(package)

    with pytest.raises(ValueError, match="reference not found: nowhere"):
        await ask(plugin, subject, reference="nowhere")


def test_an_unknown_reference_from_the_model_is_an_error_result(package: ModuleType) -> None:
    result = results(conversation(package, call(RETRIEVE, reference="nowhere")))[-1]

    assert result["status"] == "error"
    assert "reference not found: nowhere" in text_of(result)


def test_the_model_goes_on_after_an_error(package: ModuleType) -> None:
    subject = conversation(package, call(RETRIEVE, reference="nowhere"), "done")

    assert subject.messages[-1]["content"][0]["text"] == "done"


# What the tool returns stays.


def test_what_the_tool_returns_is_never_offloaded(package: ModuleType) -> None:
    answer = results(conversation(package, reading(line_range={"start": 1, "end": 3_000})))[-1]

    assert "[Offloaded:" not in text_of(answer)


# Deviations.


def test_ours_bounds_a_whole_read_and_says_how_to_go_on() -> None:
    bounded, whole = read(ours), read(theirs)

    assert whole == NUMBERED
    assert len(bounded) < 12_000
    assert bounded.startswith("[Characters 0-")
    assert "offset=" in bounded.splitlines()[-1]


def test_ours_runs_nested_repeats_as_a_regular_expression() -> None:
    blocks = ("aaaa\n" * 4_000,)
    found = text_of(results(conversation(ours, reading(pattern="(a+)+$"), blocks=blocks))[-1])

    assert "[4000 matches for" in found


@pytest.mark.skipif(STRANDS < (1, 56), reason="Strands' own offloader ran them then, in exponential time")
def test_theirs_takes_nested_repeats_literally() -> None:
    found = text_of(results(conversation(theirs, reading(pattern="(a+)+$"), blocks=("aaaa\n" * 4_000,)))[-1])

    assert "No matches found" in found


def test_ours_searches_in_linear_time() -> None:
    started = time.process_time()

    conversation(ours, reading(pattern=r"(a|a)*$b"), blocks=("a" * 50_000,))

    assert time.process_time() - started < 30  # measured: 0.2; a backtracking engine would need years


def test_ours_shows_a_match_in_the_tail_of_one_long_line() -> None:
    answer = text_of(results(conversation(ours, reading(pattern="<299990>"), blocks=(long_line(300_000),)))[-1])

    assert "<299990>" in answer
    assert len(answer) < 10_000


async def test_ours_answers_without_an_agent() -> None:
    plugin, found, _ = held(ours)

    answer = await plugin.retrieve_offloaded_content(found[0], pattern="^line 7 of")

    assert ">  7| line 7 of 2,000" in answer


async def test_ours_reads_fields_and_characters_too() -> None:
    plugin, found, subject = held(ours)

    assert "299" in await ask(plugin, subject, reference=found[1], query="rows[-1]")
    assert "[End of content]" in await ask(plugin, subject, reference=found[0], offset=-10)


def test_ours_names_the_arguments_that_it_accepts() -> None:
    answer = results(conversation(ours, call(RETRIEVE, reference="r", lines="1-2")))[-1]

    assert answer["status"] == "error"
    assert "unknown arguments: 'lines'; accepted are reference, pattern" in text_of(answer)


def test_the_method_is_awaitable_in_both(package: ModuleType) -> None:
    method = package.ContextOffloader().retrieve_offloaded_content

    assert method.tool_name == RETRIEVE
    assert inspect.iscoroutinefunction(method.__call__) or inspect.iscoroutinefunction(method._tool_func)
