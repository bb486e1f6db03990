"""What a preview may cost, counted in calls and in characters given to a tokenizer. A busy machine changes neither."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from coatcheck import ByteCounter, TokenCounter
from coatcheck.core.preview import Previewed, kinds, preview
from coatcheck.core.preview.work import Metered, TooMuchWork
from coatcheck.core.tokens import CountedOnce

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from coatcheck.core.blocks import JsonValue

MAX_CALLS = 800_000
"""Calls of Python and C functions. This many take about 0.1 s without the profiler."""

MAX_CHARACTERS = 2_000_000

BUDGET = 2_000


class Noting(ByteCounter):
    """Adds up the characters it is asked to count."""

    characters = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        return super().count(text)


def _nested(levels: int) -> JsonValue:
    value: JsonValue = "x" * 90
    for _ in range(levels):
        value = {"a": value, "b": [1, [], {"z": [value]}]}
    return value


_RECORD: JsonValue = {f"c{number}": "w " * number for number in range(70)}
_XML_ATTRIBUTES = " ".join(f"a{number}='1'" for number in range(60_000))

HOSTILE = {
    "json: tables in members": json.dumps({f"k{number}": [_RECORD] * 12 for number in range(60)}),
    "json: lists in lists": json.dumps([[[{"a": 1, "b": [{"c": 2}] * 9}] * 9] * 9] * 60),
    "json: deep": json.dumps(_nested(13)),
    "json: many keys": json.dumps({f"key {number}": number for number in range(60_000)}),
    "json: small values": f"[{'1,' * 3_900_000}1]",
    "json: long texts": json.dumps([{"text": "two words " * 900}] * 100),
    "json: lists in members": json.dumps({f"k{number}": [1] * 1_990 for number in range(245)}),
    "json lines: wide": f"{json.dumps(_RECORD)}\n" * 400,
    "json lines: objects of several lines": f"{json.dumps(_RECORD, indent=2)}\n" * 400,
    "json lines: empty objects": "{\n}\n" * 400_000,
    "python: rows": repr([(number, "name", None, 3.5, ("a", number)) for number in range(25_000)]),
    "python: calls": f"[{'f(1),' * 180_000}1]",
    "python: calls in calls": f"[{('f(' * 40 + ')' * 40 + ',') * 8_000}1]",
    "python: escapes": "['" + r"\n" * 490_000 + "', 1]",
    "xml: references": f"<r><a/>{'&z' * 450_000}<b/></r>",
    "xml: references in attributes": f"<r><a b='{'&z' * 450_000}'/><b/></r>",
    "xml: elements": f"<r>{'<a><b>x</b></a>' * 60_000}</r>",
    "xml: names": f"<r>{''.join(f'<n{number}/>' for number in range(90_000))}</r>",
    "xml: attributes": f"<r><a {_XML_ATTRIBUTES}>x</a><b/></r>",
    "xml: comments": f"<r>{'<!---->' * 140_000}<a/><b/></r>",
    "csv: rows": "a,b,c,d\n" + "1,2,3,4\n" * 100_000,
    "csv: columns": (",".join(f"c{number}" for number in range(9_000)) + "\n") * 200,
    "csv: quotes": "name,b,c,d\n" + '"x""y",2,3,4\n' * 60_000,
    "csv: all delimiters": "a,b;c|d\te\n" * 60_000,
    "log: trouble in every line": "2026-01-01 10:00:00 ERROR failed 3 errors in Error: x\n" * 4_500,
    "log: long lines": ("2026-01-01 10:00:00 ERROR " + "warning: error " * 2_000 + "\n") * 9,
    "log: colours": ("\x1b[" * 300 + "\x1b[31m\r" + "x" * 300 + "\n") * 200,
    "diff: files": "".join(f"--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@ f{n}()\n-a\n+b\n" for n in range(20_000)),
    "diff: functions": "--- a/f\n+++ b/f\n" + "".join(f"@@ -1 +1 @@ f{n}()\n-a\n+b\n" for n in range(40_000)),
    "diff: commands": "diff -\n" * 600_000,
    "diff: blank lines": "--- a/f\n+++ b/f\n@@ -1,4000000 +1,4000000 @@\n" + "\n" * 3_900_000,
    "diff: signs": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n" + f"-a\n+b\n{'@' * 400_000}\n" * 2,
    "matches": "".join(f"src/p{number % 900}.py:{number}:text\n" for number in range(12_000)),
    "html: lines": "<html><body>" + "a\n" * 490_000,
    "html: references": f"<html><body>{'&z' * 450_000}",
    "html: tags": f"<html><body>{'<p>x' * 300_000}",
    "html: tables": f"<html><body><table>{'<tr><td>x<td>y' * 70_000}",
    "html: scripts": f"<html><body>{'<script></script>' * 60_000}",
    "noise": "Zm9vYmFy" * 100_000,
    "repeats": "".join(f"job {number} is done in part {number % 7}\n" for number in range(30_000)),
    "text: blanks": " " * 900_000,
    "text: marks": "e\u0301" * 400_000,
    "text: names": "".join(f"def name_{number}(a): return other_{number}\n" for number in range(20_000)),
}
"""Content made to cost each kind of preview much work. Each name begins with the kind that the content looks like."""

SHOWN_BY_OTHERS = {"preview_command_output", "preview_envelope", "preview_json_in_words"}
"""These kinds unwrap the text inside, and leave it to its own kind."""


def test_every_kind_has_hostile_content() -> None:
    named = {name.partition(":")[0].replace(" ", "_").replace("csv", "delimited") for name in HOSTILE}

    assert {name for name in vars(kinds) if name.startswith("preview_")} == SHOWN_BY_OTHERS | {
        f"preview_{kind}" for kind in named
    }, "HOSTILE"


def _content(text: str, failures: dict[str, Exception]) -> Previewed:
    return replace(Previewed.of(text), failures=failures)


def _calls(content: Previewed, counter: TokenCounter) -> tuple[int, str]:
    """Make a preview. Return the number of calls it took, and the preview."""
    calls = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        shown = preview(content, counter, budget=BUDGET)
    finally:
        sys.setprofile(before)
    return calls, shown


@pytest.mark.no_cover
@pytest.mark.parametrize("name", HOSTILE)
def test_no_content_makes_a_preview_exceed_its_work_limit(name: str) -> None:
    counter, failures = Noting(), dict[str, Exception]()
    calls, shown = _calls(_content(HOSTILE[name], failures), counter)

    assert calls <= MAX_CALLS
    assert counter.characters <= MAX_CHARACTERS
    assert not failures
    assert 0 < ByteCounter().count(shown) <= BUDGET


@pytest.mark.parametrize("name", ["python: calls", "xml: names", "xml: attributes"])
def test_content_that_takes_too_much_work_is_shown_as_text(name: str) -> None:
    text, failures = HOSTILE[name], dict[str, Exception]()
    shown = preview(_content(text, failures), ByteCounter(), budget=BUDGET)

    assert shown.startswith(text[:1_000])
    assert shown.endswith(text[-1_000:])
    assert not failures


def test_every_call_of_a_token_counter_counts_as_work() -> None:
    asked: list[Callable[[TokenCounter], object]] = [
        lambda counter: counter.count("word " * 20),
        lambda counter: counter.exceeds("word " * 20, 9),
        lambda counter: counter.head("word " * 20, 9),
        lambda counter: counter.tail("word " * 20, 9),
    ]
    for ask in asked:
        ask(Metered(CountedOnce(ByteCounter()), left=1_000))
        with pytest.raises(TooMuchWork):
            ask(Metered(CountedOnce(ByteCounter()), left=100))
