"""Secrets in command lines and addresses are shown to nobody."""

from __future__ import annotations

import time

import pytest

from coatcheck_mcp.redacting import without_secrets


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["npx", "-y", "@scope/server", "/a b"], ["npx", "-y", "@scope/server", "/a b"]),
        (["--api-key", "abc", "--port", "1"], ["--api-key", "***", "--port", "1"]),
        (["--token", "--verbose", "x"], ["--token", "--verbose", "x"]),
        (["--auth=abc", "x"], ["--auth=***", "x"]),
        (["postgres://me:abc@host/base"], ["postgres://***@host/base"]),
        (["https://host/mcp?key=abc"], ["https://host/mcp?***"]),
        (["https://host/sse#abc"], ["https://host/sse#***"]),
        (["-e", "DB_PASSWORD=a-b", "-e", "MODE=fast"], ["-e", "DB_PASSWORD=***", "-e", "MODE=fast"]),
        (
            ["DB_PASSWORD=a b c", "PASSWORD=a;b", "--env=TOKEN=a&b"],
            ["DB_PASSWORD=***", "PASSWORD=***", "--env=TOKEN=***"],
        ),
        (["DB_PASS=a", "PASSPHRASE=a", "--pass", "a"], ["DB_PASS=***", "PASSPHRASE=***", "--pass", "***"]),
        (["--connection_string", "Endpoint=a"], ["--connection_string", "***"]),
        (["postgres://u:p@ss@h/base"], ["postgres://***@h/base"]),
        (["--pat", "a-b", "--path", "/a"], ["--pat", "***", "--path", "/a"]),
        (["Server=h;Password=abc;Port=1"], ["Server=h;Password=***"]),
        (["Server=h;Password = abc def;Port=1"], ["Server=h;Password = ***"]),
        (["-H", "X-Api-Key: abc", "-HX-Api-Key: abc"], ["-H", "***", "-HX-Api-Key: ***"]),
        (["Authorization: Bearer abc"], ["Authorization: ***"]),
        (["postgres://u:p/ss@host/base"], ["postgres://***@host/base"]),
        (["postgres://u:p?ss@host/base", "postgres://u:p#ss@host/base"], ["postgres://***", "postgres://***"]),
        (["https://host:80/mcp?a=b@c", "https://t@host/a@b"], ["https://***", "https://***@host/a@b"]),
        (["https://host/@scope/mcp", "https://keys.host:80/"], ["https://host/@scope/mcp", "https://keys.host:80/"]),
        (["-h", "localhost"], ["-h", "localhost"]),
        (["--token:abc", "x", "auth-server:1.2"], ["--token:***", "x", "auth-server:1.2"]),
        (["sh", "-c", "server --no-auth --api-key  abc"], ["sh", "-c", "server --no-auth --api-key  ***"]),
        (['{"url": "x", "token":"abc"}'], ['{"url": "x", "token":***']),
        (["sv=1&sig=abc", "--cookie", "sid=abc", "PASSCODE=1"], ["sv=1&sig=***", "--cookie", "***", "PASSCODE=***"]),
        (["sk-AbC0123456789AbC0123456789"], ["sk-***"]),
        (["server-with-a-long-name-2025-06-18"], ["server-with-a-long-name-2025-06-18"]),
    ],
)
def test_a_value_that_looks_like_a_secret_is_not_shown(words: list[str], shown: list[str]) -> None:
    assert without_secrets(words) == shown


@pytest.mark.parametrize("piece", ["key", "-token", "a", "token ", "://", "://a:", "?@"])
def test_the_search_for_secrets_in_a_long_word_is_quick(piece: str) -> None:
    start = time.process_time()
    without_secrets([piece * 10_000])
    assert time.process_time() - start < 2.0
