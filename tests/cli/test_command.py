"""The command itself: help, version, exit codes, and what it says where an extra is missing."""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib import metadata

import pytest

from coatcheck.cli import main
from tests.cli.running import run

SCREEN_LINES = 40


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("demo", "--help")])
def test_help_fits_one_screen_and_states_the_exit_codes(arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)

    assert ran.exit_code == 0
    assert len(ran.output.splitlines()) <= SCREEN_LINES
    assert "Exit codes: 0" in ran.output


def test_without_arguments_it_shows_the_help() -> None:
    assert "demo" in run().output


def test_the_version_is_the_installed_one() -> None:
    ran = run("--version")

    assert (ran.exit_code, ran.output) == (0, f"coatcheck {metadata.version('coatcheck')}\n")


def test_an_unknown_command_could_not_run() -> None:
    assert run("no-such-command").exit_code == 2


@pytest.mark.parametrize("extra", ["typer", "rich"])
def test_without_its_extra_it_names_it_on_one_line(
    extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    monkeypatch.setitem(sys.modules, f"{extra}.console", None)
    for module in ("coatcheck.cli.app", "coatcheck.cli.screen"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert 'pip install "coatcheck[cli]"' in said
    assert said.count("\n") == 1


def test_a_fault_of_our_own_is_not_taken_for_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coatcheck.cli.screen", None)
    monkeypatch.delitem(sys.modules, "coatcheck.cli.app", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r"coatcheck\.cli\.screen"):
        main()


def test_without_langchain_the_demo_names_the_extra_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.agents", None)
    monkeypatch.delitem(sys.modules, "coatcheck.cli.demo", raising=False)

    ran = run("demo")

    assert ran.exit_code == 2
    assert 'pip install "coatcheck[cli,langgraph]"' in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not ran.stdout


def test_the_module_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["coatcheck", "--version"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_module("coatcheck.cli", run_name="__main__")

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("coatcheck ")


def test_help_loads_no_framework() -> None:
    asked = (
        "import sys; from coatcheck.cli.app import app; print([name for name in sys.modules if 'langchain' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)

    assert ran.stdout.strip() == "[]"
