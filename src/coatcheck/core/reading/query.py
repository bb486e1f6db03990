"""Queries: select from JSON content with JMESPath, and show the result in pages.

On JSON Lines, the query runs on each line, and its results, except empty lists, are shown with line numbers. If every
line gives null, it runs on the list of all lines, so that ``[?level=='ERROR'].id`` and ``[0]`` work as well. Each of
the two runs has the whole budget of a query, and gets it again if text in double quotes is taken as text. Joined text
blocks are treated like lines, even if each has many lines; so are objects that follow one another. A few lines may not
be JSON; the answer says how many. A few words may surround the JSON; the answer says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from json import JSONDecodeError
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.embedded import embedded_json
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.items import split_items
from coatcheck.core.reading import wording
from coatcheck.core.reading.compared import MismatchedType
from coatcheck.core.reading.index import decode
from coatcheck.core.reading.interpreter import Evaluator, TooMuchWork, check_size
from coatcheck.core.reading.records import (
    EMPTY,
    OTHER,
    parse_json,
    parse_records,
    render,
    render_records,
    split_objects,
)
from coatcheck.core.reading.source import MAX_PART, Answer, fetch, orient, resolve_offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.core.arguments import Request
    from coatcheck.core.reading.slices import Writer
    from coatcheck.core.reading.source import Reading, Source

__all__ = ("read_query",)

MAX_AGAIN = 5
"""How often a query is evaluated again because of text in double quotes. If it needs more, it is refused: an item that
matches all of them would not be found."""


@dataclass(frozen=True, slots=True)
class _Result:
    text: str
    kind: str
    is_empty: bool = False
    note: str = ""


def read_query(source: Source, request: Request, writer: Writer, max_bytes: int) -> Reading:
    """Show what a query selects, starting at an offset into the result."""
    query = request.query or ""
    evaluator = Evaluator(query)
    if source.size > max_bytes:
        raise InvalidRequest(wording.too_large_to_query(source.size, max_bytes))
    data = b""
    for start in range(0, source.size, MAX_PART):
        data += yield from fetch(start, min(source.size, start + MAX_PART))
    items = (yield from orient(source)).items if source.has_items else ()
    try:
        for _ in range(1 + MAX_AGAIN):
            result = _evaluate(evaluator, data, items)
            if not evaluator.take_fields_as_text():  # joined by &&, they show up one at a time
                break
        else:
            raise InvalidRequest(wording.invalid_query("too many strings in double quotes"))
    except RecursionError:
        raise InvalidRequest(wording.TOO_DEEP) from None
    if result is None:
        return Answer(text=wording.nothing_selected(writer.selector(query), hint=evaluator.notes), matches=0)
    hint = evaluator.notes or (wording.NO_ITEMS if result.is_empty else "")
    return _page(result, query, request.offset or 0, writer, hint=result.note + hint)


def _evaluate(evaluator: Evaluator, data: bytes, items: Sequence[int]) -> _Result | None:
    try:
        content = parse_json(data)
    except JSONDecodeError:
        split = _records(data, items)
        if split is None:
            return _evaluate_embedded(evaluator, data)
        records, what = split
        others, counted = records.count(OTHER), what
        if what == "object":  # objects are numbered without other lines
            records, counted = [record for record in records if record is not OTHER], "line"
        result = _evaluate_records(evaluator, records, what)
        return replace(result, note=wording.not_json(others, counted)) if result is not None and others else result
    return _whole(evaluator, content)


def _evaluate_embedded(evaluator: Evaluator, data: bytes) -> _Result | None:
    """Evaluate the query on JSON with a few words around it.

    Raises:
        InvalidRequest: there is no such JSON.

    """
    text = decode(data)
    for start, end in embedded_json(text):
        try:
            content = parse_json(text[start:end].encode("utf-8", "surrogatepass"))
        except JSONDecodeError:
            continue
        result = _whole(evaluator, content)
        return None if result is None else replace(result, note=wording.WORDS_LEFT_OUT)
    raise InvalidRequest(wording.NOT_JSON) from None


def _records(data: bytes, items: Sequence[int]) -> tuple[list[object], str] | None:
    """Return the values of content that has several, and what they are: items, lines or objects of many lines.

    Return None for any other content.
    """
    ways = (
        ("item", lambda: split_items(data, items) if items else ()),
        ("line", lambda: data.removesuffix(b"\n").split(b"\n")),
        ("object", lambda: split_objects(data)),
    )
    for what, split in ways:
        records = parse_records(data, split(), by_lines=what == "object")
        if records is not None:
            return records, what
    return None


def _evaluate_records(evaluator: Evaluator, records: list[object], what: str) -> _Result | None:
    given, exhausted = _of_each(evaluator, records)
    values = [record for record in records if record is not EMPTY and record is not OTHER]
    if not given:
        evaluator.start_afresh()
        whole = _whole(evaluator, values)
        if whole is None and exhausted is not None:
            raise exhausted  # a line that was not searched may give a result, though the list gives none
        return whole
    results = [(number, result) for number, result in given if result != []]
    if not results and all(isinstance(value, list) for value in values):  # rows: the query may be meant for their list
        whole = _of_rows(evaluator, values)
        if whole is not None:
            return whole
    check_size([result for _, result in results])
    shown = render_records(results) if results else render([])
    kind = wording.records_kind(len(results), len(values), what)
    return _Result(to_valid_unicode(shown), kind, is_empty=not results)


def _of_each(evaluator: Evaluator, records: list[object]) -> tuple[list[tuple[int, object]], TooMuchWork | None]:
    """Return what each record gives, and the error if the budget ran out before any record gave a result."""
    given: list[tuple[int, object]] = []
    for number, record in enumerate(records, start=1):
        if record is EMPTY or record is OTHER:
            continue
        try:
            result = evaluator.search(record)
        except MismatchedType:
            continue
        except TooMuchWork as error:
            if given:
                raise
            return given, error
        if result is not None:
            given.append((number, result))
    return given, None


def _of_rows(evaluator: Evaluator, rows: list[object]) -> _Result | None:
    """Return what the list of rows gives, or None if that is nothing."""
    evaluator.start_afresh()
    try:
        whole = _whole(evaluator, rows)
    except MismatchedType:  # the query is meant for one row
        return None
    return None if whole is None or whole.is_empty else whole


def _whole(evaluator: Evaluator, content: object) -> _Result | None:
    value = evaluator.search(content)
    if value is None:
        return None
    check_size(value)
    return _Result(to_valid_unicode(render(value)), _kind(value), is_empty=value == [])


def _kind(value: object) -> str:
    if isinstance(value, list):
        return wording.list_kind(len(value))
    if isinstance(value, dict):
        return wording.object_kind(len(value))
    return "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "number"


def _page(result: _Result, query: str, offset: int, writer: Writer, *, hint: str) -> Answer:
    text, total = result.text, len(result.text)
    start = resolve_offset(offset, total, "result of the query")
    shown_query = writer.selector(query)

    def compose(shown: str) -> Answer:
        stop = start + len(shown)
        part = None if not start and stop == total else (start, stop)
        header = wording.result_header(shown_query, result.kind, total, part, hint=hint)
        rest: dict[str, object] | None = {"query": query, "offset": stop} if stop < total else None
        footer = wording.END_OF_RESULT if rest is None else writer.more(rest)
        matches = 0 if result.is_empty else None
        return Answer(text=f"{header}\n{shown}\n{footer}", next_call=rest, matches=matches)

    return writer.page(text[start:], compose)
