"""Random tool results of every kind that previews know, with empty and deep containers, and mixtures of kinds."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue

_NAMES = st.sampled_from(["id", "name", "a b", "", "0", "städte", "x" * 70, '"', "items"])
_TEXTS = st.sampled_from(
    ["", "a", "word " * 60, "x" * 500, "line\nline\n", "<b>", "\ud800", "汉字" * 40, "a, b; c|d", "'"]
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False), _TEXTS)
_EMPTY: st.SearchStrategy[JsonValue] = st.sampled_from(["", None]) | st.builds(list) | st.builds(dict)


def _deeper(value: JsonValue, levels: int, name: str | None) -> JsonValue:
    for _ in range(levels):
        value = [value] if name is None else {name: value}
    return value


def _wide(values: list[JsonValue], times: int) -> JsonValue:
    return {f"field_{number}": values[number % len(values)] for number in range(times)}


def _contained(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    return st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(_NAMES, inner, max_size=5),
        st.builds(_deeper, inner, st.sampled_from([1, 13, 21, 60, 300]), st.none() | _NAMES),
        st.builds(lambda value, times: [value] * times, inner, st.integers(0, 40)),
        st.builds(_wide, st.lists(inner | _EMPTY | _TEXTS, min_size=1, max_size=4), st.integers(0, 60)),
    )


def json_results() -> st.SearchStrategy[JsonValue]:
    """Return nested JSON values whose containers may be empty, deep, or repeated many times."""
    return st.recursive(_SCALARS | _EMPTY, _contained, max_leaves=12)


def wide_objects() -> st.SearchStrategy[JsonValue]:
    """Return objects with many members, some long and some empty, so that some budgets have no room for a member."""
    members = st.one_of(_EMPTY, st.sampled_from(["word " * 60, "x" * 500, 7]), json_results())
    return st.builds(_wide, st.lists(members, min_size=2, max_size=4), st.integers(20, 80))


def _as_xml(value: JsonValue, name: str = "item") -> str:
    if isinstance(value, dict):
        inner = "".join(_as_xml(child, key if key.isidentifier() else "item") for key, child in value.items())
    elif isinstance(value, list):
        inner = "".join(_as_xml(child) for child in value)
    else:
        inner = str(value).replace("&", "&amp;").replace("<", "&lt;")
    return f"<{name}>{inner}</{name}>" if inner else f'<{name} empty="" />'


_CELLS = st.sampled_from(["", "name", "12", '"a, b"', '"', "2026-01-01", "x" * 300, "a\tb", "汉"])
_ROWS = st.lists(_CELLS, min_size=1, max_size=6)
_LOG_LINES = st.sampled_from(
    [
        "2026-01-01 10:00:00 INFO started",
        "2026-01-01 10:00:00 ERROR failed 3",
        "Traceback (most recent call last):",
        "\x1b[31mred\x1b[0m\rover",
        "src/a.py:12: error: wrong",
        "",
        " " * 300,
    ]
)
_TAGS = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<a href=x>",
        "</a>",
        "<table><tr><td>",
        "</table>",
        "<!-- c -->",
        "<svg>",
        "<select>",
    ]
)
_MARKUP = st.lists(_TAGS | st.sampled_from(["text ", "&amp;", "<![CDATA[", "<script>", "</script>", "<"]), max_size=40)


_MATCHES = st.builds(
    lambda path, number, line: f"{path}:{number}:{line}",
    st.sampled_from(["src/a.py", "a long/path to/b.txt", "C:\\c.md", "d.汉"]),
    st.integers(0, 10_000),
    _LOG_LINES,
)


def _csv(header: list[str], rows: list[list[str]], parting: str, times: int) -> str:
    return "\n".join(parting.join(row) for row in [header, *rows * times])


def as_diff(old: list[str], new: list[str], files: int) -> str:
    """Return what ``diff -u`` prints of two files, as many times as there are ``files``."""
    names = [(f"a/part_{number}.txt", f"b/part_{number}.txt") for number in range(files)]
    diffs = (difflib.unified_diff(old, new, *pair, lineterm="") for pair in names)
    return "".join(f"{line}\n" for diff in diffs for line in diff)


def results_of_every_kind() -> st.SearchStrategy[str]:
    """Return JSON, JSON Lines, Python literals, XML, HTML, CSV, diffs, logs and matches.

    Each may be wrapped as the output of a command, or joined to another. A test fails if it never draws some kind.
    """
    values = json_results()
    kinds = st.one_of(
        values.map(json.dumps),
        st.builds(lambda value, indent: json.dumps(value, indent=indent), values, st.sampled_from([1, 4])),
        st.builds(
            lambda value, indent, times: f"{json.dumps(value, indent=indent)}\n" * times,
            values,
            st.sampled_from([None, 2]),
            st.integers(0, 40),
        ),
        values.map(repr),
        values.map(lambda value: repr((value, {"set": value}, ()))),
        values.map(_as_xml),
        st.builds(lambda parts, times: f"<html><body>{''.join(parts) * times}", _MARKUP, st.integers(0, 60)),
        st.builds(_csv, _ROWS, st.lists(_ROWS, max_size=8), st.sampled_from(",;|\t"), st.integers(1, 30)),
        st.builds(as_diff, st.lists(_LOG_LINES, max_size=5), st.lists(_LOG_LINES, max_size=5), st.integers(1, 20)),
        st.builds(lambda lines, n: "\n".join(lines * n), st.lists(_LOG_LINES, max_size=12), st.integers(1, 40)),
        st.builds(
            lambda lines, n: "\n".join(lines * n), st.lists(_MATCHES, min_size=5, max_size=12), st.integers(1, 40)
        ),
    )
    kinds |= kinds.map(lambda text: f"<returncode>0</returncode>\n<output>\n{text}\n</output>")
    return kinds | st.builds(
        lambda first, parting, last: f"{first}{parting}{last}", kinds, _TEXTS | st.just("\n"), kinds
    )
