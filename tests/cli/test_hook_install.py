"""``coatcheck hook install`` and ``uninstall``: what they change in Claude Code's settings, and what they leave."""

from __future__ import annotations

import json
import re
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coatcheck.cli.hook_commands import MATCHER, MATCHERS
from coatcheck.hook.command import program
from tests.cli.running import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer.testing import Result

COMMENTED = """{
    // mine
    "model": "opus",
    "hooks": {
        "PreToolUse": [],
        "PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]} // last
        ],
    },
    /* the end */
}
"""
SETTINGS = [
    pytest.param("{}", id="empty"),
    pytest.param("{}\n", id="empty, with a line"),
    pytest.param('{"model": "opus"}', id="one line"),
    pytest.param('{\n  "model": "opus"\n}\n', id="no hooks"),
    pytest.param('{\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n', id="other hooks, tabs"),
    pytest.param(COMMENTED, id="comments"),
    pytest.param(COMMENTED.replace("\n", "\r\n"), id="lines of Windows"),
    pytest.param('{"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": []}]}}', id="an empty entry"),
    pytest.param('{"hooks": {}}\n', id="no hooks yet"),
    pytest.param('{"hooks": {"PostToolUse": []}}', id="no hooks of the event yet"),
    pytest.param('{"hooks": {"SessionStart": []}}', id="no hooks of the other event yet"),
    pytest.param('{"hooks": {"SessionStart": [ ], "PostToolUse": []}}', id="no hooks of both yet"),
    pytest.param('{"hooks": {"SessionStart": [{"hooks": [{"command": "mine"}]}]}}', id="somebody's hook of a session"),
    pytest.param('{ "hooks" : { "PostToolUse" : [ ] , "Stop" : [ ] } }\n\n', id="an empty list next to others"),
    pytest.param('{"model": "opus", "hooks": { } /* the end */}', id="a comment behind an empty object"),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the settings of the person who runs it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with settings of its own."""
    folder = home / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def settings(home: Path) -> Path:
    (home / ".claude").mkdir()
    return home / ".claude/settings.json"


def call(*words: str) -> Result:
    return run("hook", *words)


def write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def read(path: Path) -> str:
    return path.read_bytes().decode()


def plain(text: str) -> object:
    """Return settings without comments and without commas before closing brackets."""
    for comment in ("// mine", "// last", "/* the end */"):
        text = text.replace(comment, "")
    return json.loads("".join(text.split()).replace(",]", "]").replace(",}", "}"))


@pytest.mark.parametrize("text", SETTINGS)
def test_uninstall_restores_every_byte(settings: Path, text: str) -> None:
    write(settings, text)

    assert call("install").exit_code == 0
    assert " -m coatcheck hook" in read(settings)
    assert call("uninstall").exit_code == 0

    assert read(settings) == text


@pytest.mark.parametrize("text", SETTINGS)
def test_install_adds_an_entry_for_each_event_with_the_running_interpreter(settings: Path, text: str) -> None:
    write(settings, text)
    call("install")
    once = read(settings)
    assert call("install").exit_code == 0

    assert read(settings) == once, "once is enough"
    assert "// mine" in once or "// mine" not in text
    lines = [line.strip() for line in once.splitlines() if '"command": ' in line and "coatcheck" in line]
    assert len(lines) == len(MATCHERS)
    for line in lines:
        command = json.loads("{" + line.rstrip(",") + "}")["command"]
        assert command == shlex.join([*program(), "hook"])
        assert Path(shlex.split(command)[0]).is_absolute()
    assert plain(once)


@pytest.mark.parametrize("text", [None, "", "\n", "  \n", "{}\n"])
def test_no_file_is_ever_deleted(settings: Path, text: str | None) -> None:
    if text is not None:
        write(settings, text)
    call("install")
    call("install", "--max-age=3d")

    assert call("uninstall").exit_code == 0

    assert read(settings) == "{}\n"


def test_a_settings_file_stays_if_install_reached_it_by_another_path(settings: Path, home: Path) -> None:
    write(settings, "{}\n")
    (home / "link").symlink_to(home / ".claude")
    call("install", f"--file={home}/link/settings.json")

    assert call("uninstall").exit_code == 0

    assert read(settings) == "{}\n"


@pytest.mark.parametrize("text", ["", "\n"])
def test_uninstall_changes_no_file_without_settings(settings: Path, text: str) -> None:
    write(settings, text)

    assert call("uninstall").output.startswith("Nothing to do")

    assert read(settings) == text


@pytest.mark.parametrize(
    ("tool", "is_for"),
    [
        ("Bash", True),
        ("PowerShell", True),
        ("LSP", True),
        ("mcp__github__list_issues", True),
        ("ListMcpResourcesTool", True),
        ("ReadMcpResourceTool", True),
        ("ReadMcpResourceDirTool", True),
        ("Edit", False),
        ("TodoWrite", False),
        ("NotebookEdit", False),
    ],
)
def test_the_hook_runs_for_the_tools_whose_results_the_model_reads(tool: str, *, is_for: bool) -> None:
    assert bool(re.search(MATCHER, tool)) is is_for


def test_install_creates_the_settings_file_where_there_is_none(home: Path) -> None:
    assert call("install").exit_code == 0
    path = home / ".claude/settings.json"

    hooks = json.loads(read(path))["hooks"]
    assert {event: entry["matcher"] for event, (entry,) in hooks.items()} == MATCHERS
    ours = {"type": "command", "command": shlex.join([*program(), "hook"]), "timeout": 60}
    assert [entry["hooks"] for (entry,) in hooks.values()] == [[ours], [ours]]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["settings.json"]


def test_the_settings_of_a_project_are_those_of_its_folder(home: Path, project: Path) -> None:

    shown = call("install", "--project", "--dry-run")
    ran = call("install", "--project")

    path = project / ".claude/settings.json"
    assert (ran.exit_code, path.exists()) == (0, True)
    assert shown.stderr == ran.stderr == f"Do not share {path}: other people do not have {sys.executable}.\n"
    assert call("install", "--project").stderr == ""
    assert not (home / ".claude").exists()


def test_the_hooks_options_become_part_of_its_command_and_stay_until_given_again(settings: Path) -> None:
    write(settings, "{}")
    call("install", "--", "--max-result-tokens=5000", "--storage=/a folder", "--max-age=7d")
    assert "hook --max-result-tokens=5000 '--storage=/a folder' --max-age=7d" in read(settings)

    ended = call("install", "--max-bytes", "2GB", "--max-result-tokens=6000", "--max-age=")

    assert ended.exit_code == 0
    assert read(settings).count("coatcheck hook") == len(MATCHERS)
    now = "hook --max-result-tokens=6000 '--storage=/a folder' --max-bytes=2GB\""
    assert read(settings).count(now) == len(MATCHERS)
    assert ended.output.splitlines()[-5:-1] == [
        "--max-result-tokens was 5000, and is now 6000.",
        "--storage=/a folder is kept from before.",
        "--max-age=7d was removed.",
        "--max-bytes is now 2GB.",
    ]


def test_words_added_to_the_command_by_hand_are_named_when_install_drops_them(settings: Path) -> None:
    write(settings, "{}")
    call("install", "--max-bytes=7")
    write(settings, read(settings).replace("--max-bytes=7", "--max-bytes=7 --old=1 | tee 'log"))

    ended = call("install")

    assert 'hook --max-bytes=7"' in read(settings)
    assert "--max-bytes=7 is kept from before.\n" in ended.output
    assert "'--old' is not an option of the hook" in ended.output
    assert "'tee' is not an option of the hook" in ended.output


def test_a_file_in_a_missing_folder_is_refused(settings: Path) -> None:
    ended = call("install", "--file", str(settings.parent / "not_there" / "settings.json"))

    assert ended.exit_code == 2
    assert f"{settings.parent / 'not_there'} is not a folder: make it first, or correct --file" in ended.output
    assert not (settings.parent / "not_there").exists()


def test_install_says_how_to_list_what_the_hook_stores(settings: Path) -> None:
    write(settings, "{}")

    ended = call("install", "--storage=~/kept here")

    command = shlex.join([*program(), "ls", f"--storage={settings.parent.parent}/kept here", "--all-scopes"])
    assert ended.output.endswith(f"To list what it stores: {command}\n")


def test_uninstall_says_where_stored_content_stays_and_how_to_delete_it(settings: Path) -> None:
    write(settings, "{}")
    call("install", "--storage=~/kept here")
    folder = settings.parent.parent / "kept here"
    folder.mkdir()

    dry_run, ended, again = call("uninstall", "--dry-run"), call("uninstall"), call("uninstall")

    command = shlex.join([*program(), "sweep", "--max-age=1d", f"--storage={folder}"])
    told = f"What it stored stays in {folder}. To delete what nobody used for a day: {command}\n"
    assert ended.output.endswith(told)
    assert told not in again.output
    assert told not in dry_run.output, "a difference can be piped on"


@pytest.mark.parametrize("storage", ["", "mine"])
def test_uninstall_says_where_content_stays_even_if_the_config_file_is_gone(
    settings: Path, home: Path, storage: str
) -> None:
    write(settings, "{}")
    file = home / "coatcheck.toml"
    write(file, 'storage = "store"\n')
    call("install", f"--config={file}", *([f"--storage={home / storage}"] if storage else []))
    file.unlink()
    folder = home / (storage or ".coatcheck/hook")
    folder.mkdir(parents=True)

    ended = call("uninstall")

    assert ended.exit_code == 0
    assert f"What it stored stays in {folder}. To delete" in ended.output
    assert ("; if it named a storage, what the hook stored there stays too.\n" in ended.output) is (not storage)


def test_uninstall_names_no_folder_if_nothing_was_stored(settings: Path) -> None:
    write(settings, "{}")
    call("install")

    assert "stored" not in call("uninstall").output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--", "--max-bytes=many"], "--max-bytes must be a number of bytes, or one with KB, MB, GB or TB, such as"),
        (["--max-age=0d"], "--max-age must be a number with s, m, h, d or w, such as 7d, not '0d'"),
        (["--max-age=30"], "--max-age must be a number with s, m, h, d or w, such as 7d, not '30'"),
        (["--max-result-tokens=1k"], "--max-result-tokens must be a whole number above 0, not '1k'"),
        (["--storage"], "--storage lacks its value"),
        (
            ["--no-such", "5"],
            "'--no-such' is not an option of the hook; the options are --storage, --max-result-tokens,",
        ),
        (["x"], "'x' is not an option of the hook: options begin with --"),
    ],
)
def test_a_wrong_option_is_refused_once_before_a_client_runs_it(
    settings: Path, words: list[str], complaint: str
) -> None:
    write(settings, "{}")

    refused = call("install", *words)

    assert refused.exit_code == 2
    assert refused.output.startswith(f"coatcheck: {complaint}")
    assert refused.output.count("option of the hook") <= 1
    assert len(refused.output.splitlines()) == 1
    assert read(settings) == "{}"


def test_a_config_file_is_checked_and_written_as_an_absolute_path(
    settings: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(settings, "{}")
    write(home / "coatcheck.toml", "max_tokens = 5\ncolour = 1\n")
    monkeypatch.chdir(home)
    refused = call("install", "--config=coatcheck.toml")
    assert refused.exit_code == 2
    first, second = refused.output.splitlines()
    assert first.startswith(f"coatcheck: {home}/coatcheck.toml:1: max_tokens is unknown")
    assert second.startswith(f"coatcheck: {home}/coatcheck.toml:2: colour is unknown")

    write(home / "coatcheck.toml", 'storage = "s3://bucket"\n')
    assert "the hook stores in a folder; add --storage=FOLDER" in call("install", "--config=coatcheck.toml").output
    assert read(settings) == "{}"

    assert call("install", "--config=coatcheck.toml", "--storage=/kept").exit_code == 0
    assert f'hook --config={home}/coatcheck.toml --storage=/kept"' in read(settings)


def test_a_folder_is_written_as_an_absolute_path(settings: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(settings, "{}")
    monkeypatch.chdir(home)

    assert call("install", "--", "--storage=./art").exit_code == 0

    assert f'hook --storage={home}/art"' in read(settings)


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ("s3://bucket", "--storage must be a folder, not 's3://bucket'"),
        ("~no-such-user/kept", "--storage is '~no-such-user/kept', in an unknown home directory; name another folder"),
    ],
)
def test_a_storage_that_is_not_a_folder_is_refused(settings: Path, storage: str, why: str) -> None:
    write(settings, "{}")

    refused = call("install", f"--storage={storage}")

    assert refused.exit_code == 2
    assert why in refused.output
    assert read(settings) == "{}"


def test_a_file_that_names_a_folder_in_an_unknown_home_is_refused(settings: Path, home: Path) -> None:
    write(settings, "{}")
    file = home / "coatcheck.toml"
    write(file, 'storage = "~no-such-user/kept"\n')

    refused = call("install", f"--config={file}")

    assert refused.exit_code == 2
    assert "the folder is '~no-such-user/kept', in an unknown home directory; name another with --sto" in refused.output
    assert read(settings) == "{}"
    assert call("install", f"--config={file}", f"--storage={home}/mine").exit_code == 0


def test_install_for_a_project_asks_for_a_folder_if_there_is_no_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as for a user id without an account, which clusters assign

    refused = call("install", "--project")

    assert refused.exit_code == 2
    assert "the folder is '~/.coatcheck/hook', in an unknown home directory; name another with --sto" in refused.output
    assert not list(home.iterdir())
    assert call("install", "--project", "--storage=kept").exit_code == 0


def test_the_listing_command_names_the_folder_from_the_file(settings: Path, home: Path) -> None:
    write(settings, "{}")
    file = home / "coatcheck.toml"
    write(file, 'storage = "store"\n')

    assert f"--storage={home}/store --all-scopes\n" in call("install", f"--config={file}").output
    assert f"--storage={home}/mine --all-scopes\n" in call("install", f"--storage={home}/mine").output


def test_the_next_install_reports_a_config_file_that_is_gone(settings: Path, home: Path) -> None:
    write(settings, "{}")
    file = home / "coatcheck.toml"
    write(file, "")
    call("install", f"--config={file}")
    file.unlink()

    ended = call("install", "--max-bytes=7")

    assert ended.exit_code == 0
    assert "coatcheck.toml" in ended.output.splitlines()[-2]
    assert ended.output.splitlines()[-2].endswith("; the hook goes on without this file.")
    assert f"--storage={home}/.coatcheck/hook --all-scopes\n" in ended.output


OURS = [
    "python -m coatcheck hook",
    "/usr/bin/python3.12 -P -X utf8 -m coatcheck hook --max-bytes=7",
    "VAR=1 'B=two words' '/a folder/python' -m coatcheck hook",
    "cd /tmp && python -m coatcheck hook",
    shlex.join([*program(), "hook"]),
    "coatcheck hook",
    "VAR=1 /opt/bin/coatcheck hook --max-bytes=7",
    "cd /tmp && coatcheck hook",
    "uv run coatcheck hook",
    "VAR=1 uv run --directory /a/b -q coatcheck hook --max-bytes=7",
    "uvx --from /a/checkout coatcheck hook",
    "uvx 'coatcheck[cli]@latest' hook",
    "pipx run --spec=/a/checkout coatcheck hook",
    r"C:\Users\me\venv\Scripts\coatcheck.exe hook --max-bytes=7",
    r'"C:\Program Files\venv\coatcheck.exe" hook',
    r"C:\venv\Scripts\python.exe -m coatcheck hook",
    "cd /tmp; coatcheck hook",
    "cd /tmp;coatcheck hook",
    "coatcheck hook;",
    "timeout -k 5 50s coatcheck hook",
    "env A=1 coatcheck hook",
    "exec nohup uvx coatcheck hook",
    "exec -a NAME env -u X timeout --signal=KILL 5 nice -n 5 coatcheck hook",
    "sudo -u me -- python -P -m coatcheck hook",
    "uv run python -m coatcheck hook",
    "uv --directory /a/b run coatcheck hook",
    "uv run -q -- coatcheck hook",
]
FOREIGN = [
    "python -m coatcheck hook_wrapper --x",
    "python my.py --note 'uses python -m coatcheck hook later'",
    "python my.py -m coatcheck hook",
    "python -m coatcheck mcp -- hook",
    "coatcheck hooks",
    "my-coatcheck hook",
    "echo coatcheck hook",
    "echo python -m coatcheck hook",
    "sudo -u coatcheck hook",
    "uv run my.py coatcheck hook",
    "uv run --with a my.py coatcheck hook",
    "uv pip coatcheck hook",
    "uvx my-coatcheck hook",
    "cd coatcheck hook",
    "50 coatcheck hook",
    "timeout 50 echo coatcheck hook",
    "uv run --with coatcheck hook",
    "uvx --from coatcheck hook",
    "uv run --quiet echo coatcheck hook",
]


def settings_with(*commands: str, events: Sequence[str] = ("PostToolUse",), **more: object) -> str:
    hooks = [{"type": "command", "command": command, **more} for command in commands]
    return json.dumps({"hooks": {event: [{"matcher": "Bash", "hooks": hooks}] for event in events}}, indent=2)


@pytest.mark.parametrize("command", FOREIGN)
def test_a_command_that_is_not_ours_stays(settings: Path, command: str) -> None:
    text = settings_with(command)
    write(settings, text)

    assert call("uninstall").output.startswith("Nothing to do")
    call("install")
    call("uninstall")

    assert read(settings) == text


@pytest.mark.parametrize("command", OURS)
@pytest.mark.parametrize("events", [["PostToolUse"], ["SessionStart"], ["SessionStart", "PostToolUse"]])
def test_a_command_that_runs_the_hook_is_ours(settings: Path, command: str, events: list[str]) -> None:
    write(settings, settings_with("fmt", command, events=events))

    assert call("uninstall").exit_code == 0

    assert read(settings) == settings_with("fmt", events=events)


def test_uninstall_ignores_events_that_the_hook_does_not_answer(settings: Path) -> None:
    text = settings_with("coatcheck hook", events=["PreToolUse", "Stop"])
    write(settings, text)

    assert call("uninstall").output.startswith("Nothing to do")

    assert read(settings) == text


def test_a_second_install_changes_only_the_command_of_each_entry(settings: Path) -> None:
    old = "VAR=1 B='two words' python -m coatcheck hook --max-bytes=7"
    write(settings, settings_with("fmt", old, events=[*MATCHERS], timeout=5, **{"async": True}))

    assert call("install", "--max-age=7d").exit_code == 0

    new = "VAR=1 B='two words' " + shlex.join([*program(), "hook", "--max-bytes=7", "--max-age=7d"])
    assert read(settings) == settings_with("fmt", new, events=[*MATCHERS], timeout=5, **{"async": True})


def test_install_adds_the_event_that_an_older_version_lacked(settings: Path) -> None:
    write(settings, settings_with("VAR=1 coatcheck hook --max-bytes=7"))

    assert call("install").exit_code == 0

    hooks = json.loads(read(settings))["hooks"]
    assert [*hooks] == [*MATCHERS]
    commands = [each["command"] for (entry,) in hooks.values() for each in entry["hooks"]]
    assert commands == ["VAR=1 " + shlex.join([*program(), "hook", "--max-bytes=7"])] * 2


@pytest.mark.parametrize("event", MATCHERS)
def test_install_refuses_a_file_that_has_the_hook_twice(settings: Path, event: str) -> None:
    text = settings_with("coatcheck hook", "python -m coatcheck hook --max-bytes=7", events=[event])
    write(settings, text)

    refused = call("install")

    assert refused.exit_code == 2
    assert f"it runs coatcheck hook 2 times at {event}: delete all but one by hand, or run" in refused.output
    assert read(settings) == text
    assert call("uninstall").exit_code == 0
    assert "coatcheck" not in read(settings)


@pytest.mark.parametrize(("there", "asked"), [([], ["--project"]), (["--project"], [])])
def test_install_says_which_other_settings_have_the_hook(
    home: Path, project: Path, there: list[str], asked: list[str]
) -> None:
    other = (project if there else home) / ".claude/settings.json"
    assert " has the hook too" not in call("install", *there).stderr

    ran = call("install", *asked)

    assert ran.exit_code == 0
    assert f"{other} has the hook too." in ran.stderr
    assert ran.stderr.endswith(f" coatcheck hook uninstall{' --project' if there else ''}\n")


@pytest.mark.parametrize(("there", "asked"), [([], ["--project"]), (["--project"], [])])
def test_uninstall_names_the_other_file_if_that_one_has_the_hook(
    home: Path, project: Path, there: list[str], asked: list[str]
) -> None:
    call("install", *there)
    other = (project if there else home) / ".claude/settings.json"

    told = f"{other} has it: {' '.join(['coatcheck hook uninstall', *there])}\n"
    assert call("uninstall", *asked).output.endswith(told)
    write(other, "{")
    assert "has it" not in call("uninstall", *asked).output


NOTES = [
    pytest.param('{\n  // a\n  "hooks": { /* b */ }\n}\n', id="in an object"),
    pytest.param('{"hooks": {"PostToolUse": [\n    // a\n]}}', id="in an array"),
    pytest.param("{\n  // nothing yet\n}", id="in the file"),
]


@pytest.mark.parametrize("text", NOTES)
def test_uninstall_keeps_comments_in_what_it_leaves_empty(settings: Path, text: str) -> None:
    write(settings, text)
    call("install")
    assert call("uninstall").exit_code == 0

    left = read(settings)
    assert "coatcheck" not in left
    for comment in ("// a", "/* b */", "// nothing yet"):
        assert comment in left or comment not in text
    assert call("install").exit_code == 0, "it is still a file that is understood"


@pytest.mark.parametrize(
    ("before", "after"),
    [("// mine\n{},", ""), ("", "// mine\n"), ("", "/* mine */,{}"), ("{}, // mine\n", ""), ("{} /* mine */,", ",{}")],
)
def test_uninstall_keeps_the_comments_around_its_entry(settings: Path, before: str, after: str) -> None:
    write(settings, "{}")
    call("install")
    entry = json.dumps(json.loads(read(settings))["hooks"]["PostToolUse"][0])
    write(settings, f'{{"hooks": {{"PostToolUse": [{before}{entry}{after}]}}}}')

    assert call("uninstall").exit_code == 0

    left = read(settings)
    assert "coatcheck" not in left
    assert left.count("mine") == 1
    assert left.count("{}") == f"{before}{after}".count("{}")
    assert call("uninstall").output.startswith("Nothing to do"), "it is still a file that is understood"


def test_a_dry_run_shows_the_difference_and_writes_nothing(settings: Path) -> None:
    write(settings, COMMENTED)

    shown = call("install", "--dry-run").output

    assert '+                        "command": "' in shown
    assert read(settings) == COMMENTED
    assert [each.name for each in settings.parent.iterdir()] == ["settings.json"]


def test_uninstall_removes_only_our_command_from_an_entry(settings: Path) -> None:
    ours = shlex.join([sys.executable, "-m", "coatcheck", "hook"])
    entry = {"matcher": "Bash", "hooks": [{"command": "fmt"}, {"command": ours}, {"command": "log"}]}
    write(settings, json.dumps({"hooks": {"PostToolUse": [entry]}}))

    assert call("uninstall").exit_code == 0

    (left,) = json.loads(read(settings))["hooks"]["PostToolUse"]
    assert left == {"matcher": "Bash", "hooks": [{"command": "fmt"}, {"command": "log"}]}


def test_uninstall_has_nothing_to_do_without_a_settings_file(home: Path) -> None:
    ended = call("uninstall")

    assert ended.exit_code == 0
    assert "Nothing to do" in ended.output
    assert not (home / ".claude").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": }', "settings.json:1: this is not JSON"),
        ("[]", "the file must be an object"),
        ('{"hooks": []}', "hooks must be an object"),
        ('{"hooks": {"PostToolUse": {}}}', "PostToolUse must be an array"),
        ('{"hooks": {}, "hooks": {}}', "'hooks' is there 2 times"),
    ],
)
def test_settings_that_install_does_not_understand_are_refused_and_stay(settings: Path, text: str, reason: str) -> None:
    write(settings, text)

    refused = call("install")

    assert refused.exit_code == 2
    assert reason in " ".join(refused.output.split())
    assert read(settings) == text


def test_a_linked_settings_file_stays_a_link(settings: Path, home: Path) -> None:
    target = home / "dotfiles.json"
    write(target, "{}")
    settings.symlink_to(target)

    call("install")

    assert settings.is_symlink()
    assert "coatcheck hook" in read(target)
