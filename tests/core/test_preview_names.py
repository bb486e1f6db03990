"""The names listed for what a preview does not show: each is in the content, without its notation, such as escapes."""

from __future__ import annotations

import json
import re
import time

import pytest

from coatcheck import TokenCounter
from coatcheck.core.preview import Previewed
from coatcheck.core.preview.names import names_in, next_to_names
from tests.core.previewing import TIKTOKEN, checked_preview

CITIES = ["서울특별시", "Казань", "दिल्ली"]


def logs(line_end: str) -> list[dict[str, object]]:
    return [
        {"id": number, "log": f"began{line_end}user_{number * 31 % 9973}{line_end}table_{number * 17 % 9973}"}
        for number in range(400)
    ]


def names_behind(text: str, budget: int = 250) -> set[str]:
    """Return the names that a preview lists."""
    shown = checked_preview(Previewed.of(text), budget)
    found = re.search(r"\[… more, in it: (.*) …\]$", shown, re.DOTALL)
    assert found is not None
    return set(found[1].split())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(logs("\n")), id="JSON"),
        pytest.param("\n".join(map(json.dumps, logs("\t"))), id="JSON Lines"),
        pytest.param(repr(logs("\n")), id="Python"),
        pytest.param(json.dumps(logs("\r\n") * 300), id="a list of which only the ends are read"),
        pytest.param(json.dumps(logs("\\")), id="backslashes"),
    ],
)
def test_the_letter_of_an_escape_is_not_part_of_a_name(text: str) -> None:
    names = names_behind(text)

    assert len(names) > 10
    assert {re.sub(r"\d+", "", name) for name in names if not name.isdecimal()} <= {"user_", "table_"}


def test_the_keys_of_a_manifest_are_names() -> None:
    keys = ["canIpForward", "minCpuPlatform", "templateRef"]
    items = "".join(f"{key}:\n  type: string\n  text: |-\n    words of no interest\n" for key in keys)
    words = [
        f"{chr(97 + number % 26) * 3}{chr(97 + number // 26) * 2}: words of no interest\n" for number in range(400)
    ]
    text = f"{''.join(words[:200])}{items}{''.join(words[200:])}"
    shown = checked_preview(Previewed.of(text), 250)

    assert f", in them: {' '.join(keys)} …]" in shown


def test_the_letter_of_an_escape_before_a_key_is_not_part_of_a_name() -> None:
    text = "\n".join(f"words {'of no interest ' * 9}\\nName: x\\tPlace: y" for _ in range(90))

    assert not re.search(r"\bin (?:them|it): .*\b[nt](?:Name|Place)\b", checked_preview(Previewed.of(text), 250))


def test_characters_that_are_written_as_escapes_are_not_names() -> None:
    records = [{"id": f"p{number * 7919 % 99_991}", "city": f"{CITIES[number % 3]} {number}"} for number in range(400)]

    assert {name[0] for name in names_behind(json.dumps(records)) if not name.isdecimal()} == {"p"}


def test_a_closing_tag_is_not_a_name() -> None:
    pages = "".join(
        f"<page><page-margin>{n * 31}</page-margin><owner>Team{n * 7919 % 997}</owner></page>" for n in range(300)
    )

    names = names_behind(f"<?xml version='1.0'?><book>{pages}</book>")

    assert any(name.startswith("Team") for name in names)
    assert not any("/" in name for name in names)


@pytest.mark.parametrize("digest", ["a{:039x}", "C{:031X}", "a0:b1:c2:d3:e4:f5:a6:b7:{:02x}"])
def test_only_one_of_many_digests_is_named_to_leave_room_for_words(digest: str) -> None:
    log = "".join(
        f"commit {digest.format(n * 7919 % 256)}\nAuthor: Team{n}\n\n    mend topic_{n * 31} in a few quiet words\n\n"
        for n in range(40, 240)
    )

    shown = checked_preview(Previewed.of(log), 250)
    gap = shown[shown.index(" not shown, in them: ") :].partition("\n")[0]

    assert len(re.findall(r"(?:[0-9a-fA-F]:?){16,}", gap)) == 1
    assert gap.count("topic_") > 10


@pytest.mark.parametrize("place", [":{}", ":{}:7"])
def test_only_one_place_per_file_is_named(place: str) -> None:
    files = [f"src/package/module_{letter * 3}.py" for letter in "abcdefgh"]
    lines = [f"  {path}{place.format(line * 31)} is possibly unbound\n" for path in files for line in range(1, 40)]

    shown = checked_preview(Previewed.of("what was checked\n" * 40 + "".join(lines) + "the end of it\n" * 40), 300)

    assert [shown.count(path) for path in files] == [1] * len(files)


@pytest.mark.parametrize("name", ["localhost:{}", "registry.example/team/app:{}", "chr7:{}"])
def test_numbers_after_a_name_without_a_file_extension_are_all_listed(name: str) -> None:
    all_names = [name.format(figure) for figure in (5432, 6379, 8080, 9090)]
    text = " and not far from that the next one ".join(all_names)

    names, _ = names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=300, numbered=False)

    assert names.split() == all_names


def test_room_left_by_a_line_that_does_not_fit_goes_to_the_rest() -> None:
    lines = [f"{'All of it, and more of it ' * (5 + at % 7)}of Order{3 * at} in Lot{7 * at}." for at in range(300)]
    shown = checked_preview(Previewed.of("\n".join(lines)), 500)

    assert all(line in lines for line in shown.split("\n") if not line.startswith("[…"))
    assert TIKTOKEN.count(shown) >= 0.97 * 500


def test_private_names_are_listed() -> None:
    text = "the factory _cstack calls __enter__ of what it made, and then _ or __ or _1, whatever those may be"

    names, _ = names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=60, numbered=False)

    assert names == "_cstack __enter__"


def test_an_outline_is_followed_by_the_names_and_numbers_it_leaves_out() -> None:
    text = json.dumps(
        {"title": "Report", "body": "some words " * 90 + "ticket OPS-4711 cost 98,765 in Ghent " + "x " * 900}
    )
    *_, last = checked_preview(Previewed.of(text), 200).split("\n")

    assert last == "[… more, in it: OPS-4711 98,765 Ghent …]"


def test_a_name_that_follows_a_longer_term_containing_it_is_listed_once() -> None:
    text = json.dumps({"title": "Report", "body": "some words " * 90 + "Ghent+, then Ghent and Bruges " + "x " * 900})
    *_, last = checked_preview(Previewed.of(text), 200).split("\n")

    assert last == "[… more, in it: Ghent Bruges …]"


def test_the_gap_in_text_names_numbers() -> None:
    text = "".join("nothing to see in this line of words\n" * 40 + f"order {n * 7919} came\n" for n in range(1, 20))

    assert "15838" in checked_preview(Previewed.of(text), 200)


def test_a_name_cut_by_the_end_of_the_gap_is_not_listed() -> None:
    text = "x" * 40 + " order_17 order_18000"
    names, has_all = names_in(text, TIKTOKEN, start=0, end=len(text) - 3, shown="", budget=50, numbered=False)

    assert names == "order_17"
    assert has_all


@pytest.mark.parametrize(
    ("hostile", "plain"),
    [
        pytest.param("a" + "/" * 19_000, "a note of " * 1_900, id="1,500 times, were every pair of signs tried"),
        pytest.param(
            "100,200,300," * 1_580 + "x", "100 200 300 " * 1_580, id="1,800 times, were every figure's end tried"
        ),
    ],
)
def test_names_are_searched_for_in_linear_time(hostile: str, plain: str) -> None:
    # Measured: the same time for the first, twice the time for the second.
    assert _spent_on_names(f"{hostile}\n" * 2) < 20 * _spent_on_names(f"{plain}\n" * 2)


def _spent_on_names(text: str) -> float:
    """Return the processor time, in seconds, of the fastest of five searches for names."""

    def once() -> float:
        started = time.process_time()
        names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=50, numbered=False)
        return time.process_time() - started

    return min(once() for _ in range(5))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("paid 1,234 and 12,345,678.90, or 376,500, not more", "1,234 12,345,678.90 376,500"),
        ("figure 5,914,184,313,154,580,292,790", "5,914,184,313,154,580,292,790"),
        ("it took 12,345ms, of 1,000-2,000", "12,345 1,000 000"),
        ("row 5,123,Ada", "123 Ada"),
        ("row 1992059264,8.41,2.536", "1992059264 8.41 2.536"),
        ("row 1234,567,x100,200", "1234 567 x100 200"),
        ("Oslo,Rome, Kyiv", "Oslo Rome Kyiv"),
    ],
)
def test_a_comma_is_part_of_a_number_only_if_it_separates_thousands(text: str, names: str) -> None:
    text = f"{'word ' * 50}{text}"
    found = names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=50, numbered=False)

    assert found == (names, True)


class Words(TokenCounter):
    """Counts words of any length as one token each."""

    def count(self, text: str) -> int:
        return len(text.split())


def test_a_search_for_names_that_stops_at_its_limit_does_not_claim_to_have_all() -> None:
    text = " ".join(f"{'some words ' * 9} /srv/data/project_{number}/final_results" for number in range(100))
    names, has_all = names_in(text, Words(), start=0, end=len(text), shown="", budget=20, numbered=False)

    assert 0 < len(names.split()) < 20
    assert not has_all


def test_the_fuller_of_two_previews_next_to_names_is_shown() -> None:
    tries = iter(["word " * 85, "word " * 50])

    shown = next_to_names(lambda _: (next(tries), False), "word " * 900, 100, Words(), may_fit=False, or_alone=True)

    assert shown == "word " * 85


def test_element_references_of_a_page_snapshot_are_not_listed_and_take_no_room() -> None:
    """A browser writes them: ``e12 e13 e15`` were most of the names, and mean nothing apart from their elements."""
    elements = "".join(
        f'- listitem [ref=f7e{3 * n}]:\n  - link "Item_{n * 7919}" [ref=f7e{3 * n + 2}] [cursor=pointer]:\n'
        for n in range(3, 900)
    )

    shown = checked_preview(Previewed.of(elements), 500)

    found = re.search(r"not shown, in them: (.*) …\]", shown)
    assert found is not None
    names = found[1].split()
    assert len(names) >= 40
    assert all(name.startswith("Item_") for name in names)


def test_a_line_number_lower_than_the_one_before_it_is_listed() -> None:
    lines = zip((90, 91, 12, 13, 400), "ABCDE", strict=True)
    text = "".join(f"{number}: set Value{letter}\n" for number, letter in lines)

    names, _ = names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=60, numbered=True)

    assert names == "90 ValueA ValueB 12 ValueC ValueD 400 ValueE"


def test_a_number_too_long_for_a_line_number_is_not_taken_for_one() -> None:
    text = f"1: set ValueA\n{'9' * 5_000}: set ValueB\n3: set ValueC\n"

    names, _ = names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=60, numbered=True)

    assert names == "1 ValueA ValueB ValueC"


def test_the_names_in_a_record_left_out_between_two_others_are_listed() -> None:
    small: list[dict[str, object]] = [{f"f{column}": number for column in range(30)} for number in range(2)]
    wide = {f"f{column}": f"Order-{column * 7919} of a few {'words ' * 12}" for column in range(30)}

    assert "Order-23757" in names_behind("\n".join(map(json.dumps, [small[0], wide, small[1]])), 700)


def test_a_last_name_contained_in_the_first_one_does_not_hide_all_names() -> None:
    words = " and then some words of no use" * 10
    text = f"BillPaymentID{words} Berlin{words} Marie{words} PaymentID{words}"

    found = names_in(text, TIKTOKEN, start=0, end=len(text), shown="", budget=100, numbered=False)

    assert found == ("BillPaymentID Berlin Marie PaymentID", True)
