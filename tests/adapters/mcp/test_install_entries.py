"""Install puts ``coatcheck mcp`` in front of one entry and edits nothing else. Uninstall restores every byte."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import InvalidRequest
from coatcheck_mcp.install.entries import HEADER_PREFIX, is_wrapped, unwrap, wrap
from coatcheck_mcp.install.spans import Value, parse
from tests.adapters.mcp.documents import OTHERS, Document, documents, rendered

RUN = ["-E", *(["-P"] if sys.version_info >= (3, 11) else []), "-m", "coatcheck", "mcp"]
OPTIONS = ["--name", "wanted", "--config", "C:\\a b\\é.toml"]


def value_of(text: str, value: Value) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a parsed value as Python's own parser would."""
    if value.members is not None:
        return {member.name: value_of(text, member.value) for member in value.members}
    if value.items is not None:
        return [value_of(text, item) for item in value.items]
    assert text[value.start : value.end] == value.raw
    return json.loads(value.raw)


def entry_of(text: str, table: str = "mcpServers") -> Value:
    member = parse(text).member(table)
    assert member is not None
    entry = member.value.member("wanted")
    assert entry is not None
    return entry.value


def wrapped(entry: str) -> str:
    return wrap(entry, parse(entry), ["--name", "wanted"])


def unwrapped(entry: str) -> str:
    return unwrap(entry, parse(entry))


@given(OTHERS.flatmap(lambda value: st.tuples(st.just(value), rendered(value))))
def test_a_value_is_read_the_same_in_any_layout(drawn: tuple[object, str]) -> None:
    value, text = drawn

    assert value_of(text, parse(text)) == value


@given(documents())
def test_uninstall_restores_the_file_to_the_byte(document: Document) -> None:
    text = wrap(document.text, entry_of(document.text), OPTIONS)

    assert text != document.text
    assert is_wrapped(entry_of(text))
    assert unwrap(text, entry_of(text)) == document.text


@given(documents())
def test_only_the_entry_changes_and_it_still_starts_its_server(document: Document) -> None:
    text = wrap(document.text, entry_of(document.text), OPTIONS)

    after, before = value_of(text, parse(text)), document.values
    new, old = after["mcpServers"].pop("wanted"), before["mcpServers"].pop("wanted")
    assert after == before
    assert list(after) == list(before)
    variables = {name: f"{HEADER_PREFIX}{name.replace('-', '_')}" for name in old.get("headers", {})}
    named = [word for name, variable in variables.items() for word in ("--header", f"{name}: ${variable}")]
    behind = [*named, "--url", old["url"]] if "url" in old else ["--", old["command"], *old.get("args", [])]
    assert (new["command"], new["args"]) == (sys.executable, [*RUN, *OPTIONS, *behind])
    assert "url" not in new
    assert new.get("type", "stdio") == "stdio"
    if headers := old.get("headers"):
        assert new["env"] == {variables[name]: value for name, value in headers.items()}
    elif "env" in old:
        assert new["env"] == old["env"]
    kept = {*old, *new} - {"command", "args", "url", "type", "env", "headers"}
    assert {key: new[key] for key in kept} == {key: old[key] for key in kept}


@given(documents(), st.data())
def test_an_entry_that_an_editor_has_reformatted_is_still_unwrapped(document: Document, data: st.DataObject) -> None:
    text = wrap(document.text, entry_of(document.text), OPTIONS)
    anew = data.draw(rendered(value_of(text, parse(text))))

    after = unwrap(anew, entry_of(anew))

    expected = document.values
    if expected["mcpServers"]["wanted"].get("type") == "streamable-http":
        expected["mcpServers"]["wanted"]["type"] = "http"  # it may have been either
    if expected["mcpServers"]["wanted"].get("args", []) == [] and "command" in expected["mcpServers"]["wanted"]:
        expected["mcpServers"]["wanted"].pop("args", None)  # it may have been missing or []
        found = value_of(after, parse(after))
        assert found["mcpServers"]["wanted"].pop("args", []) == []
        assert found == expected
    else:
        assert value_of(after, parse(after)) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"command":"x"}', '{"command":"PY", "args": [ RUN, "--", "x"]}'),
        ('{"command": "x", "args": []}', '{"command": "PY", "args": [RUN, "--", "x"]}'),
        ('{"command":"x","args":[]}', '{"command":"PY","args":[RUN, "--", "x"]}'),
        ('{"command":"x","args":["y"]}', '{"command":"PY","args":[RUN, "--", "x", "y"]}'),
        (
            '{"args": [\n  "y" // why\n], "command": "x"}',
            '{"args": [RUN, "--", "x",\n  "y" // why\n], "command": "PY"}',
        ),
        ('{"command":"\\u0078"}', '{"command":"PY", "args": [ RUN, "--", "\\u0078"]}'),
        ('{"url" : "http://h"}', '{"command" : "PY", "args": [RUN, "--url", "http://h"]}'),
        ('{"url": "http://h/a//b@c"}', '{"command": "PY", "args": [RUN, "--url", "http://h/a//b@c"]}'),
        (
            '{"type": "http", "url": "http://h"}',
            '{"type": "stdio", "command": "PY", "args": [RUN, "--url", "http://h"]}',
        ),
        (
            '{"type": "streamable-http", "url": "http://h"}',
            '{"type": "stdio", "command": "PY", "args": [ RUN, "--url", "http://h"]}',
        ),
        (
            '{"url": "u", "headers": {"X-Y": "z"}}',
            '{"command": "PY", "args": [RUN, HEADER, "--url", "u"], "env": {"COATCHECK_HEADER_X_Y": "z"}}',
        ),
        ('{"url": "http://h", "headers": {}}', '{"command": "PY", "args": [RUN, "--url", "http://h"], "headers": {}}'),
    ],
)
def test_wrapping_changes_the_text_of_an_entry_and_unwrapping_restores_it(before: str, after: str) -> None:
    run = ", ".join(f'"{word}"' for word in (*RUN, "--name", "wanted"))
    expected = after.replace('"PY"', json.dumps(sys.executable)).replace("RUN", run)
    expected = expected.replace("HEADER,", '"--header", "X-Y: $COATCHECK_HEADER_X_Y",')

    assert wrapped(before) == expected
    assert unwrapped(expected) == before


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("[]", "it is not an object"),
        ('"npx"', "it is not an object"),
        ("{}", "it needs either command or url"),
        ('{"command": "x", "url": "y"}', "it needs either command or url"),
        ('{"command": ["x"]}', "its command is not a string"),
        ('{"command": ""}', "its command is not a string"),
        ('{"command": "x", "args": "y"}', "its args are not an array of strings"),
        ('{"command": "x", "args": ["y", 1]}', "its args are not an array of strings"),
        ('{"command": "x", "type": "http"}', 'it has a command, and its type is not "stdio"'),
        ('{"command": "x", "command": "y"}', "'command' is there 2 times"),
        ('{"url": 1}', "its url is not a string"),
        ('{"url": "u", "args": []}', "it has args next to it"),
        ('{"url": "u", "type": "sse"}', 'its type must be one of "http", "streamable-http"'),
        ('{"url": "unix:///tmp/x.sock"}', "its url begins with unix://"),
        ('{"url": "PIPE:///pipe/x"}', "the proxy reaches http:// and https:// only"),
        (
            '{"url": "https://h/mcp/?apiKey=s3cret"}',
            "its url has a query, a fragment or a login, which",
        ),
        ('{"url": "https://h/mcp#token=s3cret"}', "its url has a query, a fragment or a login, which"),
        ('{"url": "https://user:s3cret@h/mcp"}', "name it in a coatcheck.toml as [servers.NAME]"),
        ('{"url": "u", "oauth": {}}', "the client logs in with its oauth"),
        ('{"url": "u", "headersHelper": "x"}', "the client logs in with its headersHelper"),
        ('{"url": "u", "headers": []}', "its headers are not an object of strings"),
        ('{"url": "u", "headers": {"A": 1}}', "its headers are not an object of strings"),
        ('{"url": "u", "headers": {"A": "1"}, "env": {}}', "it has both headers and env"),
        ('{"url": "u", "headers": {"A_B": "1"}}', "the header 'A_B' has characters other"),
    ],
)
def test_an_entry_that_install_cannot_wrap_is_refused(entry: str, why: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        wrapped(entry)

    assert why in str(error.value)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('{"command": "x"}', "does not go through coatcheck"),
        ('{"command": "p", "args": ["-m", "coatcheck", "mcp"]}', "its args are not those that install writes"),
        ('{"command": "p", "args": ["-m", "coatcheck", "mcp", "--"]}', "its args are not those"),
        ('{"command": "p", "args": ["-m", "coatcheck", "mcp", "--http", "1", "--", "x"]}', "its args are not those"),
        ('{"command": "p", "args": ["-m", "coatcheck", "mcp", "--url", "u", "x"]}', "its args are not those"),
        ('{"command": "coatcheck", "args": ["mcp", "--header", "A: b", "--url", "u"]}', "its args are not those"),
        (
            '{"args": ["mcp", "--url", "u"], "env": {"COATCHECK_HEADER_A": "", "B": ""}, "command": "coatcheck"}',
            "its env has variables next to the headers",
        ),
    ],
)
def test_an_entry_that_install_did_not_write_is_not_unwrapped(entry: str, why: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        unwrapped(entry)

    assert why in str(error.value)


@pytest.mark.parametrize(
    ("entry", "goes_through"),
    [
        ('{"command": "/venv/bin/coatcheck", "args": ["mcp", "--", "x"]}', True),
        ('{"command": "C:\\\\venv\\\\coatcheck.exe", "args": ["mcp", "--", "x"]}', True),
        ('{"command": "python", "args": ["-P", "-m", "coatcheck", "mcp", "--", "x"]}', True),
        ('{"command": "python", "args": ["-E", "-m", "coatcheck", "mcp", "--", "x"]}', True),
        ('{"command": "python", "args": ["-E", "-P", "-m", "coatcheck", "mcp", "--", "x"]}', True),
        ('{"command": "python", "args": ["-E", "-P"]}', False),
        ('{"command": "python", "args": ["-m", "coatcheck", "put"]}', False),
        ('{"command": "coatcheck", "args": ["put"]}', False),
        ('{"command": "coatcheck", "args": []}', False),
        ('{"url": "http://h"}', False),
        ('{"command": 1, "args": [1]}', False),
    ],
)
def test_a_handwritten_entry_that_goes_through_coatcheck_is_recognised(entry: str, goes_through: bool) -> None:
    assert is_wrapped(parse(entry)) is goes_through


def test_a_handwritten_entry_is_unwrapped_too() -> None:
    assert (
        unwrapped('{"command": "/bin/coatcheck", "args": ["mcp", "--", "x", "y"]}') == '{"command": "x", "args": ["y"]}'
    )


@pytest.mark.parametrize(
    "entry",
    [
        '{"command": "py", "args": [ // one\n "-m", "coatcheck", "mcp", /* two */ "--", // three\n "npx" /* four */]}',
        '{"command": "py", "args": ["-m", "coatcheck", "mcp", "--", "npx" /* one */, // two\n "-y"]} // three',
        '{"command": "py", // one\n "args": ["-m", "coatcheck", "mcp", "--url", "http://h"], // two\n "env": {}}',
        '{"command": "py", // one\n "args": ["-m", "coatcheck", "mcp", "--url", "http://h"] // two\n}',
        '{"command": "py" /* one */, /* two */ "args": ["-m", "coatcheck", "mcp", "--url", "http://h"] /* three */ }',
    ],
)
def test_comments_among_the_arguments_stay(entry: str) -> None:
    after = unwrap(entry, parse(entry))

    parse(after)
    assert "coatcheck" not in after
    assert [word for word in ("one", "two", "three", "four") if word in after] == [
        word for word in ("one", "two", "three", "four") if word in entry
    ]


@pytest.mark.parametrize("program", ["", None])
def test_without_a_program_to_start_nothing_is_written(program: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program)

    with pytest.raises(InvalidRequest, match="does not say which program it is"):
        wrapped('{"command": "x"}')


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "1: this is not JSON: a value should come here"),
        ("{} {}", "1: this is not JSON: nothing more should come here"),
        ('{"a": 1\n"b": 2}', "2: this is not JSON: a comma or } should come here"),
        ("{'a': 1}", "1: this is not JSON: a key in double quotes"),
        ("{a: 1}", "a key in double quotes"),
        ('{"a" 1}', "a colon should come here"),
        ('{"a": }', "a value should come here"),
        ('{"a": 1,,}', "a key in double quotes"),
        ("[1,,2]", "a value should come here"),
        ("[,]", "a value should come here"),
        ("[1", "a comma or ] should come here"),
        ('{"a": "x', "a value should come here"),
        ('["a\nb"]', "a value should come here"),
        ('["\\x"]', "a value should come here"),
        ("[01]", "a value should come here"),
        ("[NaN]", "a value should come here"),
        ("[trues]", "a value should come here"),
        ("[1] /* open", "nothing more should come here"),
        ("[" * 200, "more than 100 levels"),
    ],
)
def test_text_that_is_not_json_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        parse(text)

    assert complaint in str(error.value)
