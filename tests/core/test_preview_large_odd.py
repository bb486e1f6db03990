"""Odd records in 8 MB of JSON, JSON Lines or CSV are found wherever they are. The preview says what was not read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Always, InMemoryStorage, Offloader, TextBlock
from coatcheck.core.preview import Previewed, json_list, odd, pieces, preview, search_for_odd
from tests.core.previewing import TIKTOKEN, checked_preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coatcheck.core.blocks import JsonValue

PLACES = 20
COUNT = 16_000
"""Records. At 490 characters each, they take nearly 8 MB."""

NOTE = "n" * 415


def _searched(content: Previewed) -> Previewed:
    """Return the content that the engine previews: after the search in pieces."""
    searched: list[Previewed] = []

    def search() -> Iterator[None]:
        searched.append((yield from search_for_odd(content)))

    for _ in search():
        pass
    return searched[0]


def _shown(text: str, budget: int = 400) -> str:
    return checked_preview(_searched(Previewed.of(text)), budget)


def _record(number: int, status: str = "fine", **more: object) -> dict[str, object]:
    return {"id": f"{number:06}", "name": f"name {number:06}", "status": status, "note": NOTE, **more}


RECORDS = [json.dumps(_record(number)) for number in range(COUNT)]


def _with(needle: int, written: str) -> list[str]:
    return [*RECORDS[:needle], written, *RECORDS[needle + 1 :]]


def _json(needle: int, written: str) -> str:
    return f"[{', '.join(_with(needle, written))}]"


def _nested(needle: int, written: str) -> str:
    return f'{{"page": 1, "data": {{"count": 2, "items": {_json(needle, written)}}}, "next": null}}'


def _json_lines(needle: int, written: str) -> str:
    return "\n".join(_with(needle, written))


def _spread(needle: int, written: str) -> str:
    """Return each record over several lines, as ``json.dumps`` writes it with an indent."""
    lines = (
        record.replace('{"', '{\n"').replace(', "', ',\n"').replace("}", "\n}") for record in _with(needle, written)
    )
    return "\n".join(lines)


def _csv(needle: int, written: str) -> str:
    rows = (",".join(json.loads(record).values()) for record in (RECORDS[0], written))
    usual, odd_one = rows
    lines = [usual.replace("000000", f"{number:06}") for number in range(COUNT)]
    lines[needle] = odd_one
    return "\n".join(("id,name,status,note", *lines))


KINDS: dict[str, tuple[Callable[[int, str], str], str]] = {
    "JSON": (_json, "|lost"),
    "JSON in objects": (_nested, "|lost"),
    "JSON Lines": (_json_lines, "|lost"),
    "JSON objects": (_spread, "|lost"),
    "CSV": (_csv, ",lost"),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
def test_the_odd_record_in_8_mb_is_counted_and_shown_wherever_it_is(kind: str) -> None:
    make, expected = KINDS[kind]
    needles = [place * (COUNT - 1) // (PLACES - 1) for place in range(PLACES)]
    shown = {needle: _shown(make(needle, json.dumps(_record(needle, "lost")))) for needle in needles}

    assert [needle for needle, text in shown.items() if "1 with status: lost" not in text] == []
    assert [needle for needle, text in shown.items() if f"name {needle:06}{expected}" not in text] == []


@pytest.mark.parametrize("make", [_json, _nested, _json_lines, _spread])
def test_a_rare_field_in_8_mb_is_counted_and_shown(make: Callable[[int, str], str]) -> None:
    shown = _shown(make(9_000, json.dumps(_record(9_000, failure="timed out"))))

    assert "1 with failure" in shown
    assert "timed out" in shown


def test_a_record_that_lacks_a_field_in_8_mb_is_counted_and_shown() -> None:
    shown = _shown(_json(9_000, '{"id": "lone", "name": "one", "status": "fine"}'))

    assert "1 without note" in shown
    assert "lone|one" in shown


def test_records_of_a_searched_list_are_counted() -> None:
    assert _shown(_json(0, RECORDS[0])).startswith("list of 16,000 objects, one a line: ")


def test_odd_records_are_shown_between_gaps_that_cover_all_the_rest() -> None:
    text = _json(9_000, json.dumps(_record(9_000, "lost")))
    gaps = re.findall(r"\[… characters ([\d,]+)-([\d,]+) of", _shown(text, 900))
    (first, before), (after, last) = (tuple(int(place.replace(",", "")) for place in gap) for gap in gaps)

    assert text[first - 1] == text[after - 1] == "}"
    assert text[before + 1] == text[last + 1] == "{"
    assert '"status": "lost"' in text[before + 1 : after]
    assert json.loads(text[before + 1 : after])["id"] == "009000"


def test_an_integer_beyond_64_bits_in_an_odd_record_is_exact() -> None:
    number = 123_456_789_012_345_678_901
    assert str(number) in _shown(_json(9_000, json.dumps(_record(9_000, total=number))))


@pytest.mark.parametrize("make", [_json, _nested, _json_lines, _spread])
def test_at_most_one_piece_is_parsed_at_once(make: Callable[[int, str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser holds the interpreter's lock: 0.1 s for 8 MB."""
    lengths: list[int] = []
    parse = orjson.loads

    def loads(text: str) -> object:
        lengths.append(len(text))
        return parse(text)

    text = make(9_000, json.dumps(_record(9_000, "lost")))
    monkeypatch.setattr("coatcheck.core.preview.json_list.orjson.loads", loads)
    _shown(text)

    assert len(lengths) > len(text) / pieces.PIECE
    assert max(lengths) <= pieces.PIECE + 2


def test_the_search_pauses_after_each_piece() -> None:
    text = _json(9_000, RECORDS[0])

    assert sum(1 for _ in search_for_odd(Previewed.of(text))) >= len(text) // pieces.PIECE


def test_an_offload_shows_the_odd_record_in_the_middle_of_a_large_list() -> None:
    text = _json(9_000, json.dumps(_record(9_000, "lost")))
    block = Offloader(InMemoryStorage()).offload([TextBlock(text)], tool_name="t", policy=Always()).blocks[0]

    assert isinstance(block, TextBlock)
    assert "name 009000|lost" in block.text


def test_a_failing_search_costs_no_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    content = Previewed.of(_json(0, RECORDS[0]))
    monkeypatch.setattr(odd.OddSearch, "add", fail)

    assert _searched(content) is content
    assert isinstance(content.failures["search_for_odd"], MemoryError)
    monkeypatch.undo()
    assert preview(content, TIKTOKEN, budget=400).startswith("list of 16,000 objects, one a line: ")


# The preview says what was not searched.


@pytest.mark.parametrize("make", [_json, _json_lines, _csv])
def test_text_over_8_mb_is_not_searched_and_the_preview_says_so(
    make: Callable[[int, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "MAX_SEARCHED", 7_000_000)
    text = make(9_000, json.dumps(_record(9_000, "lost")))
    unit = rf"characters 0-{len(text) - 1:,}" if make is _json else r"lines 1-16,00\d"

    assert re.search(f"{unit} not searched for odd ones", _shown(text))


def test_a_record_larger_than_a_piece_ends_the_search_and_the_preview_says_so() -> None:
    text = _json(9_000, json.dumps(_record(9_000, text="x" * pieces.PIECE)))
    place = text.index(json.dumps(_record(9_000))[:-1])
    shown = _shown(text.replace(RECORDS[100], json.dumps(_record(100, "lost"))))

    assert f"1 with status: lost, characters {place:,}-{len(text) - 1:,} not searched for odd ones" in shown
    assert "name 000100|lost" in shown


@pytest.mark.parametrize("make", [_json, _json_lines])
def test_a_piece_in_which_too_many_items_are_not_objects_ends_the_search(
    make: Callable[[int, str], str],
) -> None:
    others = "[1, 2]" if make is _json else "gone"
    parting = ", " if make is _json else "\n"
    text = make(300, parting.join([others] * 20_000))
    said = re.search(r"(?:characters|lines) ([\d,]+)-[\d,]+(?: of [\d,]+)? not searched for odd ones", _shown(text))
    place = text.index(f"{parting}{others}{parting}{others}")

    assert said is not None
    first = int(said[1].replace(",", ""))
    if make is _json:
        assert place - pieces.PIECE <= first <= place + pieces.PIECE
    else:
        assert 100 < first < 4_000 + 300


def test_records_with_hardly_any_field_in_common_end_the_search_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MAX_CELLS", 20_000)
    said = re.search(r"characters ([\d,]+)-[\d,]+ not searched for odd ones", _shown(_json(0, RECORDS[0])))

    assert said is not None
    assert 0 < int(said[1].replace(",", "")) < 7_000_000


# How the records are read.


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n\t ", " : ")])
def test_records_that_contain_record_separators_are_all_read(separators: tuple[str, str]) -> None:
    records = [{"id": n, "tags": [{"a": k, "b": "}, {},{"} for k in range(n % 9)]} for n in range(9_000)]
    text = json.dumps({"items": records, "tags": [{"a": 1}] * 3}, separators=separators)
    search = odd.OddSearch()
    places = [place for piece in json_list.read_list(text, search) for place in json_list.split_list(text, *piece)]

    assert search.total == 9_000
    assert [json.loads(text[start:end])["id"] for start, end in places] == list(range(9_000))


def test_a_search_in_pieces_finds_the_same_as_a_search_at_once() -> None:
    records: list[dict[str, object]] = [
        {"a": n % 3, "b": [n], "c": f"c {n}", "in": {"a": 1, "b": {}}, **({"d": None} if n % 2 else {})}
        for n in range(2_000)
    ]
    records[850]["in"] = {"a": 1}
    records[950]["in"] = {"a": 2, "b": {"c": 3}}
    records[300]["e"] = True
    del records[777]["c"]
    records[900]["a"] = records[1_500]["a"] = "seldom"
    records[5]["b"] = records[1_999]["a"] = None
    at_once, in_pieces = odd.OddSearch(), odd.OddSearch()
    at_once.add(records)  # type: ignore[arg-type]  # JSON values all of them
    for start in range(0, 2_000, 70):
        in_pieces.add(records[start : start + 70])  # type: ignore[arg-type]  # as above

    assert at_once.found() == in_pieces.found()
    assert at_once.found().what == (
        "2 with a: seldom, 1 with b: null, 1 without c, 1 with e, 1 with in.a: 2, 1 without in.b"
    )
    assert at_once.found().positions == (900, 1_500, 5, 777, 300, 950, 850)


_FIELDS = st.sampled_from("abcdefgh")
_VALUES = st.recursive(st.sampled_from([None, 1, "x"]), lambda inner: st.dictionaries(_FIELDS, inner, max_size=3))


@pytest.mark.no_cover
@given(
    records=st.lists(st.dictionaries(_FIELDS, _VALUES, max_size=3), min_size=20, max_size=30),
    size=st.integers(1, 30),
)
def test_the_outcome_does_not_depend_on_how_sparse_fields_are_searched(
    records: list[dict[str, JsonValue]], size: int
) -> None:
    found = []
    for sparse in (1, 8, len(records) + 1):  # sparse: every field that some record lacks, some of them, or none
        search = odd.OddSearch()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(odd, "_SPARSE", sparse)
            for start in range(0, len(records), size):
                search.add(records[start : start + size])
        found.append(search.found())

    assert found == found[:1] * len(found)
