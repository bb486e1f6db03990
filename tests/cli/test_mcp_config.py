"""``coatcheck mcp check``, ``install``, ``uninstall`` and ``status``, run from the command line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage, InvalidRequest, Offloader, TextBlock
from coatcheck.cli.failure import CannotRun
from coatcheck.cli.location import storage_at
from tests.cli.running import answered, run

if TYPE_CHECKING:
    from pathlib import Path

CURSOR = """{ // mine
  "mcpServers": {"issues": {"command": "npx", "args": ["-y", "issues"]}, "clock": {"command": "clock"}}
}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Act as a user with Cursor and the extra, in a project without files of its own."""
    monkeypatch.setitem(sys.modules, "coatcheck_mcp.link", ModuleType("coatcheck_mcp.link"))
    (tmp_path / "home/.cursor").mkdir(parents=True)
    (tmp_path / "home/.cursor/mcp.json").write_text(CURSOR)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def file(home: Path) -> Path:
    return home / ".cursor/mcp.json"


def test_install_says_what_it_did_and_uninstall_restores_every_byte(file: Path) -> None:
    installed = run("mcp", "install", "cursor", "issues")

    assert installed.exit_code == 0
    assert f"'issues' goes through coatcheck now, in {file} (user).\nRestart Cursor, or reload" in installed.stdout
    entry = json.loads(file.read_text().replace("// mine", ""))["mcpServers"]["issues"]
    assert entry["command"] == sys.executable
    assert entry["args"][-6:] == ["--name", "issues", "--", "npx", "-y", "issues"]

    uninstalled = run("mcp", "uninstall", "cursor", "issues")

    assert f"'issues' is as it was before, in {file} (user).\n" in uninstalled.stdout
    assert "stored" not in uninstalled.stdout, "nothing was"
    assert file.read_text() == CURSOR


def test_uninstall_says_where_stored_content_stays(file: Path) -> None:
    run("mcp", "install", "cursor", "issues")
    (file.parent.parent / ".coatcheck/mcp").mkdir()

    uninstalled = run("mcp", "uninstall", "cursor", "issues")

    assert "What it stored stays in ~/.coatcheck/mcp. To delete what nobody used for a day: " in uninstalled.stdout


def test_commands_that_start_no_proxy_need_no_extra(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coatcheck_mcp.link", None)  # as without the extra
    Offloader(FileStorage(home / ".coatcheck/mcp")).offload([TextBlock("x " * 20_000)], tool_name="fetch", scope="s")

    for command in (("stats",), ("stats", "--json"), ("status",), ("check",), ("uninstall", "cursor", "issues")):
        ran = run("mcp", *command)
        assert (ran.exit_code, "extra" in ran.stderr) == (0, False), ran.stderr


def test_install_refuses_if_the_proxy_could_not_start(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coatcheck_mcp.link", None)  # as without the extra

    ran = run("mcp", "install", "cursor", "issues")

    assert (ran.exit_code, ran.stdout, file.read_text()) == (2, "", CURSOR)
    assert ran.stderr.startswith("coatcheck: `coatcheck mcp` needs its extra (")
    assert ran.stderr.endswith('[cli,mcp]"\n')
    assert run("mcp", "install", "cursor", "issues", "--dry-run").exit_code == 0


def test_install_says_not_to_share_the_file_of_a_project(file: Path) -> None:
    own = run("mcp", "install", "cursor", "issues")
    shared = file.parent.parent.parent / "project/.cursor/mcp.json"
    shared.parent.mkdir()
    shared.write_text('{"mcpServers": {"clocks": {"command": "clocks"}}}')

    ran = run("mcp", "install", "cursor", "clocks")

    assert own.stderr == ""
    assert ran.stderr == f"Do not share {shared}: other people do not have {sys.executable}.\n"


def test_the_installed_entry_runs_coatcheck_and_no_module_in_the_working_folder(file: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("this Python has no way to leave the folder out")
    run("mcp", "install", "cursor", "clock")
    (file.parent / "coatcheck.py").write_text("print('taken over')")
    args = json.loads(file.read_text().replace("// mine", ""))["mcpServers"]["clock"]["args"]

    ran = subprocess.run(
        [sys.executable, *args[: args.index("mcp") + 1], "--help"],
        cwd=file.parent,
        capture_output=True,
        check=True,
        text=True,
    )

    assert "Usage: python -m coatcheck mcp" in ran.stdout


def test_the_installed_entry_runs_coatcheck_and_no_module_on_pythonpath(file: Path) -> None:
    run("mcp", "install", "cursor", "clock")
    (file.parent / "coatcheck.py").write_text("print('taken over')")
    args = json.loads(file.read_text().replace("// mine", ""))["mcpServers"]["clock"]["args"]

    words = [sys.executable, *args[: args.index("mcp") + 1], "--help"]
    env = {**os.environ, "PYTHONPATH": str(file.parent)}
    ran = subprocess.run(words, env=env, capture_output=True, check=True, text=True)

    assert "Usage: python -m coatcheck mcp" in ran.stdout


def test_a_private_copy_of_the_old_file_is_kept(file: Path, home: Path) -> None:
    said = run("mcp", "install", "cursor", "issues").stdout

    (backup,) = (home / ".coatcheck/backups").iterdir()
    assert str(backup) in said
    assert backup.read_text() == CURSOR
    assert backup.stat().st_mode & 0o777 == 0o600


def test_the_settings_become_part_of_the_entry_with_absolute_paths(file: Path) -> None:
    config = file.parent.parent.parent / "project/coatcheck.toml"
    config.write_text("max_result_tokens = 4000\n")

    run("mcp", "install", "cursor", "issues", "--config", "coatcheck.toml", "--storage", "kept", "--scope", "team")

    args = json.loads(file.read_text().replace("// mine", ""))["mcpServers"]["issues"]["args"]
    assert args[args.index("--config") + 1] == str(config)
    assert args[args.index("--storage") + 1] == str(config.parent / "kept")
    assert args[args.index("--scope") + 1] == "team"


def test_a_storage_in_an_unknown_home_is_refused(file: Path) -> None:
    refused = run("mcp", "install", "cursor", "issues", "--storage", "~no-such-user/kept")

    assert refused.exit_code == 2
    assert "--storage is '~no-such-user/kept', in an unknown home directory; name another folder" in refused.stderr
    assert file.read_text() == CURSOR


def test_a_storage_url_is_written_unchanged(file: Path) -> None:
    run("mcp", "install", "cursor", "issues", "--storage", "s3://bucket/mcp")

    assert '"--storage", "s3://bucket/mcp"' in file.read_text()
    assert "--max-age=1d --storage=s3://bucket/mcp\n" in run("mcp", "uninstall", "cursor", "issues").stdout


@pytest.mark.parametrize("own", [["--storage", "s3://own/db"], ["--config", "own.toml"]], ids=lambda words: words[0])
def test_uninstall_does_not_take_the_servers_own_options_for_those_of_the_proxy(file: Path, own: list[str]) -> None:
    (file.parent.parent.parent / "project/own.toml").write_text('storage = "s3://own/db"\n')
    (file.parent.parent / ".coatcheck/mcp").mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"issues": {"command": "npx", "args": ["-y", "issues", *own]}}}))
    for options, storage in (([], "~/.coatcheck/mcp"), (["--storage", "s3://ours"], "s3://ours")):
        run("mcp", "install", "cursor", "issues", *options)

        assert f"What it stored stays in {storage}. " in run("mcp", "uninstall", "cursor", "issues").stdout


def test_uninstall_names_the_storage_that_the_proxy_used(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_STORAGE", "s3://of-the-shell")
    config = file.parent.parent.parent / "project/coatcheck.toml"
    config.write_text('storage = "s3://of-the-file"\n')
    for env, options, storage in (
        ({"COATCHECK_STORAGE": "s3://of-the-entry"}, ["--storage", "s3://of-the-options"], "s3://of-the-options"),
        ({"COATCHECK_STORAGE": "s3://of-the-entry"}, ["--config", str(config)], "s3://of-the-entry"),
        ({}, ["--config", str(config)], "s3://of-the-shell"),
        ({"COATCHECK_STORAGE": ""}, ["--config", str(config)], "s3://of-the-file"),
    ):
        file.write_text(json.dumps({"mcpServers": {"issues": {"command": "npx", "args": ["issues"], "env": env}}}))
        run("mcp", "install", "cursor", "issues", *options)

        assert f"What it stored stays in {storage}. " in run("mcp", "uninstall", "cursor", "issues").stdout


@pytest.mark.parametrize("option", ["--scope", "--storage"])
def test_an_empty_option_is_refused_before_the_client_fails_on_it(file: Path, option: str) -> None:
    before = file.read_bytes()
    ran = run("mcp", "install", "claude-code", "files", option, "")

    assert ran.exit_code == 2
    assert ran.stderr == f"coatcheck: {option} is empty; give it a value, or leave it out\n"
    assert file.read_bytes() == before


def test_invalid_settings_are_refused_before_the_client_fails_on_them(file: Path) -> None:
    config = file.parent / "coatcheck.toml"
    config.write_text("max_tokens = 4000\nmax_age = 30\n")

    ran = run("mcp", "install", "cursor", "issues", "--config", config)

    assert ran.exit_code == 2
    first, second = ran.stderr.splitlines()
    assert first.startswith(f"coatcheck: {config}:1: max_tokens is unknown")
    assert second.startswith(f"coatcheck: {config}:2: max_age ")
    assert file.read_text() == CURSOR


def test_check_reports_each_mistake_on_its_own_line(home: Path) -> None:
    config = home / "coatcheck.toml"
    config.write_text("colour = 1\nmax_age = 30\n")

    ran = run("mcp", "check", "--config", config)

    assert ran.exit_code == 2
    assert [line.split(" ")[:3] for line in ran.stderr.splitlines()] == [
        ["coatcheck:", f"{config}:1:", "colour"],
        ["coatcheck:", f"{config}:2:", "max_age"],
    ]


def test_a_dry_run_shows_the_difference_and_changes_nothing(file: Path, home: Path) -> None:
    ran = run("mcp", "install", "cursor", "issues", "--dry-run")

    assert ran.exit_code == 0
    assert ran.stdout.startswith(f"--- {file}\n+++ {file}\n@@ -1,3 +1,3 @@\n {'{'} // mine\n-")
    assert file.read_text() == CURSOR
    assert not (home / ".coatcheck").exists()


def test_a_second_install_or_uninstall_says_so_and_changes_nothing(file: Path) -> None:
    run("mcp", "install", "cursor", "issues")
    once = file.read_bytes()

    again = run("mcp", "install", "cursor", "issues")

    assert again.exit_code == 0
    assert again.stdout == f"'issues' already goes through coatcheck in {file}; nothing was changed.\n"
    assert file.read_bytes() == once
    run("mcp", "uninstall", "cursor", "issues")
    ended = run("mcp", "uninstall", "cursor", "issues")
    assert ended.stdout == f"'issues' does not go through coatcheck in {file}; nothing was changed.\n"


def test_options_for_a_server_that_already_goes_through_are_reported_as_not_applied(file: Path) -> None:
    run("mcp", "install", "cursor", "issues")
    once = file.read_bytes()

    again = run("mcp", "install", "cursor", "issues", "--scope", "mine")

    assert again.stdout == f"'issues' already goes through coatcheck in {file}; nothing was changed.\n"
    assert again.stderr == (
        "The options were not applied: run `coatcheck mcp uninstall cursor issues` first, and then this command"
        " again.\n"
    )
    assert file.read_bytes() == once
    assert run("mcp", "install", "cursor", "issues").stderr == ""


def test_an_entry_that_is_not_understood_is_reported_on_one_line_and_stays(file: Path) -> None:
    file.write_text('{"mcpServers": {\n"issues": {"command": "x", "args": 1}}}')

    ran = run("mcp", "install", "cursor", "issues")

    assert ran.exit_code == 2
    assert ran.stderr == (
        f"coatcheck: {file}:2: 'issues' stays as it is: its args are not an array of strings; edit it by hand\n"
    )


def test_install_names_an_unused_entry_of_the_same_name(home: Path) -> None:
    folder = home.parent / "project"
    (folder / ".mcp.json").write_text('{"mcpServers": {"issues": {"command": "x"}}}')
    (home / ".claude.json").write_text('{"mcpServers": {"issues": {"command": "y"}}}')

    ran = run("mcp", "install", "claude-code", "issues")

    another, _ = ran.stderr.splitlines()
    assert another == f"There is another 'issues' in {home}/.claude.json (user); it stays as it is."
    assert f"{folder}/.mcp.json (project)" in ran.stdout


def test_status_lists_the_servers_of_all_clients(file: Path, home: Path) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"far": {"type": "http", "url": "https://h?key=s3cret"}}}')
    run("mcp", "install", "cursor", "issues")

    ran = run("mcp", "status")

    assert ran.exit_code == 0
    assert [line.split() for line in ran.stdout.splitlines()] == [
        ["CLIENT", "SERVER", "COATCHECK", "FILE"],
        ["claude-code", "far", "no", f"{home}/.claude.json", "(user)"],
        ["cursor", "issues", "yes", str(file), "(user)"],
        ["cursor", "clock", "no", str(file), "(user)"],
    ]
    assert answered("mcp", "status", "cursor")[0] == {
        "client": "cursor",
        "server": "issues",
        "goes_through_coatcheck": True,
        "file": os.fspath(file),
        "reach": "user",
    }


def test_status_lists_the_servers_of_a_file_without_a_client_once(home: Path) -> None:
    file = home.parent / "project/servers.json"
    file.write_text('{"mcpServers": {"one": {"command": "a"}}, "servers": {"two": {"command": "b"}}}')

    listed = answered("mcp", "status", "--file", str(file))

    assert [(each["client"], each["server"]) for each in listed] == [(None, "one"), (None, "two")]
    assert run("mcp", "status", "--file", str(file)).stdout.splitlines()[1].startswith("-            one")
    assert [each["server"] for each in answered("mcp", "status", "cursor", "--file", str(file))] == ["one"]


def test_status_recognises_the_client_of_a_named_file(file: Path) -> None:
    assert [each["client"] for each in answered("mcp", "status", "--file", str(file))] == ["cursor", "cursor"]


@pytest.mark.usefixtures("home")
def test_a_file_without_config_is_answered_with_the_command_to_type() -> None:
    assert run("mcp", "check", "my file.toml").stderr == (
        "coatcheck: name the file with --config: coatcheck mcp check --config 'my file.toml'\n"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("npx -y some-server", "-- npx -y some-server"),
        ("--storage 'a b' --name=s npx -y some-server", "--storage 'a b' --name=s -- npx -y some-server"),
        ("--scope s npx some-server -- its-own", "--scope s -- npx some-server -- its-own"),
    ],
)
def test_a_server_command_without_dashes_is_answered_with_the_command_to_type(typed: str, meant: str) -> None:
    refused = run("mcp", *shlex.split(typed))
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.replace("│", " ").split())
    assert f"A server's command goes after --: coatcheck mcp {meant}" in said


def test_status_continues_after_a_file_that_it_cannot_read(file: Path, home: Path) -> None:
    (home / ".claude.json").write_text("{")

    ran = run("mcp", "status")

    assert ran.exit_code == 1
    assert ran.stderr.startswith(f"coatcheck: {home}/.claude.json:1: this is not JSON")
    assert "issues" in ran.stdout


def test_status_says_that_no_server_is_configured(file: Path) -> None:
    file.unlink()

    ran = run("mcp", "status")

    assert (ran.exit_code, ran.stdout) == (0, "")
    assert ran.stderr == "No server is configured here; there may be some in another folder.\n"


def test_an_unknown_client_ends_with_2(home: Path) -> None:
    assert run("mcp", "install", "emacs", "issues").exit_code == 2
    assert run("mcp", "status", "emacs").exit_code == 2


def test_check_prints_the_defaults_and_names_a_file_that_it_did_not_read(home: Path) -> None:
    (home.parent / "project/coatcheck.toml").write_text("")

    ran = run("mcp", "check")

    assert ran.exit_code == 0
    assert ran.stdout.startswith("No file: these are the defaults.\nstorage                ~/.coatcheck/mcp\n")
    assert "max_age                7 days\nmax_bytes              2,000,000,000 bytes\n" in ran.stdout
    assert ran.stderr == f"{home.parent}/project/coatcheck.toml was not read: name it with --config.\n"


def test_check_says_which_variables_override_the_file_and_which_limits_then_apply(tmp_path: Path) -> None:
    config = tmp_path / "coatcheck.toml"
    config.write_text('storage = "two"\nscope = "mine"\nmax_bytes = "1GB"\n')

    rows = []
    for options in ((), ("--config", config)):
        for env in ({}, {"COATCHECK_STORAGE": "./three", "COATCHECK_SCOPE": "team 7"}):
            ran = run("mcp", "check", *options, env={"COATCHECK_STORAGE": "", **env})
            assert ran.exit_code == 0, ran.output
            rows.append([" ".join(line.split()) for line in ran.stdout.splitlines()[1:5]])

    by_variables = [
        "storage ./three (from COATCHECK_STORAGE, which overrides a file)",
        "scope 'team 7' (from COATCHECK_SCOPE, which overrides a file)",
        "max_age unlimited",
    ]
    assert rows == [
        ["storage ~/.coatcheck/mcp", "scope chosen by the proxy", "max_age 7 days", "max_bytes 2,000,000,000 bytes"],
        [*by_variables, "max_bytes unlimited"],
        [f"storage {tmp_path}/two", "scope 'mine'", "max_age unlimited", "max_bytes 1,000,000,000 bytes"],
        [*by_variables, "max_bytes 1,000,000,000 bytes"],
    ]


def test_check_shows_no_password_of_a_storage() -> None:
    ran = run("mcp", "check", env={"COATCHECK_STORAGE": "sftp://me:s3cret@host/kept"})

    assert "storage                sftp://***@host/kept (from COATCHECK_STORAGE" in ran.stdout


def test_check_prints_the_settings_of_a_file_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    config = tmp_path / "coatcheck.toml"
    config.write_text(
        'scope = "mine"\nmax_bytes = "unlimited"\npreview_tokens = 0\nshow_path = true\n'
        '[tools."far.*"]\nmax_result_tokens = 5000\n[tools.b]\nnever = true\n'
        '[servers.far]\nurl = "https://me:s3cret@h/mcp?key=s3cret"\nheaders.Authorization = "${TOKEN}"\n'
        f'[servers.near]\ncommand = "{sys.executable}"\ncwd = "."\nenv.LOGIN = "s3cret"\n'
        'args = ["-y", "a b", "--key", "s3cret", "--auth-token=s3cret", "s3cret7890abcdefghijkl", "db://me:s3cret@h/x"]\n'
    )

    ran = run("mcp", "check", "--config", config)

    assert ran.exit_code == 0, ran.output
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert lines[0] == f"{config} is right. It says:"
    for line in ("scope 'mine'", "max_bytes unlimited", "preview_tokens 0", "show_path true"):
        assert line in lines
    assert lines[-8:] == [
        "tool far.*: over 5,000 tokens",
        "tool b: never",
        "(which tools these are is known when the servers run)",
        "server far: https://***@h/mcp?***",
        "with Authorization",
        f"server near: {sys.executable} -y 'a b' --key '***' '--auth-token=***' '***' 'db://***@h/x'",
        f"in the folder {tmp_path}",
        "with LOGIN",
    ]
    assert "s3cret" not in ran.output


def test_check_names_what_would_fail_on_this_machine(tmp_path: Path) -> None:
    config = tmp_path / "coatcheck.toml"
    config.write_text('[tools."typo.*"]\nnever = true\n[servers.a]\ncommand = "no-such"\n')

    ran = run("mcp", "check", "--config", config, env={"PATH": "/bin"})

    assert ran.exit_code == 1
    assert ran.stdout.startswith(f"{config} says:\n")
    assert ran.stderr == (
        f"coatcheck: {config}:4: servers.a.command cannot start: there is no such command as no-such in the folders of"
        " PATH; write its absolute path, or correct PATH\n"
        f"coatcheck: {config}:1: [tools.\"typo.*\"] begins with 'typo', but the file has no [servers.typo], only a\n"
    )


@pytest.mark.parametrize(
    ("storage", "fault"),
    [
        ("memory://kept", "memory://kept is gone as soon as a command ends"),
        ("~no-such-user/kept", "FileStorage cannot find the folder '~no-such-user/kept'"),
        ("file://elsewhere/kept", "file://elsewhere/kept names a folder on the machine 'elsewhere'"),
        ("simplecache::s3://bucket", "a chain of filesystems cannot be named here"),
    ],
)
@pytest.mark.parametrize("is_in_file", [True, False])
def test_check_refuses_a_storage_that_the_proxy_would_refuse(
    tmp_path: Path, storage: str, fault: str, *, is_in_file: bool
) -> None:
    config = tmp_path / "coatcheck.toml"
    config.write_text(f'storage = "{storage}"\n' if is_in_file else "")
    options = ("--config", config) if is_in_file else ()
    variable = {"COATCHECK_STORAGE": "" if is_in_file else storage}

    checked = run("mcp", "check", *options, env=variable)

    assert checked.exit_code == 1
    assert f"nothing can be stored: {fault}" in checked.stderr
    with pytest.raises((CannotRun, InvalidRequest)) as refused:
        storage_at(storage, may_be_new=True)  # as the proxy does
    assert fault in str(refused.value)


def test_check_refuses_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    config = tmp_path / "coatcheck.toml"
    config.write_text('storage = "kept"\n')
    (tmp_path / "kept").write_text("")

    refused = run("mcp", "check", "--config", config, env={"COATCHECK_STORAGE": ""})
    (tmp_path / "kept").unlink()
    accepted = run("mcp", "check", "--config", config, env={"COATCHECK_STORAGE": ""})

    assert (refused.exit_code, accepted.exit_code) == (1, 0)
    assert refused.stderr.startswith(f"coatcheck: nothing can be stored: {tmp_path / 'kept'} is not a folder. ")


def test_check_names_the_line_and_key_of_a_mistake(tmp_path: Path) -> None:
    config = tmp_path / "coatcheck.toml"
    config.write_text("# first\nmax_age = 7\n")

    ran = run("mcp", "check", "--config", config)

    assert ran.exit_code == 2
    what = 'must be a number and a unit (s, m, h, d or w) in quotes, such as "30d", or "unlimited", not 7'
    assert ran.stderr == f"coatcheck: {config}:2: max_age {what}\n"


@pytest.mark.parametrize("command", ["check", "install", "uninstall", "status"])
def test_the_help_of_each_command_fits_one_screen(command: str) -> None:
    ran = run("mcp", command, "--help")

    assert ran.exit_code == 0
    assert len(ran.output.splitlines()) <= 24
    assert max(map(len, ran.output.splitlines())) <= 80
    assert "Exit codes: 0" in ran.output
    assert "<" not in ran.output


@pytest.mark.parametrize("command", ["check", "status", "uninstall cursor issues", "install cursor issues --dry-run"])
@pytest.mark.usefixtures("file")
def test_check_status_uninstall_and_dry_runs_do_not_need_the_mcp_library(command: str) -> None:
    code = (
        "import sys\n"
        "for name in ('fastmcp', 'mcp', 'mcp_types'): sys.modules[name] = None\n"
        f"sys.argv = ['coatcheck', 'mcp', *{command.split()!r}]\n"
        "from coatcheck.cli import main; main()"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)

    assert ran.returncode == 0, ran.stderr
