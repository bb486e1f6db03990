"""Random configuration files of clients, with any layout, order, comments and trailing commas that editors allow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

GAPS = st.sampled_from(
    [
        "",
        "",
        "",
        " ",
        "  ",
        "\n",
        "\r\n\t",
        "\n    ",
        " // a comment\n",
        '/* "args": [ */',
        "//\r\n",
        " /**/ ",
        "\n\n  ",
    ]
)
WORDS = st.one_of(
    st.sampled_from(
        ["", "npx", "-y", "--", "--url", "mcp", "coatcheck", "//", "C:\\x\\y.exe", 'a"b', "é\u2028", "${TOKEN}"]
    ),
    st.text(max_size=8),
)
URLS = st.one_of(
    st.sampled_from(["https://example.com/mcp", "HTTP://127.0.0.1:8000/a b"]),
    WORDS.filter(lambda word: bool(word) and "://" not in word and not {"?", "#"}.intersection(word)),
)
"""URLs that ``install`` accepts: it refuses another scheme, a query, a fragment or a login."""

OTHERS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
OTHER_KEYS = st.sampled_from(["cwd", "disabled", "timeout", "autoApprove", "envFile", "x y"])
HEADERS = st.from_regex(r"[A-Za-z0-9-]{1,12}", fullmatch=True)


@dataclass(frozen=True)
class Document:
    """A file with a server ``wanted`` in it."""

    text: str
    values: Any


@st.composite
def rendered(draw: st.DrawFn, value: object) -> str:
    """Return JSON for a value, with random layout between its tokens."""

    def gap() -> str:
        return draw(GAPS)

    if isinstance(value, dict):
        parts = [
            f"{gap()}{_string(draw, key)}{gap()}:{gap()}{draw(rendered(item))}{gap()}" for key, item in value.items()
        ]
        return _within("{", parts, "}", draw)
    if isinstance(value, list):
        return _within("[", [f"{gap()}{draw(rendered(item))}{gap()}" for item in value], "]", draw)
    return _string(draw, value) if isinstance(value, str) else json.dumps(value)


def _string(draw: st.DrawFn, text: str) -> str:
    return json.dumps(text, ensure_ascii=draw(st.booleans()))


def _within(opening: str, parts: list[str], closing: str, draw: st.DrawFn) -> str:
    ends_in_a_comma = draw(st.booleans())
    trailing = f",{draw(GAPS)}" if parts and ends_in_a_comma else ""
    return f"{opening}{','.join(parts)}{trailing}{closing}" if parts else f"{opening}{draw(GAPS)}{closing}"


@st.composite
def programs(draw: st.DrawFn) -> dict[str, object]:
    """Return an entry that starts a program."""
    entry: dict[str, object] = {"command": draw(WORDS.filter(bool))}
    if draw(st.booleans()):
        entry["args"] = draw(st.lists(WORDS, max_size=4))
    if draw(st.booleans()):
        entry["type"] = "stdio"
    if draw(st.booleans()):
        entry["env"] = draw(st.dictionaries(WORDS, WORDS, max_size=3))
    return _shuffled(draw, {**draw(st.dictionaries(OTHER_KEYS, OTHERS, max_size=3)), **entry})


@st.composite
def addresses(draw: st.DrawFn) -> dict[str, object]:
    """Return an entry that names a URL."""
    entry: dict[str, object] = {"url": draw(URLS)}
    if draw(st.booleans()):
        entry["type"] = draw(st.sampled_from(["http", "streamable-http"]))
    if draw(st.booleans()):
        entry["headers"] = draw(st.dictionaries(HEADERS, WORDS, max_size=3))
    return _shuffled(draw, {**draw(st.dictionaries(OTHER_KEYS, OTHERS, max_size=3)), **entry})


def _shuffled(draw: st.DrawFn, entry: Mapping[str, object]) -> dict[str, object]:
    return dict(draw(st.permutations(list(entry.items()))))


@st.composite
def documents(draw: st.DrawFn, table: str = "mcpServers") -> Document:
    """Return a file with some servers, one of them named ``wanted``, and other keys."""
    servers = draw(st.dictionaries(WORDS.filter(lambda name: name != "wanted"), OTHERS, max_size=2))
    servers["wanted"] = draw(programs() | addresses())
    whole = draw(st.dictionaries(WORDS.filter(lambda key: key != table), OTHERS, max_size=2))
    values = _shuffled(draw, {**whole, table: _shuffled(draw, servers)})
    text = f"{draw(st.sampled_from(['', chr(0xFEFF)]))}{draw(GAPS)}{draw(rendered(values))}{draw(GAPS)}"
    return Document(text, values)
