"""The table of the retrieval tool's arguments, and every place that repeats them by hand."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import pytest

from coatcheck import InMemoryStorage, InvalidRequest, Offloader, TextBlock, retrieval_arguments, retrieval_schema
from coatcheck.core.arguments import ARGUMENTS, OPTIONS, PROPOSED, Request, parse_request
from coatcheck.core.facts import Estimate
from coatcheck.core.notice import notice
from coatcheck.core.reading import Answer, wording
from tests.core.reading_driver import attempt, stored
from tests.core.selections import GIVEN, TOGETHER
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = [argument.name for argument in ARGUMENTS]
OF_THE_HOST = {"self", "scope", "identity", "native_media", "retrieval_tool"}
LISTING = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if {"pattern", "line_range", "query"} <= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
]
"""The pages that name ``pattern``, ``line_range`` and ``query``, so that they must name every option."""

PYTHON_TYPES = {"string": str, "integer": int, "boolean": bool}


def test_the_schema_has_every_argument() -> None:
    assert list(retrieval_schema()["properties"]) == NAMES
    assert "required" not in retrieval_schema(), "without a reference, it lists"
    assert retrieval_arguments(dict.fromkeys(NAMES, "x")) == dict.fromkeys(NAMES, "x")


@pytest.mark.parametrize("method", [Offloader.retrieve, Offloader.aretrieve])
def test_the_methods_accept_every_argument_with_its_default(method: Callable[..., object]) -> None:
    taken = {
        name: parameter.default
        for name, parameter in inspect.signature(method).parameters.items()
        if name not in OF_THE_HOST
    }

    assert taken.pop("reference") is None
    assert taken == {name: argument.default for name, argument in OPTIONS.items()}


@pytest.mark.parametrize("name", OPTIONS)
async def test_the_methods_pass_every_argument_on(name: str) -> None:
    offloader, sent = Offloader(InMemoryStorage()), dict[str, Any]({name: object()})

    with pytest.raises(InvalidRequest, match=rf"^{name} must "):
        offloader.retrieve("any", scope="s", **sent)
    with pytest.raises(InvalidRequest, match=rf"^{name} must "):
        await offloader.aretrieve("any", scope="s", **sent)


def test_a_request_holds_every_option_with_its_default() -> None:
    assert {each.name: each.default for each in fields(Request)} == {
        name: argument.default for name, argument in OPTIONS.items()
    }


def test_an_option_that_is_none_means_its_default() -> None:
    assert parse_request(**dict.fromkeys(OPTIONS)) == parse_request() == Request()


LINES = "".join(f"{'x' if number % 9 == 0 else 'a'} line {number}\n" for number in range(100))
LIST = json.dumps([{"x": number} for number in range(100)], indent=1)
QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    (LINES, "text/plain", {}),
    (LINES, "text/plain", {"pattern": "x"}),
    (LIST, "application/json", {}),
    (LIST, "application/json", {"query": "[*].x"}),
]
"""Content, its type, and the options of a question. Every option changes the answer to at least one of these."""

PAIRS = [
    pair
    for names in TOGETHER
    for pair in (names, names[::-1])
    if len(names) == 2 and all(OPTIONS[name].selects for name in names)
]
"""Pairs of options that each select by themselves and may be combined, in both orders."""


def _changes(name: str, text: str, content_type: str, asked: dict[str, Any]) -> bool:
    """Return whether adding an option to ``asked`` changes the answer."""
    content = stored(text, content_type)
    without = attempt(partial(content.ask, **asked, budget=9_000))
    given = attempt(partial(content.ask, **{**asked, name: GIVEN[name]}, budget=9_000))
    if not isinstance(given, Answer) or not isinstance(without, Answer):
        return False
    # The line about the next call repeats the given options, so it proves nothing.
    texts = [answer.text.partition("[More: ")[0] for answer in (given, without)]
    return texts[0] != texts[1] or given.matches != without.matches


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_changes_some_answer(name: str) -> None:
    changes = [_changes(name, *question) for question in QUESTIONS if name not in question[2]]

    assert any(changes), f"`{name}` is accepted and ignored: core/reading/"


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_neither_of_two_combined_options_is_ignored(name: str, other: str) -> None:
    contents = {(text, content_type) for text, content_type, _ in QUESTIONS}
    changes = [_changes(name, *content, {other: GIVEN[other]}) for content in contents]

    assert any(changes), f"with `{other}`, `{name}` is ignored: let one exclude the other in its row of ARGUMENTS"


@pytest.mark.parametrize("name", [name for name, each in OPTIONS.items() if each.excludes is not None])
def test_options_that_exclude_each_other_are_refused_by_name(name: str) -> None:
    excluded = OPTIONS[name].excludes
    assert excluded is not None
    allowed = {} if excluded.unless is None else {excluded.unless: GIVEN[excluded.unless]}

    for other in excluded.others:
        both = {name: GIVEN[name], other: GIVEN[other]}
        with pytest.raises(InvalidRequest, match=rf"\b{name}\b.*\b{other}\b"):
            parse_request(**both)
        if allowed:
            assert parse_request(**both, **allowed).given().keys() == {*both, *allowed}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_selects_by_itself_is_not_mistaken_for_a_read_of_everything(name: str) -> None:
    request = parse_request(**{name: GIVEN[name]})

    assert list(request.given()) == [name]
    assert request.selects_nothing is not OPTIONS[name].selects


@pytest.mark.parametrize("name", [name for name in OPTIONS if {"pattern", name} in map(set, TOGETHER)])
def test_the_next_call_after_a_search_repeats_its_options(name: str) -> None:
    answer = stored("x\n" * 5_000).ask(**{"pattern": "x", name: GIVEN[name]}, budget=300)

    assert answer.next_call is not None
    assert answer.next_call.keys() == {"pattern", "offset", name}
    assert name == "offset" or answer.next_call[name] == GIVEN[name]


@pytest.mark.parametrize(
    ("tool", "call"),
    [
        ("read", "read(reference, {})".format(" | ".join(PROPOSED))),
        (
            "coatcheck get",
            "coatcheck get REFERENCE {}".format(
                " | ".join(f"{OPTIONS[name].option}={OPTIONS[name].metavar}" for name in PROPOSED)
            ),
        ),
    ],
)
def test_a_placeholder_names_every_option_that_is_proposed(tool: str, call: str) -> None:
    outcome = Offloader().offload([TextBlock("[1]\n" * 9_000)], tool_name="t", scope="s", retrieval_tool=tool)

    (block,) = outcome.blocks
    assert isinstance(block, TextBlock)
    assert call in block.text.splitlines()[4]


def test_only_options_that_select_by_themselves_are_proposed() -> None:
    assert [name for name in PROPOSED if not OPTIONS[name].selects] == []


@pytest.mark.parametrize(
    "refusal", [wording.NOT_JSON, wording.NUMBER_TOO_LONG, wording.TOO_DEEP, wording.too_large_to_query(2, 1)]
)
def test_a_refused_query_is_answered_with_every_other_proposed_option(refusal: str) -> None:
    named = re.findall(r"\w+", refusal.rpartition("use ")[2])

    assert [name for name in named if name != "or"] == [name for name in PROPOSED if name != "query"]


@pytest.mark.parametrize(("tool", "call"), [("read", "it: read(reference)"), ("run me", "it, run: run me REFERENCE")])
def test_the_notice_of_content_without_text_names_no_option(tool: str, call: str) -> None:
    words = notice([], blocks=1, tokens=Estimate(1, exact=True), retrieval_tool=tool, selectors={})

    assert words.endswith(f"To read {call}")


def test_content_without_text_refuses_every_option() -> None:
    refused = wording.binary_refused("image/png", given=["query"], shown_whole=True)

    assert f"Omit {'/'.join(OPTIONS)} to" in refused


def test_the_command_line_has_a_flag_for_every_option() -> None:
    pytest.importorskip("typer")
    import typer  # noqa: PLC0415 - the extra `cli` may be missing

    from coatcheck.cli.app import app  # noqa: PLC0415
    from coatcheck.cli.content_commands import get  # noqa: PLC0415

    command = typer.main.get_command(app).commands["get"]  # type: ignore[attr-defined]
    flags = {each.name: each.opts[0] for each in command.params if each.name in OPTIONS}
    taken = {
        name: get_args(get_args(parameter.annotation)[0])[0]
        for name, parameter in inspect.signature(get, eval_str=True).parameters.items()
        if name in OPTIONS
    }

    assert flags == {name: argument.option for name, argument in OPTIONS.items()}
    assert {each.name: each.metavar for each in command.params if each.name in OPTIONS} == {
        name: argument.metavar for name, argument in OPTIONS.items()
    }
    assert taken == {name: PYTHON_TYPES[argument.json_type] for name, argument in OPTIONS.items()}


def test_the_page_on_the_model_names_every_option() -> None:
    text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    explained = re.sub(r"```json\n.*?```", "", text, flags=re.DOTALL)  # without the schema, which names all options

    assert [name for name in OPTIONS if not re.search(rf"`{name}`|\b{name}=", explained)] == []


@pytest.mark.parametrize("page", LISTING, ids=[path.stem for path in LISTING])
def test_a_page_that_lists_the_arguments_lists_them_all(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Only names in code count: a name may also be an English word.
    lacking = [name for name in OPTIONS if not re.search(rf'[`"]{name}[`"]|\b{name}\s*[:=]', text)]

    assert not lacking, f"{page.relative_to(ROOT)} lists arguments of the retrieval tool without {lacking}"


def test_the_docstring_explains_every_argument() -> None:
    assert [name for name in NAMES if f"\n    {name}: " not in inspect.getdoc(Offloader.retrieve)] == []  # type: ignore[operator]
