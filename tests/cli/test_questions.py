"""The questions of the demo: the answer comes from what was retrieved, and changes with the data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import ToolMessage

from coatcheck.cli.demo import Demo
from coatcheck.cli.demo_builtin import FindCharacter, FindClass, standard_library, unicode_characters
from coatcheck.cli.demo_input import FindRecord, FindWord, input_case
from coatcheck.cli.demo_model import ScriptedModel
from coatcheck.cli.demo_script import Case, NotFound, Script, first_match, query_result, states
from coatcheck.cli.failure import CannotRun
from tests.cli.running import LIBRARY, write

if TYPE_CHECKING:
    from pathlib import Path

FILLING = {f"module{number:03}.py": "value = 1\n" * 200 for number in range(20)}


def answer(script: Script, result: str, storage: Path) -> str:
    """Return what the agent answers when its tool returns ``result``, if that is what the data says."""
    case = Case(title="", tool_name="read", tool_description="Read.", result=result, script=script)
    part = Demo(storage, max_result_tokens=1_000).run(case)
    assert part.outcome == "offloaded"
    assert part.verified
    return part.answer


def test_the_location_of_a_class_is_read_from_the_library(tmp_path: Path) -> None:
    library = standard_library(write(tmp_path / "library", {**FILLING, **LIBRARY}))

    found = answer(FindClass("Wanted"), library, tmp_path)

    assert found == "json/decoder.py, line 4; its docstring lists msg, pos."


def test_a_class_that_moved_is_found_where_it_is_now(tmp_path: Path) -> None:
    moved = {"zip/inside.py": "#\n" * 30 + LIBRARY["json/decoder.py"].replace("    msg: a text\n", "")}
    library = standard_library(write(tmp_path / "library", {**FILLING, **moved}))

    found = answer(FindClass("Wanted"), library, tmp_path)

    assert found == "zip/inside.py, line 34; its docstring lists pos."


def test_the_code_of_a_character_is_read_from_the_records(tmp_path: Path) -> None:
    found = answer(FindCharacter("CHECK MARK"), unicode_characters(), tmp_path)

    assert found.startswith("CHECK MARK is U+2713, in category So, which has ")


def test_another_character_table_gives_another_code(tmp_path: Path) -> None:
    records = [
        {"code": f"U+F{number:04}", "character": "x", "name": f"NAME {number}", "category": f"C{number % 7}"}
        for number in range(1_000)
    ]

    found = answer(FindCharacter("NAME 500"), json.dumps(records), tmp_path)

    assert found == "NAME 500 is U+F0500, in category C3, which has 143 characters."


def test_tests_and_installed_packages_are_not_part_of_the_library(tmp_path: Path) -> None:
    files = {
        "one.py": "1\n",
        "test/two.py": "2\n",
        "a/site-packages/three.py": "3\n",
        "data.txt": "4\n",
        "a/five.py": "5",
    }

    assert standard_library(write(tmp_path, files)) == "==== a/five.py ====\n5\n==== one.py ====\n1\n"


def test_a_dangling_link_is_not_part_of_the_library(tmp_path: Path) -> None:
    """A Python unpacked elsewhere has such links: Debian's ``sitecustomize.py`` is a link to ``/etc``."""
    folder = write(tmp_path, {"one.py": "1\n"})
    (folder / "sitecustomize.py").symlink_to(tmp_path / "missing.py")

    assert standard_library(folder) == "==== one.py ====\n1\n"


def test_a_folder_without_python_is_not_a_library(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="--input FILE"):
        standard_library(tmp_path)


def test_data_without_the_answer_is_reported(tmp_path: Path) -> None:
    case = Case(title="", tool_name="read", tool_description="", result="text", script=FindWord("missing"))

    with pytest.raises(CannotRun, match="missing"):
        Demo(tmp_path, max_result_tokens=1_000).run(case)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"name": "Ada Lovelace"}], FindRecord("Ada Lovelace")),
        ({"people": [{"name": "Ada Lovelace"}], "more": []}, FindRecord("Ada Lovelace", "people")),
        ({"few": [{"n": "abcd"}], "many": [{"n": "efgh"}, {"n": "ijkl"}]}, FindRecord("ijkl", "many")),
        ([{"name": "same"}, {"name": "same"}], FindWord('{"name":')),
        ([{"name": 'needs "escapes"'}], FindWord("escapes")),
        ([{"a`b": "plain"}], FindWord("plain")),
        ([{"name": "large", "rest": "x " * 1_000}], FindWord("large")),
        ([["no", "records"]], FindWord("records")),
        ([], FindWord("[]")),
        ("text", FindWord("text")),
    ],
)
def test_the_question_about_json_is_about_a_record_if_one_is_suitable(
    content: object, expected: Script, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text(json.dumps(content))

    assert input_case(tmp_path / "file").script == expected


def test_an_error_in_the_scripted_model_is_raised_as_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FindWord, "first_call", lambda _: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        answer(FindWord("word"), "a word and more\n" * 5_000, tmp_path)


def test_the_scripted_model_gives_up_if_no_reference_is_shown() -> None:
    model = ScriptedModel(script=FindWord("word"), tool_name="read")

    reply = model.invoke([ToolMessage("Tool result offloaded. [Offloaded: 1 block]", tool_call_id="1")])

    assert reply.text == "I could not find the answer in what I was given."


def test_json_that_nests_too_deeply_is_treated_as_text(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("[" * 200_000 + '"middle"' + "]" * 200_000)

    assert input_case(tmp_path / "file").script == FindWord("middle")


@pytest.mark.parametrize(
    ("script", "first", "second"),
    [
        (FindClass("Wanted"), "> 7| class Wanted:", "  8| other lines"),
        (FindClass("Wanted"), "> 7| class Wanted:", "  7| class Wanted:"),
        (FindClass("Wanted"), "No matches found", "  7| class Wanted:"),
        (
            FindCharacter("SNOWMAN"),
            "> 1| nothing of the kind",
            "[Result of query 'x': number, 1 characters]\n1\n[End of result]",
        ),
        (FindWord("word"), "> 7| something else", "  7| something else"),
        (FindRecord("value"), "> 1| ", "[Result of query 'x': text, 1 characters]\nplain\n[End of result]"),
        (FindRecord("value"), "> 1| ", "[Result of query 'x': number, 1 characters]\n1\n[End of result]"),
        (FindRecord("value"), "> 1| ", "too much work"),
    ],
)
def test_an_answer_without_the_requested_data_yields_no_facts(script: Script, first: str, second: str) -> None:
    with pytest.raises(NotFound):
        script.facts(first, second)


@pytest.mark.parametrize(
    "script", [FindClass("Wanted"), FindCharacter("SNOWMAN"), FindWord("word"), FindRecord("value")]
)
def test_without_a_match_there_is_no_second_call(script: Script) -> None:
    with pytest.raises(NotFound):
        script.second_call("No matches found for pattern")


def test_a_value_that_is_not_in_a_field_leads_to_no_second_call() -> None:
    with pytest.raises(NotFound):
        FindRecord("value").second_call('> 1| ["value"]')


@pytest.mark.parametrize(
    ("script", "whole"),
    [
        (FindClass("Wanted"), "no class"),
        (FindCharacter("SNOWMAN"), "[]"),
        (FindRecord("value"), "[{}]"),
        (FindWord("word"), "none"),
    ],
)
def test_data_without_the_requested_value_yields_no_facts(script: Script, whole: str) -> None:
    with pytest.raises(NotFound):
        script.facts_in(whole)


@pytest.mark.parametrize(
    ("said", "fact", "expected"),
    [
        ("It is on line 1,234.", "1234", True),
        ("It is on line 12345.", "1234", False),
        ("It is U+2603, category So", "U+2603", True),
        ("It is U+26030", "U+2603", False),
        ("a quote\n  over two lines", "quote over two", True),
        ('it says {"a": 1} there', '{"a": 1}', True),
        ("the Sodium", "So", False),
    ],
)
def test_a_fact_is_stated_as_a_whole_word(said: str, fact: str, expected: bool) -> None:
    assert states(said, fact) == expected


def test_a_match_says_where_it_is() -> None:
    assert first_match("[1 match]\n\n>    12| text").line == 12
    assert first_match("> 3 [characters 1,200-1,300]| …text…").start == 1_200


def test_a_query_result_may_span_many_lines() -> None:
    assert query_result("[Result of query '[0]': object]\n{\n\"a\": [1]\n}\n[End of result]") == {"a": [1]}
