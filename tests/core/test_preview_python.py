"""Python literals are read as Python reads them, and calls in them are shown as written."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.preview import Previewed, python
from coatcheck.core.preview.notation import scalar
from coatcheck.core.preview.python import preview_python
from coatcheck.core.tokens import ByteCounter

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
LITERALS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


def read(text: str) -> JsonValue | None:
    """Return the value that is outlined, with numbers as shown, or None if the text is not a literal."""
    values: list[JsonValue] = []

    def keep(value: JsonValue, *_: object, **__: object) -> str:
        values.append(as_shown(value))
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python, "fit_outline", keep)
        preview_python(Previewed(text=text, content_type="text/plain", lines=1), 500, ByteCounter())
    return values[0] if values else None


def as_shown(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [as_shown(one) for one in value]
    if isinstance(value, dict):
        return {name: as_shown(one) for name, one in value.items()}
    return value if isinstance(value, str) else scalar(value, 100)


def as_read(value: Any) -> JsonValue:  # noqa: ANN401 - any literal
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return [as_read(one) for one in value]
    if isinstance(value, dict):
        return {str(name): as_read(one) for name, one in value.items()}
    return repr(value)


@given(value=st.lists(LITERALS) | st.dictionaries(st.text(), LITERALS))
def test_a_literal_is_read_as_python_reads_it(value: object) -> None:
    text = repr(value)
    names = [name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Dict) for name in _names_of(each)]
    if r"\x01" in text or len(names) != len(set(names)):
        return  # the reader's own marker, or names that look alike, such as 1 and '1'

    assert read(text) == as_read(value)


def _names_of(each: ast.Dict) -> list[str]:
    return [f"{id(each)} {ast.literal_eval(key)}" for key in each.keys if key is not None]


@pytest.mark.parametrize(
    "call",
    [
        "Decimal('1.50')",
        "datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc)",
        "OrderedDict([('a', 1), ('b', Decimal('2'))])",
        "Row(id=1, tags=['a', 'b'], at=(1, 2))",
        "UUID('12345678-1234-5678-1234-567812345678')",
        "f(g(h(1)))",
        "Row(None, 1)",
    ],
)
def test_a_call_is_shown_as_written(call: str) -> None:
    assert read(f"[(1, {call}, 'one'), (2, None, 'two')]") == [["1", call, "one"], ["2", "None", "two"]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", ["1", "2"]),
        ("({'a'}, {}, ())", [["a"], {}, []]),
        (r"['it\'s', \"x\"]".replace('\\"', '"'), ["it's", "x"]),
        ("['a, (b', \"[c: 'd'\"]", ["a, (b", "[c: 'd'"]),
        ("[(None, 'None', True), (None,)]", [["None", "None", "True"], ["None"]]),
        ("[(1, 'a' ,), {'b' }, (2, )]", [["1", "a"], ["b"], ["2"]]),
    ],
)
def test_brackets_and_quotes_inside_strings_are_part_of_the_strings(text: str, value: JsonValue) -> None:
    assert read(text) == value


@pytest.mark.parametrize("value", ["2", "None", "'b'", "Decimal('2')"])
def test_a_literal_that_repeats_a_name_is_not_read_because_one_value_would_be_hidden(value: str) -> None:
    assert read(f"[{{'a': 1, 'b': {value}}}]") is not None

    assert read(f"[{{'a': 1, 'a': {value}}}]") is None


@pytest.mark.parametrize(
    "text",
    [
        *("[see below]", "[1 2]", "[1, 2", "(a, b)", "{1: 2, '1': 3}", "[f(1, 2]", "[1]]", "[maybe, None]"),
        *(r"['\x01a']", "[NoneType]", "[xNone]", "[NoneNone]", "[None1]", "[1None]", "[None 'a']", "[\x02]"),
    ],
)
def test_text_that_is_not_a_literal_is_not_read(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("number", ["-1234567890123456789012", "12345678901234567890123", "2.50"])
def test_a_number_is_shown_as_written(number: str) -> None:
    rows = ", ".join(f"('name {row}', {number if row == 1 else row})" for row in range(900))
    content = Previewed(text=f"[{rows}]", content_type="text/plain", lines=1)

    assert f"\nname 1|{number}\n" in str(preview_python(content, 400, ByteCounter()))


@pytest.mark.parametrize("budget", [70, 300])
def test_a_key_that_is_a_number_is_not_shown_as_a_string(budget: int) -> None:
    shown = str(preview_python(Previewed.of(str(dict.fromkeys(range(5), "x y" * 300))), budget, ByteCounter()))

    assert "0: " in shown
    assert '"0"' not in shown
