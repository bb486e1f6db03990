"""The id in a line that cannot be parsed is found wherever it is visible, and no other is taken for it."""

# ruff: noqa: ANN401 - lines are any JSON

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck_mcp.ids import EDGE, id_in

LARGE = json.dumps({"text": '"id":7,\\"id\\":7,}' * EDGE, "id": 7})
LONG = "y" * EDGE * 2

FOUND = {
    "first": '{"jsonrpc":"2.0","id":3,"result":@}',
    "last": '{"result":@,"jsonrpc":"2.0","id":3}',
    "last, after blanks": '{"result" : @ , "id" : 3 } \r',
    "of an error": '{"id":3,"error":@}',
    "before another field": '{"jsonrpc":"2.0","id":3,"trace":"abc","result":@}',
    "after another field": '{"trace":{"id":[4,{"id":5}]},"jsonrpc":"2.0","id":3,"result":@}',
    "between the result and another field": '{"jsonrpc":"2.0","result":@,"id":3,"trace":"a\\"b\\\\"}',
    "before a result that is out of sight": '{"result":@,"x":"' + LONG + '","id":3}',
    "twice, the same": '{"id":3,"result":@,"id":3}',
}
NOT_FOUND = {
    "out of sight": '{"result":@,"id":3,"x":"' + LONG + '"}',
    "of a question": '{"jsonrpc":"2.0","id":3,"method":"roots/list","params":@}',
    "of a question, last": '{"params":@,"method":"roots/list","id":3}',
    "of what may be a question": '{"id":3,"params":@,"x":"' + LONG + '"}',
    "two": '{"id":3,"result":@,"id":4}',
    "no id of ours": '{"id":3.5,"result":@}',
    "a list": '{"id":[3],"result":@}',
    "null": '{"id":null,"result":@}',
    "no escape": '{"id":"\\x","result":@}',
    "of a message in a list": '[{"id":3,"result":@}]',
    "of a message within": '{"result":{"id":3,"result":@}}',
    "no JSON": "oh, @",
}


@pytest.mark.parametrize("line", FOUND.values(), ids=FOUND.keys())
def test_an_id_is_found(line: str) -> None:
    assert id_in(line.replace("@", LARGE).encode()) == 3
    assert id_in(line.replace("@", "{}").encode()) == 3
    assert id_in(line.replace("@", LARGE).replace("3", '"a\\"é"').encode()) == 'a"é'


@pytest.mark.parametrize("line", NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_a_line_that_might_not_be_an_answer_has_no_id(line: str) -> None:
    assert id_in(line.replace("@", LARGE).encode()) is None


TEXTS = st.sampled_from(['"', "\\", '\\"', '"id":7', ',"id":7}', '{"id":7,', "}", "]", "result", LONG, "é"])
WITHIN = st.recursive(
    st.none() | st.integers(-9, 9) | st.lists(TEXTS, max_size=4).map("".join),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "result", "a"]), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(["id", "method", "result", "error", "jsonrpc", 'a"id', "\\"])


@given(st.dictionaries(NAMES, WITHIN), st.booleans())
def test_no_other_id_is_found_whatever_the_message_holds(message: Any, is_ascii: bool) -> None:
    found = id_in(json.dumps(message, ensure_ascii=is_ascii).encode())
    assert found is None or ("method" not in message and found == message["id"])
