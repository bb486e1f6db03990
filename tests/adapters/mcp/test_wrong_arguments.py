"""Wrong arguments are refused when a proxy is made, and not at each call."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pytest

from coatcheck import InMemoryStorage, InvalidRequest
from coatcheck_mcp import OffloadMiddleware, Proxy, command_upstream, load, url_upstream

UPSTREAM = command_upstream(["a-server"])


@pytest.mark.parametrize("wrong", [None, "uvx my-server", ["uvx", "my-server"], {"a": None}])
def test_an_argument_that_is_not_a_server_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^a Proxy needs a server, such as command_upstream\("):
        Proxy(wrong, InMemoryStorage())


@pytest.mark.parametrize(
    "wrong",
    ["https://me:s3cret@example.com/mcp", {"a": {"command": "a-server", "env": {"API_KEY": "s3cret"}}}],
)
def test_a_refused_server_is_not_shown_as_it_may_hold_a_secret(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r", not a value of type (?:str|dict)$") as raised:
        Proxy(wrong, InMemoryStorage())
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("wrong", ["", 1])
def test_a_name_that_no_server_can_have_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^the name of a server must be a non-empty str, not "):
        Proxy({wrong: UPSTREAM}, InMemoryStorage())


@pytest.mark.parametrize("wrong", ["", 1, (), print])
def test_an_argument_that_is_not_a_scope_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^scope must be "):
        Proxy(UPSTREAM, InMemoryStorage(), scope=wrong)


def test_a_flag_that_is_no_boolean_is_refused() -> None:
    wrong: Any = "false"
    for make in (partial(Proxy, UPSTREAM), OffloadMiddleware):
        with pytest.raises(InvalidRequest, match=r"^native_media must be True or False, not 'false'"):
            make(InMemoryStorage(), native_media=wrong)


@pytest.mark.parametrize("name", ["identity_of", "policy_of", "on_tools"])
def test_an_argument_that_is_not_callable_is_refused_and_none_is_the_default(name: str) -> None:
    wrong: dict[str, Any] = {name: "never"}
    with pytest.raises(InvalidRequest, match=f"^{name} must be a callable or None, not 'never'"):
        Proxy(UPSTREAM, InMemoryStorage(), **wrong)
    none: dict[str, Any] = {name: None}
    Proxy(UPSTREAM, InMemoryStorage(), **none)


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ("uvx my-server", "not a value of type str"),
        ([], "not an empty one"),
        ([""], "without a program"),
        (["uvx", 1], "with a value of type int"),
        (None, "not a value of type NoneType"),
    ],
)
def test_an_argument_that_is_not_a_command_is_refused(wrong: Any, shown: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=rf"^a command must be .*, such as \['uvx', 'my-server'\], {shown}$"):
        command_upstream(wrong)


@pytest.mark.parametrize("wrong", [None, 1, b"https://example.com/mcp"])
def test_an_argument_that_is_not_a_url_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"^the URL must be one like https://example.com/mcp, not a value of type "):
        url_upstream(wrong)


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"max_bytes": 0}, "max_bytes must be a whole number above 0, not 0"),
        ({"max_bytes": "1GB"}, "max_bytes must be a whole number above 0, not '1GB'"),
        ({"start_seconds": "60"}, "start_seconds must be a number above 0, not '60'"),
        ({"start_seconds": float("nan")}, "start_seconds must be a number above 0, not nan"),
    ],
)
def test_a_limit_of_a_server_that_is_no_number_above_zero_is_refused(wrong: Any, shown: str) -> None:  # noqa: ANN401
    for make in (partial(command_upstream, ["a-server"]), partial(url_upstream, "https://example.com/mcp")):
        with pytest.raises(InvalidRequest, match=f"^{shown}$"):
            make(**wrong)


def test_logging_in_is_a_boolean() -> None:
    wrong: Any = "false"
    with pytest.raises(InvalidRequest, match=r"^oauth must be True or False, not 'false'"):
        url_upstream("https://example.com/mcp", oauth=wrong)


def test_the_signature_of_load_shows_no_variable_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_TEST_WORD", "a word")

    shown = str(inspect.signature(load))

    assert "a word" not in shown
    assert "os.environ" in shown
    given = inspect.signature(load).parameters["variables"].default
    assert given["COATCHECK_TEST_WORD"] == "a word"
    assert {"COATCHECK_TEST_WORD"} <= set(given)
