"""The doubts that ``coatcheck mcp check`` raises about a valid ``coatcheck.toml``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coatcheck_mcp.checking import find_doubts

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
            f'storage = "s3://bucket/x"\nmax_age = "7d"\nmax_bytes = "unlimited"\n{SERVER}',
            "2: max_age has no effect, because the storage is not a folder: run coatcheck sweep for it",
        ),
        (
            f'[tools."typo.*"]\nnever = true\n{SERVER}',
            "1: [tools.\"typo.*\"] begins with 'typo', but the file has no [servers.typo], only a",
        ),
    ],
)
def test_an_entry_that_would_fail_here_is_reported_with_its_line_and_key(
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
