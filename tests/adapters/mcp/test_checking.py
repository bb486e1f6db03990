"""The doubts that ``coatcheck mcp check`` raises about a valid ``coatcheck.toml``, and the secrets that it hides."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from coatcheck_mcp.checking import find_doubts, without_secrets

SERVER = '[servers.a]\ncommand = "SERVER"\n'


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        (
            '[servers.a]\ncommand = "no-such"',
            "2: servers.a.command cannot start: there is no such command as no-such in the folders of PATH; write its",
        ),
        (
            '[servers.a]\ncommand = "./server"',
            "2: servers.a.command cannot start: there is no program FOLDER/server",
        ),
        (
            f'[servers.a]\ncommand = "./{"n" * 300}"',
            f"2: servers.a.command cannot start: FOLDER/{'n' * 300}: File name too long",
        ),
        (
            f'{SERVER}cwd = "{"n" * 300}"',
            f"3: servers.a.cwd must be a folder: FOLDER/{'n' * 300}: File name too long",
        ),
        (
            f'{SERVER}cwd = "/"\n[servers.b]\nargs = []\ncommand = "FOLDER/coatcheck.toml"',
            "6: servers.b.command cannot start: FOLDER/coatcheck.toml is not executable",
        ),
        (
            '[servers.a]\ncommand = "npx -y foo"',
            "2: servers.a.command cannot start: 'npx -y foo' is one word: the program is \"npx\" alone, and its",
        ),
        (f'{SERVER}cwd = "away"', "3: servers.a.cwd must be a folder: there is no folder FOLDER/away"),
        (f'{SERVER}cwd = "coatcheck.toml"', "3: servers.a.cwd must be a folder: FOLDER/coatcheck.toml is not a folder"),
        (f'{SERVER}env.B = "${{NOT_SET}}"', "3: servers.a.env names the variable NOT_SET, which is not set here;"),
        (
            '[servers.a]\nurl = "https://${NOT_SET}/mcp"',
            "2: servers.a.url names the variable NOT_SET, which is not set here; set it where the proxy starts",
        ),
        ('[servers.a]\nurl = "${NOT_SET}"', "2: servers.a.url names the variable NOT_SET, which is not set here;"),
        (
            '[servers.a]\nurl = "http://h:${NOT_SET}/"',
            "2: servers.a.url names the variable NOT_SET, which is not set here;",
        ),
        (
            '[servers.a]\nurl = "https://h"\nheaders.A = "${NOT_SET}"',
            "3: servers.a.headers names the variable NOT_SET, which is not set here;",
        ),
        (
            f'{SERVER}args = ["${{HOME}}"]',
            "3: servers.a.args has ${HOME}, which stays as it is: variables are filled in only in env, url and headers",
        ),
        (
            f'storage = "~nobody-here/kept"\n{SERVER}',
            "1: storage is in a home that is not known: name another folder",
        ),
        (
            f'[tools."typo.*"]\nnever = true\n{SERVER}',
            "1: [tools.\"typo.*\"] begins with 'typo', but the file has no [servers.typo], only a",
        ),
    ],
)
def test_an_entry_that_would_fail_here_is_named_with_its_line_and_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, doubt: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "coatcheck.toml"
    file.write_text(text.replace("SERVER", sys.executable).replace("FOLDER", str(tmp_path)))

    (found,) = find_doubts(file, variables={"PATH": "/bin"})

    assert found.startswith(f"{file}:{doubt.replace('FOLDER', str(tmp_path))}")


@pytest.mark.parametrize(
    ("command", "keys"), [("no-such", ["cwd", "command"]), ("./server", ["cwd"]), ("/no/such", ["cwd", "command"])]
)
def test_a_missing_folder_does_not_hide_a_missing_program(tmp_path: Path, command: str, keys: list[str]) -> None:
    file = tmp_path / "coatcheck.toml"
    file.write_text(f'[servers.a]\ncommand = "{command}"\ncwd = "away"\n')

    found = find_doubts(file, variables={"PATH": "/bin"})

    assert [doubt.partition("servers.a.")[2].split()[0] for doubt in found] == keys


def test_a_rule_that_only_a_running_server_can_settle_raises_no_doubt(tmp_path: Path) -> None:
    file = tmp_path / "coatcheck.toml"
    rules = "".join(f'[tools."{name}"]\nnever = true\n' for name in ("*.search", "a*.x", "a.*", "a_search", "search"))
    file.write_text(
        f'{rules}[servers.a]\ncommand = "python"\nenv.PATH = "${{FOLDER}}"\n[servers.b]\nurl = "http://h"\n'
    )

    assert find_doubts(file, variables={"FOLDER": str(Path(sys.executable).parent)}) == []


def test_a_pattern_may_name_the_server_of_the_command_line_in_a_file_without_servers(tmp_path: Path) -> None:
    file = tmp_path / "coatcheck.toml"
    file.write_text('[tools."anything.*"]\nnever = true\n')

    assert find_doubts(file) == []


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
