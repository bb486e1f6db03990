"""Patterns: what RE2 accepts, what is refused by name, and what is searched as plain text."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import scan, search, wording
from coatcheck.core.reading.pattern import Matcher, compile_pattern
from tests.core.reading_driver import attempt, shown, stored
from tests.core.strategies import texts


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("(?=a)", "a look-ahead"),
        ("x(?!a)", "a look-ahead"),
        ("(?<=a)b", "a look-behind"),
        ("(?<!a)b", "a look-behind"),
        (r"(a)\1", "a back-reference"),
        (r"(a)\9", "a back-reference"),
        (r"(?P<n>a)(?P=n)", "a back-reference"),
        (r"(?<n>a)\k<n>", "a back-reference"),
        ("(?>a+)b", "an atomic group"),
        ("(a)?(?(1)b|c)", "a conditional"),
        (r"\((?R)?\)", "a recursion"),
        ("(?P<n>a)(?P>n)", "a recursion"),
        ("a{1001}", "a repeat above 1,000"),
        ("a{5,2000}", "a repeat above 1,000"),
        ("(a{100}){100}", "a repeat above 1,000"),
    ],
)
def test_a_feature_that_the_engine_lacks_is_refused_by_name(pattern: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"pattern uses {named} \(.*does not support: \w+"):
        compile_pattern(pattern)


def test_a_pattern_that_compiles_too_large_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="pattern uses too many repeats"):
        compile_pattern(r"(\pL{1000})" * 3)


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*a", "c++", r"C:\Users", "a{2,1}", "items[", "f(x", "a**", "\\", "(?P<n>a", "[z-a]"]
)
def test_a_pattern_that_is_not_a_regular_expression_is_searched_literally(pattern: str) -> None:
    answer = stored(f"one\nhere: {pattern} and on\nthree\n").ask(pattern=pattern, context_lines=0)
    header, note, _, row = answer.text.split("\n")

    assert header == f"[1 match for /{pattern}/]"
    assert re.fullmatch(r"\[not a valid regular expression \(.+\): searched as literal text\]", note)
    assert row == f"> 2| here: {pattern} and on"


@pytest.mark.parametrize(
    "line",
    [
        "  total = sum(prices[0])",
        "Name(id='s', ctx=Load()),",
        "git log [--oneline] {a,b} x+1",
        r"see C:\temp\data",
        "cost is $12?",
        "if (f(a)||g(b)) return",
    ],
)
def test_text_copied_without_escapes_is_found(line: str) -> None:
    answer = stored(f"one\n{line}\nthree\n").ask(pattern=line.strip(), context_lines=0)
    header, note, _, row = answer.text.split("\n")

    assert header == f"[1 match for /{line.strip()}/]"
    assert note == "[as a regular expression it matches no line: searched as literal text]"
    assert row == f"> 2| {line}"


@pytest.mark.parametrize("row", ["| a | 1 |", "a | b |", "| a", "a||b"])
def test_a_copied_table_row_is_found_instead_of_every_line(row: str) -> None:
    answer = stored(f"one\n{row}\nthree\n").ask(pattern=row, context_lines=0)

    assert answer.matches == 1
    assert "it matches every line (one side of | is empty): searched as literal text]" in answer.text
    assert answer.text.endswith(f"\n> 2| {row}")


@pytest.mark.parametrize("pattern", ["| Ann Lee | 1st", "| Ann Lee | 1st | 29.0 |", "Lee | 1st |"])
def test_a_row_is_found_even_if_the_columns_of_its_table_are_wider(pattern: str) -> None:
    row = "| Ann Lee       | 1st   | 29.0 |"
    answer = stored(f"| name          | class | age  |\n{row}\n| Bo            | 2nd   | 3.0  |").ask(
        pattern=pattern, context_lines=0
    )

    assert answer.matches == 1
    assert answer.text.endswith(f"\n> 2| {row}")


@pytest.mark.parametrize("pattern", ["| Cy | 9th |", "b|"])
def test_a_pattern_that_matches_every_line_gets_a_note(pattern: str) -> None:
    answer = stored("| Ann | 1st |\n| Bo | 2nd |\n").ask(pattern=pattern)

    assert answer.matches == 2
    assert (
        answer.text.split("\n")[1] == r"[it matches every line (one side of | is empty): write \| for that character]"
    )


@pytest.mark.parametrize("pattern", ["[ERROR]", "(?i)[error]", "[4711]", "[10.0.0.7]", "[ERROR]|[FATAL]"])
def test_a_word_in_brackets_is_found_as_a_word_and_not_as_a_character_class(pattern: str) -> None:
    lines = ["[INFO] 1 NEW RULE 104.7", "[ERROR] [10.0.0.7] [4711] disk full", "1040071 ERROR", "2 [INFO] 10.0.0.71"]
    answer = stored("\n".join(lines)).ask(pattern=pattern, context_lines=0)

    assert answer.text.split("\n") == [
        f"[1 match for /{pattern}/]",
        "[as a regular expression [...] matches any one of its characters: searched as literal text]",
        "",
        f"> 2| {lines[1]}",
    ]


@pytest.mark.parametrize("pattern", ["[a-c]", "[a-cX-Z]"])
def test_a_character_range_stays_one_even_if_the_content_has_its_text(pattern: str) -> None:
    assert "[2 matches for" in stored(f"grep {pattern}\nb\n1").ask(pattern=pattern).text


@pytest.mark.parametrize(("pattern", "matches"), [("[a-c]", 2), ("[^x]", 3), ("[ab]+", 1), (r"[\w]", 3), ("[b", 0)])
def test_a_character_class_whose_text_is_not_in_the_content_stays_one(pattern: str, matches: int) -> None:
    answer = stored("ab [^x] [ab]+ [\\w]\nc\nd\n" if pattern != "[b" else "ab\n").ask(pattern=pattern)

    assert answer.matches == matches
    assert "any one of its characters" not in answer.text


@pytest.mark.parametrize(
    ("pattern", "matches"), [("a(b|)", 1), ("b|", 3), ("[|]", 0), (r"\|", 0), ("f(x)", 0), ("^$|", 3)]
)
def test_a_pattern_whose_text_is_not_in_the_content_stays_a_regular_expression(pattern: str, matches: int) -> None:
    answer = stored("ab\nc\nd\n").ask(pattern=pattern, context_lines=0)

    assert answer.matches == matches
    assert "literal text" not in answer.text


ESCAPED = (
    r"""
{"name": "caf\u00e9 \u5bff\u53f8 \ud83c\udf63", "url": "https:\/\/example.com\/a", "said": "he said \"no\""}
{"name":"compact","log":"{\"error\": \"E449\"}","tag":"\u003cb\u003e Tom \u0026 Jerry"}
<li class="x">R&amp;D &lt;new&gt; caf&#233;&nbsp;don&#39;t</li>
web-1    0/1  Failed
{colour}src/a.ts:5{off} - {colour}error{off} TS2339{off}: Property
<b>process</b>.<span>on</span>(<span class="s">'exit'</span>, <span>(<i>code</i>) =&gt;</span> {{
""".replace("{colour}", "\x1b[96m")
    .replace("{off}", "\x1b[0m")
    .replace("{{", "{")
)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("café 寿司 🍣", 2),
        ("CAFÉ", None),
        ("(?i)CAFÉ 寿", 2),
        ("寿.*🍣", 2),
        ("é? 寿+", 2),
        ("https://example.com/a", 2),
        (r"example\.com\/a\"", 2),
        ('he said "no"', 2),
        ('"name" : "caf', 2),
        ('"name": "compact"', 3),
        ('"error": "E449"', 3),
        ('"error":"E4[0-9]+"', 3),
        ("<b> Tom & Jerry", 3),
        ("R&D <new> café don't", 4),
        ("R&D (?P<what><new>)", 4),
        ("(R&D <new>)", 4),
        ("web-1 0/1 Failed", 5),
        ("web-1 0/1 +Fail", 5),
        ("error TS2339: Property", 6),
        (r"^src/a\.ts:[0-9]+ - error", 6),
        ("(?i)ERROR ts[0-9]{4}", 6),
        ("process.on('exit', (code) => {", 7),
        (r"on\('exit', \(\w+\)", 7),
        (r"\x6fn\(", 7),
    ],
)
def test_text_that_a_preview_shows_unescaped_is_found(pattern: str, line: int | None) -> None:
    answer = stored(ESCAPED).ask(pattern=pattern, context_lines=0)
    if line is None:
        assert answer.matches == 0
        return
    header, note, _, row = answer.text.split("\n")

    assert header == f"[1 match for /{pattern}/]"
    assert note == wording.FOUND_ESCAPED
    assert row.startswith(f"> {line}| ")


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        ("3:45\u202fPM", "3:45 PM"),
        ("1\u202f234\u2009€", "1 234 €"),
        ("注文\u3000番号", "注文 番号"),
        (unicodedata.normalize("NFD", "Zoë Müller.pdf"), r"Zoë Müller\.pdf"),
        (unicodedata.normalize("NFD", "한국어"), "한국.*어"),
        (unicodedata.normalize("NFD", "müller"), "(?i)MÜLLER"),
        (r'{"at": "3:45\u202fPM", "by": 1}', "3:45 PM"),
        ("we don\u2019t ship", "don't"),
        (r'{"text": "we don\u2019t ship"}', "don't ship"),
        ("<p>we don&rsquo;t&#160;ship</p>", "don't ship"),
        ("he said \u201cno\u201d", 'said "no"'),
        ("pages 12\u201334", "12-34"),
        ("state\u2011of\u2011the\u2011art", "state-of-the-art"),
        ("minus \u22125 \u20ac", r"minus -[0-9]"),
        (r'{"pages": "12\u201334"}', r"12\-34"),
    ],
)
def test_other_spaces_quotes_dashes_and_decomposed_accents_are_found(written: str, pattern: str) -> None:
    header, note, _, row = stored(f"one\n{written}\n").ask(pattern=pattern, context_lines=0).text.split("\n")

    assert header == f"[1 match for /{pattern}/]"
    assert note == wording.FOUND_ESCAPED
    assert row == f"> 2| {written}"


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        ("R&D", "R&amp;D"),
        (r'{"of": "R\u0026D"}', "R&amp;D"),
        ("a <b> c", "&lt;b&gt;"),
        ("Tom's café bar", "Tom&#39;s caf&eacute;&nbsp;bar"),
        ("don't ship", "don\u2019t.*p"),
        ('he said "no"', "said \u201cno\u201d"),
        ("pages 12-34", "12\u2013[0-9]{2}"),
        ("3:45 PM", "3:45\u202fPM"),
        ("Zoë Müller.pdf", unicodedata.normalize("NFD", r"Zoë Müller\.pdf")),
    ],
)
def test_a_pattern_in_another_form_finds_plain_text(written: str, pattern: str) -> None:
    content = stored(f"one\n{written}\n")
    header, note, _, row = content.ask(pattern=pattern, context_lines=0).text.split("\n")

    assert header == f"[1 match for /{pattern}/]"
    assert note == wording.FOUND_ESCAPED
    assert row == f"> 2| {written}"


@pytest.mark.parametrize(
    "pattern",
    [
        "^name,",
        "^Tartu,",
        "^Tartu,[0-9]+$",
        ",2$",
        r"\bNarva\b",
        r"(?:^|;)Narva,[0-9]$",
        r"^\s*at \w+\($",
        r"\bat main\b",
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_lines_and_words_begin_and_end_within_a_string_of_json(pattern: str, times: int) -> None:
    written = "name,number\r\nTartu,1\r\nNarva,2\nError:\n\tat main(\n"
    for _ in range(times):
        written = json.dumps({"result": written})
    header, note, *_ = stored(written).ask(pattern=pattern, context_lines=0).text.split("\n")

    assert header == f"[1 match for /{pattern}/]"
    assert note == wording.FOUND_ESCAPED


@pytest.mark.parametrize(("pattern", "line"), [("^Tartu", 2), ("1$", 2), (r"\bNarva", 3)])
def test_where_lines_begin_and_end_by_themselves_no_other_form_is_searched(pattern: str, line: int) -> None:
    content = 'number: "1"\nTartu,1\nNarva,2 or "Tartu", \\Narva\n'
    assert stored(content).ask(pattern=pattern, context_lines=0).text.split("\n")[2].startswith(f"> {line}| ")


@pytest.mark.parametrize(
    ("pattern", "lines"), [("^Ann Lee", [1]), (r"\s+R&D", [3]), ("^1e-05", [4]), (r"^Bo\|^Cy", [5, 6])]
)
def test_where_another_form_is_found_lines_begin_and_end_by_themselves(pattern: str, lines: list[int]) -> None:
    content = 'Ann  Lee\n"Ann  Lee"\n R&amp;D or "\\nR&amp;D"\n0.00001\nBo\nCy\n"0.00001", "\\nR&amp;D", "Bo|\\nCy"\n'
    rows = stored(content).ask(pattern=pattern, context_lines=0).text.split("\n")[3:]
    assert [int(row[2]) for row in rows] == lines


@pytest.mark.parametrize("pattern", [r"café[[:alpha:]\s]+x", r'café[[:^digit:]"$^]+x', r"café[^[:digit:]\s]?.x"])
def test_a_class_that_names_another_class_stays_whole_in_another_form(pattern: str) -> None:
    assert stored(r"caf\u00e9 x").ask(pattern=pattern).matches == 1


@pytest.mark.parametrize("pattern", ["^$", r"^\s*$", r"\{$", "^[,:}]", r"\($", "1,2$"])
@pytest.mark.parametrize("separators", [(",", ":"), (",\n ", ": ")])
def test_a_line_is_within_a_string_of_json_and_not_between_two(pattern: str, separators: tuple[str, str]) -> None:
    content = json.dumps([{"name": "Ann", "log": "Tartu,1\r\nNarva,2 f(x"}, {"name": "Bo"}], separators=separators)
    assert stored(f'{content}\nf("x"); 1,2"x').ask(pattern=pattern).matches == 0


@pytest.mark.parametrize("text", ["", "a\r\n\r\nb", "\n\n"])
def test_an_empty_line_is_found_within_a_string_of_json(text: str) -> None:
    assert stored(json.dumps(["a", text, "b"])).ask(pattern="^$").matches == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("times", [1, 2])
def test_lines_next_to_each_other_within_a_string_of_json_all_count(end: str, times: int) -> None:
    content = end.join(["Tartu,1", "Narva,2"] * 1_000 + ["margin"])
    for _ in range(times):
        content = json.dumps([content])
    for pattern, matches in ((r"^\w+,[0-9]$", 2_000), (r"(?:^Tartu,\d$)", 1_000), ("^margin$", 1), ("^$", 0)):
        assert stored(content).ask(pattern=pattern).matches == matches


def test_all_strings_of_a_list_are_found_by_their_edges() -> None:
    content = json.dumps(["a", "b\rc", "d\ne"] * 500, separators=(",", ":"))
    assert stored(content).ask(pattern=r"^\w$").matches == 2_500


@pytest.mark.parametrize("pattern", ["^artu", "[^T]artu,1", r"\barva", "number$1", r"\^name", r"\QTartu\E^"])
def test_an_edge_is_nowhere_else_within_a_string_of_json(pattern: str) -> None:
    assert stored(json.dumps("name,number\nTartu,1\nNarva,2")).ask(pattern=pattern).matches == 0


@pytest.mark.parametrize("pattern", ["[a\u2013z]{2}", "&#46;&#46;", "R&ampD", "&nosuch;"])
def test_a_pattern_in_another_form_keeps_its_meaning(pattern: str) -> None:
    assert stored("on\nR&D\n").ask(pattern=pattern).matches == 0


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"timeout\|refused", [1, 2, 3]),
        (r"\(timeout\|refused\): [0-9]\+", [3]),
        (r"main()\|init(", [4]),
        (r"main(\|init(", [4]),
        (r"\<refused\>", [3]),
        (r".*timeout.*\|.*init\>.*", [1, 4]),
    ],
)
def test_a_grep_style_pattern_that_finds_nothing_is_read_like_grep(pattern: str, lines: list[int]) -> None:
    content = "timeout\nrefusedly\n(refused): 7 refused: 7\nmain() init()\ncd\n"
    header, note, _, *rows = stored(content).ask(pattern=pattern, context_lines=0).text.split("\n")

    assert header == f"[{len(lines)} match{'es' * (len(lines) > 1)} for /{pattern}/]"
    assert note == wording.AS_IN_GREP
    assert [int(row.partition("|")[0][1:]) for row in rows if row != "---"] == lines


@pytest.mark.parametrize("pattern", [r"\| b \|", r"x\|y", r"a\|", r"\|x\\"])
def test_an_escaped_bar_that_is_not_in_the_content_matches_no_other_line(pattern: str) -> None:
    assert stored("a | c\nd\n").ask(pattern=pattern).matches == 0


def test_an_escaped_bar_that_is_in_the_content_is_found_literally() -> None:
    assert stored("a\na | b\nb\n").ask(pattern=r"a \| b", context_lines=0).text.endswith("]\n\n> 2| a | b")


@pytest.mark.parametrize("pattern", ['"name": "tea"', "thé", "a/b", r"\QR&D\E.", "É{900}{9}", '"' * 1_000])
def test_text_that_is_in_the_content_in_no_form_is_not_found(pattern: str) -> None:
    assert stored(ESCAPED).ask(pattern=pattern).matches == 0


def test_a_pattern_form_that_would_take_too_long_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_WORK", compile_pattern("café").size * len(ESCAPED.encode()))

    assert stored(ESCAPED).ask(pattern="café").matches == 0


@pytest.mark.parametrize(
    ("pattern", "matches"), [(r"\u5bff", 1), (r"[\u4e00-\u9fff]+", 1), (r"\\u5bff", 0), (r"\u5b", 0)]
)
def test_a_code_point_may_be_written_as_in_json_and_python(pattern: str, matches: int) -> None:
    assert stored("one\n寿司\n").ask(pattern=pattern).matches == matches


def test_a_regular_expression_that_matches_is_not_searched_literally() -> None:
    assert stored("f(x)\nfx\n").ask(pattern="f(x)", context_lines=0).text.endswith("]\n\n> 2| fx")


def test_the_note_is_also_in_an_answer_without_matches() -> None:
    assert "(missing ]: [): searched as literal text]" in stored("a").ask(pattern="[").text


def test_the_end_of_content_may_be_written_as_in_python() -> None:
    assert stored("b a\na\n").ask(pattern=r"a\Z", context_lines=0).text.endswith("\n> 2| a")
    assert stored("x\\Z").ask(pattern=r"\\Z").matches == 1


@pytest.mark.parametrize(
    "pattern", [r"\C+", r"(?s).+", r"[^q]+", r"\s+", r"[\x00-\xff]+", r"\pZ+", r"a\nb", "a\nb", r"\PL*"]
)
def test_no_match_extends_beyond_its_line(pattern: str) -> None:
    matcher, data = compile_pattern(pattern), b"a \n b\n\nc"
    at: int | None = 0
    while at is not None and at <= len(data):
        found = matcher.find(data, at, len(data))
        assert found is None or b"\n" not in data[slice(*found)]
        at = None if found is None else max(found[1], at + 1)


@pytest.mark.parametrize(
    ("pattern", "the_same"),
    [
        (".*ERROR.*", "ERROR"),
        ("^.*ERROR.*$", "ERROR"),
        (".*?ERROR.*?", "ERROR"),
        (".{0,200}ERROR.{0,200}", "ERROR"),
        (r"ERROR\..*", r"ERROR\."),
        (r"ERROR\.*", r"ERROR\.*"),
        (r"ERROR\\.*", r"ERROR\\.*"),
        ("^.{0,9}ERROR", "^.{0,9}ERROR"),
        ("ERROR.{0,9}$", "ERROR.{0,9}$"),
        ("ERROR|.*", "ERROR|.*"),
        (".*|ERROR", ".*|ERROR"),
        ("(.*)", "(.*)"),
        (".*", ".*"),
        ("^.*$", "^"),
        (r"\QERROR.*", r"\QERROR.*"),
        (".*(?i)+", ".*(?i)+"),
    ],
)
def test_parts_around_a_pattern_that_match_anything_are_dropped(pattern: str, the_same: str) -> None:
    assert compile_pattern(pattern).size == Matcher(the_same).size


@given(
    pattern=st.lists(
        st.sampled_from([".*", ".{0,3}", "^", "$", "a", "b|", "[ab]", "(a)", ".", "?", r"\.", "|"]), max_size=6
    ),
    line=st.text("ab.c", max_size=12),
)
def test_dropping_parts_around_a_pattern_changes_no_answer(pattern: list[str], line: str) -> None:
    joined = "".join(pattern)
    try:
        whole = Matcher(joined)
    except ValueError:
        return
    data = line.encode()
    assert (compile_pattern(joined).find(data, 0, len(data)) is None) == (whole.find(data, 0, len(data)) is None)


@given(texts(pieces=6))
def test_any_string_is_a_pattern_or_refused(pattern: str) -> None:
    content = stored(f"x {pattern} y")
    if not pattern or len(pattern) > 1_000:
        return
    answer = attempt(lambda: content.ask(pattern=pattern))
    if isinstance(answer, InvalidRequest):
        assert "pattern uses" in str(answer)
    else:
        assert shown(answer.text) == answer.text


def test_patterns_do_not_stay_in_a_cache() -> None:
    before = re2._Regexp._make.cache_info().currsize
    for n in range(20):
        compile_pattern(f"some pattern {n}")

    assert re2._Regexp._make.cache_info().currsize == before


def test_the_ends_of_a_look_are_not_the_ends_of_a_line_or_a_word() -> None:
    data = b"xaax"
    for pattern in ("^a", "a$", r"\ba", r"a\b", r"\Aa", r"a\z"):
        assert Matcher(pattern).find(data, 1, 3) is None


WORDS = "ein großer Übertrag\nCafé zu\n日本語\n"


@pytest.mark.parametrize("pattern", [r"\bÜbertrag\b", r"(?i)\bübertrag", r"é\b zu", r"日\w+", r"日[^\W]", r"\\?\bÜ"])
def test_a_missed_word_with_other_letters_gets_a_note_about_ascii_only_syntax(pattern: str) -> None:
    answer = stored(WORDS).ask(pattern=pattern, budget=256)

    assert answer.matches == 0
    assert r"\b, \w and \W know ASCII letters only: leave out \b, and write \pL for a letter." in answer.text
    assert "(?i)" in answer.text


@pytest.mark.parametrize(("pattern", "instead"), [(r"\bÜbertrag\b", "Übertrag"), (r"日\w+", r"日\pL+")])
def test_the_pattern_that_the_note_suggests_finds_the_word(pattern: str, instead: str) -> None:
    assert stored(WORDS).ask(pattern=pattern).matches == 0
    assert stored(WORDS).ask(pattern=instead).matches == 1


@pytest.mark.parametrize("pattern", ["Überträge", r"\bword\b", r"\\bÜ", r"Über(\b", r"\BÜber\d"])
def test_a_pattern_that_fails_for_another_reason_gets_no_note_about_ascii(pattern: str) -> None:
    answer = stored(WORDS).ask(pattern=pattern)

    assert answer.matches == 0
    assert "ASCII" not in answer.text


CARRIAGE_RETURNS = [
    r"\r",
    r"\r$",
    r"row 5\r",
    "\r",
    r"\r\n",
    r"[\r\n]",
    r"\x0d",
    r"\x0D",
    r"\x{d}",
    r"\x{000D}",
    r"\015",
]
CRLF = "Line ends are not searched. Some or all here are \\r\\n: leave out \\r, and use $ for the end of a line."


@pytest.mark.parametrize("pattern", CARRIAGE_RETURNS)
def test_a_search_for_carriage_returns_says_whether_line_ends_have_them(pattern: str) -> None:
    windows, unix = ("".join(f"row {number}{end}" for number in range(99)) for end in ("\r\n", "\n"))

    assert CRLF in stored(windows).ask(pattern=pattern, budget=256).text
    assert CRLF in stored(unix + windows).ask(pattern=pattern).text
    assert CRLF in stored(unix + windows).ask(pattern=pattern, line_range="100-100").text
    assert r"Line ends are not searched. None here is \r\n." in stored(unix).ask(pattern=pattern).text
    assert r"None here is \r\n" in stored(unix + windows).ask(pattern=pattern, line_range="1-99").text


def test_a_carriage_return_within_a_line_is_found() -> None:
    assert stored("10 %\r20 %\r\n").ask(pattern=r"\r").matches == 1


def test_a_line_end_split_between_two_pieces_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "WINDOW", 4)

    assert CRLF in stored("row\r\nrow").ask(pattern=r"x\r").text


@pytest.mark.parametrize("pattern", ["rows", r"\\r", r"\\x0d", r"row (\r", "C:\\reports("])
def test_a_search_for_anything_else_says_nothing_about_line_ends(pattern: str) -> None:
    answer = stored("row\r\n").ask(pattern=pattern)

    assert answer.matches == 0
    assert "Line ends" not in answer.text


def test_a_backspace_character_means_a_word_boundary() -> None:
    assert stored("cats\na cat\n").ask(pattern="\bcat\b", context_lines=0).text.endswith("\n> 2| a cat")


@pytest.mark.parametrize(("pattern", "hint"), [("/Row 5/i", True), ("/Row/", True), ("/Row", False), ("Row/i", False)])
def test_a_pattern_between_slashes_that_finds_nothing_gets_a_hint(pattern: str, hint: bool) -> None:
    assert (wording.DELIMITERS in stored("row 5\n").ask(pattern=pattern).text) is hint


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("timeout OR refused", wording.OPERATORS),
        ('"timeout" AND "row"', wording.OPERATORS),
        ('"row 5"', wording.QUOTES),
        ("'row 5'", wording.QUOTES),
    ],
)
def test_a_search_engine_pattern_that_finds_nothing_gets_a_hint(pattern: str, hint: str) -> None:
    assert hint in stored("row 5\ntimeout\n").ask(pattern=pattern).text


@pytest.mark.parametrize("pattern", ["ORDER", "a or b", "OR", '"', "\"a': ", "it's"])
def test_any_other_pattern_gets_no_hint_about_search_engines(pattern: str) -> None:
    answer = stored("row 5\n").ask(pattern=pattern)

    assert answer.matches == 0
    assert wording.OPERATORS not in answer.text
    assert wording.QUOTES not in answer.text


def test_slashes_that_are_in_the_content_are_found() -> None:
    assert stored("/usr/lib/\n").ask(pattern="/usr/lib/").matches == 1


def test_a_search_that_finds_nothing_in_coloured_lines_says_that_they_are_coloured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coloured = "\x1b[1mdiff --git a b\x1b[m\nplain\n"

    assert stored(coloured).ask(pattern="^diff").matches == 1
    assert wording.COLOURS in stored(coloured).ask(pattern=r"\bdiff").text
    assert wording.COLOURS not in stored(coloured).ask(pattern="diff").text
    assert wording.COLOURS not in stored(coloured).ask(pattern=r"\bdiff", line_range="2-2").text
    monkeypatch.setattr(scan, "WINDOW", 4)
    assert wording.COLOURS in stored(coloured).ask(pattern=r"\bdiff").text


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("0.000009119954979568699", "9.119954979568699e-06"),  # JavaScript, as Python shows it
        ("3.3538627779827747e-9", "3.3538627779827747e-09"),
        ("1.5E10", "15000000000.0"),  # Java
        ("1.23456785E7", "12345678.5"),
        ("1.0E-4", "0.0001"),
        ("2e+20", "2e20"),
        ("7.50E-5", "7.5e-05"),
        ("-1.5E+28", "-1.5e+28"),
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_a_number_is_found_however_the_content_writes_it(content: str, value: str, *, escaped: bool) -> None:
    text = f'{{"n": 1{content.removeprefix("-")}}}\n{{"n": {content}}}\n{{"n": {content}1}}\n'
    answer = stored(text).ask(pattern=re.escape(value) if escaped else value, context_lines=0)
    note, _, row = answer.text.split("\n")[1:]

    assert answer.matches == 1
    assert note == wording.FOUND_NUMBER
    assert row == f'> 2| {{"n": {content}}}'


@pytest.mark.parametrize(
    "pattern", ['"id": "x-14e12"', '"id": "a1e5"', '"id": "0.0000"', '"n": 1e999', '"v": 0.0001[0-9]']
)
def test_text_that_only_looks_like_such_a_number_is_still_found_with_other_spaces(pattern: str) -> None:
    content = '{"id":"x-14e12"} {"id":"a1e5"} {"id":"0.0000"} {"n":1e999} {"v":0.00017}'

    assert stored(content).ask(pattern=pattern).matches == 1
