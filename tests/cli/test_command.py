"""The command itself: help, version, exit codes, and what it says when an extra is missing."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from importlib import metadata

import pytest

from coatcheck.cli import main
from coatcheck.cli.app import app
from tests.cli.running import run

COMMANDS = [command.name for command in app.registered_commands if command.name]
MAX_LINES = 30
"""The most lines of a command's help, so that it fits one screen. The help of ``get`` has 24."""

GROUPS = [group.name for group in app.registered_groups if group.name]


@pytest.mark.parametrize(
    "arguments", [("--help",), ("-h",), *((command, "--help") for command in [*COMMANDS, *GROUPS])]
)
def test_help_fits_one_screen_and_states_the_exit_codes(arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)

    assert ran.exit_code == 0
    assert len(ran.output.splitlines()) <= MAX_LINES
    assert max(map(len, ran.output.splitlines())) <= 80
    assert "Exit codes: 0" in ran.output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_no_python_types(command: str) -> None:
    assert not re.search(r"<\w|[{}]", run(command, "--help").output)


def test_help_lists_every_command_with_a_whole_sentence() -> None:
    listed = run("--help").output.partition("Commands:\n")[2].splitlines()

    assert [line.split()[0] for line in listed] == [*COMMANDS, *GROUPS]
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_without_arguments_it_shows_the_help() -> None:
    assert "demo" in run().output


def test_the_version_is_the_installed_one() -> None:
    ran = run("--version")

    assert (ran.exit_code, ran.output) == (0, f"coatcheck {metadata.version('coatcheck')}\n")


def test_an_unknown_command_ends_with_2() -> None:
    assert run("no-such-command").exit_code == 2


def test_without_its_extra_the_command_names_the_extra_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "coatcheck.cli.app", raising=False)

    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert 'pip install "/path/to/checkout[cli]"' in said
    assert said.count("\n") == 1


def test_a_bug_of_our_own_is_not_taken_for_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coatcheck.cli.storage_commands", None)
    monkeypatch.delitem(sys.modules, "coatcheck.cli.app", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r"coatcheck\.cli\.storage_commands"):
        main()


def test_without_langchain_the_demo_names_the_extra_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.agents", None)
    monkeypatch.delitem(sys.modules, "coatcheck.cli.demo", raising=False)

    ran = run("demo")

    assert ran.exit_code == 2
    assert 'pip install "/path/to/checkout[cli,langgraph]"' in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not ran.stdout


def test_the_module_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["coatcheck", "--version"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_module("coatcheck.cli", run_name="__main__")

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("coatcheck ")


def test_help_loads_no_library_that_only_commands_need() -> None:
    asked = "import sys; from coatcheck.cli.app import app; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)

    loaded = set(ran.stdout.split())
    assert "coatcheck" in loaded
    assert loaded.isdisjoint({"boto3", "jmespath", "langchain", "langchain_core", "orjson", "re2", "rich", "tiktoken"})
