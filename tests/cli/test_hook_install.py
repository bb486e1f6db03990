"""``coatcheck hook install`` and ``uninstall``: what they change in the settings of Claude Code, and what never."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from coatcheck.cli.app import app
from coatcheck.hook.command import program

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
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test out of the settings of whoever runs it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Path:
    (home / ".claude").mkdir()
    return home / ".claude/settings.json"


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["hook", *words])


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
def test_uninstall_gives_back_every_byte(settings: Path, text: str) -> None:
    write(settings, text)

    assert call("install").exit_code == 0
    assert " -m coatcheck hook" in read(settings)
    assert call("uninstall").exit_code == 0

    assert read(settings) == text


@pytest.mark.parametrize("text", SETTINGS)
def test_install_adds_one_entry_with_the_interpreter_that_runs(settings: Path, text: str) -> None:
    write(settings, text)
    call("install")
    once = read(settings)
    assert call("install").exit_code == 0

    assert read(settings) == once, "once is enough"
    assert "// mine" in once or "// mine" not in text
    (entry,) = [line for line in once.splitlines() if '"command": ' in line and "coatcheck" in line]
    command = json.loads("{" + entry.strip().rstrip(",") + "}")["command"]
    assert command == shlex.join([*program(), "hook"])
    assert Path(shlex.split(command)[0]).is_absolute()
    assert plain(once)


def test_install_makes_the_file_where_there_is_none(home: Path) -> None:
    assert call("install").exit_code == 0
    path = home / ".claude/settings.json"

    (entry,) = json.loads(read(path))["hooks"]["PostToolUse"]
    assert entry["hooks"][0] == {"type": "command", "command": shlex.join([*program(), "hook"]), "timeout": 60}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["settings.json"]


def test_the_settings_of_a_project_are_those_of_its_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)

    assert call("install", "--project").exit_code == 0

    assert (project / ".claude/settings.json").exists()
    assert not (home / ".claude").exists()


def test_the_options_of_the_hook_become_part_of_its_command_and_stay_until_given_anew(settings: Path) -> None:
    write(settings, "{}")
    call("install", "--", "--max-result-tokens=5000", "--storage=/a folder", "--max-age=7d")
    assert "hook --max-result-tokens=5000 '--storage=/a folder' --max-age=7d" in read(settings)

    ended = call("install", "--max-bytes", "2GB", "--max-result-tokens=6000", "--max-age=")

    assert ended.exit_code == 0
    assert read(settings).count("coatcheck hook") == 1
    assert "hook --max-result-tokens=6000 '--storage=/a folder' --max-bytes=2GB\"" in read(settings)
    assert ended.output.splitlines()[-4:-1] == [
        "--max-result-tokens was 5000, and is 6000 now.",
        "--storage=/a folder is kept from before.",
        "--max-age=7d is no longer there.",
    ]


def test_words_that_somebody_wrote_into_the_command_are_named_when_they_go(settings: Path) -> None:
    write(settings, "{}")
    call("install", "--max-bytes=7")
    write(settings, read(settings).replace("--max-bytes=7", "--max-bytes=7 --old=1 | tee 'log"))

    ended = call("install")

    assert 'hook --max-bytes=7"' in read(settings)
    assert "--max-bytes=7 is kept from before.\n" in ended.output
    assert "'--old' is no option of the hook" in ended.output
    assert "'tee' is no option of the hook" in ended.output


def test_install_says_how_to_list_what_the_hook_stores(settings: Path) -> None:
    write(settings, "{}")

    ended = call("install", "--storage=~/kept here")

    command = shlex.join([*program(), "ls", f"--storage={settings.parent.parent}/kept here", "--all-scopes"])
    assert ended.output.endswith(f"To list what it stores: {command}\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--", "--max-bytes=many"], "--max-bytes must be a number of bytes, or one with KB, MB, GB or TB such as 2GB"),
        (["--max-age=0"], "--max-age must be a number of seconds, or one with s, m, h, d or w such as 7d, not '0'"),
        (["--max-result-tokens=1k"], "--max-result-tokens must be a whole number above 0, not '1k'"),
        (["--storage"], "--storage lacks its value"),
        (["--no-such", "5"], "'--no-such' is no option of the hook; these are --storage, --max-result-tokens,"),
        (["x"], "'x' is no option of the hook; they begin with --"),
    ],
)
def test_a_wrong_option_is_refused_once_before_a_client_meets_it(
    settings: Path, words: list[str], complaint: str
) -> None:
    write(settings, "{}")

    refused = call("install", *words)

    assert refused.exit_code == 2
    assert refused.output.startswith(f"coatcheck: {complaint}")
    assert refused.output.count("option of the hook") <= 1
    assert len(refused.output.splitlines()) == 1
    assert read(settings) == "{}"


def test_a_file_of_settings_is_checked_and_named_with_its_whole_path(
    settings: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(settings, "{}")
    write(home / "coatcheck.toml", "max_tokens = 5\n")
    monkeypatch.chdir(home)
    refused = call("install", "--config=coatcheck.toml")
    assert refused.exit_code == 2
    assert f"{home}/coatcheck.toml:1: max_tokens is unknown" in refused.output

    write(home / "coatcheck.toml", 'storage = "s3://bucket"\n')
    assert "the hook stores in a folder; add --storage=FOLDER" in call("install", "--config=coatcheck.toml").output
    assert read(settings) == "{}"

    assert call("install", "--config=coatcheck.toml", "--storage=/kept").exit_code == 0
    assert f'hook --config={home}/coatcheck.toml --storage=/kept"' in read(settings)


NOTES = [
    pytest.param('{\n  // a\n  "hooks": { /* b */ }\n}\n', id="in an object"),
    pytest.param('{"hooks": {"PostToolUse": [\n    // a\n]}}', id="in an array"),
    pytest.param("{\n  // nothing yet\n}", id="in the file"),
]


@pytest.mark.parametrize("text", NOTES)
def test_uninstall_keeps_comments_in_what_is_empty_then(settings: Path, text: str) -> None:
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


def test_only_our_command_of_an_entry_goes(settings: Path) -> None:
    ours = shlex.join([sys.executable, "-m", "coatcheck", "hook"])
    entry = {"matcher": "Bash", "hooks": [{"command": "fmt"}, {"command": ours}, {"command": "log"}]}
    write(settings, json.dumps({"hooks": {"PostToolUse": [entry]}}))

    assert call("uninstall").exit_code == 0

    (left,) = json.loads(read(settings))["hooks"]["PostToolUse"]
    assert left == {"matcher": "Bash", "hooks": [{"command": "fmt"}, {"command": "log"}]}


def test_without_a_file_there_is_nothing_to_take_out(home: Path) -> None:
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
def test_what_it_does_not_understand_stays_as_it_is(settings: Path, text: str, reason: str) -> None:
    write(settings, text)

    refused = call("install")

    assert refused.exit_code == 2
    assert reason in " ".join(refused.output.split())
    assert read(settings) == text


def test_a_link_stays_a_link(settings: Path, home: Path) -> None:
    target = home / "dotfiles.json"
    write(target, "{}")
    settings.symlink_to(target)

    call("install")

    assert settings.is_symlink()
    assert "coatcheck hook" in read(target)
