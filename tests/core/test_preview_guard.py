"""No content and no failure in a preview costs a result: it is stored, and some of it is shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from coatcheck import Always, ByteCounter, InMemoryStorage, Offloaded, Offloader, TextBlock, TokenCounter
from coatcheck.core.preview import Previewed, kinds, preview
from tests.core.result_strategies import results_of_every_kind, wide_objects

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue

COUNTER = ByteCounter()

KINDS = {
    "preview_command_output": f"<returncode>0</returncode>\n<output>\n{json.dumps(list(range(900)))}\n</output>",
    "preview_envelope": json.dumps({"text": "".join(f'step {number} said "done"\n' for number in range(900))}),
    "preview_json": json.dumps([{"id": number, "name": f"name {number}"} for number in range(900)]),
    "preview_json_lines": "".join(f'{{"id": {number}, "name": "name {number}"}}\n' for number in range(900)),
    "preview_json_in_words": f"Found them:\n{json.dumps(list(range(900)))}",
    "preview_python": str([(number, f"name {number}") for number in range(900)]),
    "preview_xml": f"<list>{'<item>one of many</item>' * 900}</list>",
    "preview_html": f"<html><body>{'<p>one of many</p>' * 900}</body></html>",
    "preview_diff": "--- a/main.py\n+++ b/main.py\n@@ -0,0 +1,900 @@\n" + "+one of many lines\n" * 900,
    "preview_matches": "".join(f"src/part_{number}.py:{number}:some text\n" for number in range(900)),
    "preview_delimited": "id,name,size,kind\n" + "".join(f"{n},name {n},{n * 2},k\n" for n in range(900)),
    "preview_log": "".join(f"2026-01-01 10:00:00 INFO step {number}\n" for number in range(900)),
    "preview_noise": "Zm9vYmFyQmF6MTIz" * 900,
    "preview_repeats": "one of many lines, of words\n" * 900,
    "preview_text": "".join(f"part_{number} is one of many lines, of words\n" for number in range(900)),
}
"""Text of each kind, by the name of the function that shows it."""


def _content(text: str, failures: dict[str, Exception] | None = None) -> Previewed:
    return replace(Previewed.of(text), failures={} if failures is None else failures)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_replaces_by_a_template_which_cannot_be_parsed_while_python_exits(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name in ("_compile_template", "_subx"):  # from Python 3.12 on, and before
        monkeypatch.delattr(re, name, raising=False)
    failures: dict[str, Exception] = {}
    preview(_content(KINDS[kind], failures), COUNTER, budget=600)

    assert not failures


@pytest.mark.parametrize("rest", ["nothing else", 7, [], {}, [[]], [{}]])
def test_json_with_empty_containers_is_shown(rest: object) -> None:
    value = {f"field_{number}": "word " * 60 if number % 3 else [] for number in range(60)}
    failures: dict[str, Exception] = {}
    shown = preview(_content(json.dumps({**value, "rest": rest}), failures), COUNTER, budget=600)

    assert shown.startswith("object with 61 keys\nfield_0: []\n")
    assert not failures


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "text", ["[]", "{}", "[[], []]", '{"a": []}', "[{}, {}, {}]", "()", "<a></a>", "<a/>", "", "\n"]
)
@pytest.mark.parametrize("filling", ["", " " * 9_000, "\n" * 9_000])
def test_empty_values_are_shown(text: str, filling: str) -> None:
    failures: dict[str, Exception] = {}
    for budget in range(1, 60):
        assert COUNTER.count(preview(_content(f"{text}{filling}", failures), COUNTER, budget=budget)) <= budget
    assert not failures


@pytest.mark.parametrize("text", ["[]", "{}"])
def test_an_empty_container_that_is_larger_than_the_budget_causes_no_failure(text: str) -> None:
    class Characters(TokenCounter):
        def count(self, text: str) -> int:
            return len(text)

    failures: dict[str, Exception] = {}

    assert len(preview(_content(text, failures), Characters(), budget=1)) <= 1
    assert not failures


@given(wide_objects(), st.integers(1, 2_000))
def test_an_object_is_shown_even_if_members_have_no_room(value: JsonValue, budget: int) -> None:
    failures: dict[str, Exception] = {}

    assert COUNTER.count(preview(_content(json.dumps(value), failures), COUNTER, budget=budget)) <= budget
    assert not failures


@pytest.mark.parametrize("kind", sorted(name for name in vars(kinds) if name.startswith("preview_")))
def test_results_of_every_kind_are_drawn(kind: str) -> None:
    def is_of_kind(text: str) -> bool:
        return any(show.__name__ == kind for show in kinds.kinds_of(Previewed.of(text)))

    # Hypothesis draws constants from the loaded modules, so a few hundred examples may lack a rare kind.
    find(
        results_of_every_kind(),
        is_of_kind,
        settings=settings(derandomize=True, max_examples=10_000, phases=[Phase.generate]),
    )


@given(results_of_every_kind(), st.integers(1, 2_000))
def test_any_tool_result_is_shown_within_the_budget(text: str, budget: int) -> None:
    failures: dict[str, Exception] = {}
    shown = preview(_content(text, failures), COUNTER, budget=budget)

    assert not failures
    assert COUNTER.count(shown) <= budget
    assert shown == preview(_content(text), COUNTER, budget=budget)


@given(st.lists(results_of_every_kind(), min_size=1, max_size=3), st.integers(1, 2_000))
def test_any_tool_result_is_stored(parts: list[str], budget: int) -> None:
    offloader = Offloader(
        InMemoryStorage(),
        token_counter=COUNTER,
        preview_tokens=budget,
        policies={"*": Always()},
        max_inline_tokens=99_999,
    )
    texts = ["many words " * 9_000, *filter(None, parts)]
    outcome = offloader.offload([TextBlock(text) for text in texts], tool_name="t")

    assert isinstance(outcome, Offloaded)
    assert [offloader.load(str(found)).data for found in outcome.references] == [
        text.encode("utf-8", "surrogatepass") for text in texts
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [RuntimeError("a defect"), MemoryError(), RecursionError()], ids=repr)
def test_a_kind_that_fails_is_logged_once_and_the_next_one_shows_the_text(
    kind: str, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> NoReturn:
        raise error

    failing.__name__ = kind
    monkeypatch.setattr(kinds, kind, failing)
    outcome = Offloader(InMemoryStorage()).offload([TextBlock(KINDS[kind] * 3)], tool_name="t")

    assert isinstance(outcome, Offloaded)
    assert [record.message.partition("\n")[0].rpartition(": ")[0] for record in caplog.records] == [
        f"{kind} failed on a result of 't', which is shown more simply"
    ]
