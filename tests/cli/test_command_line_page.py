"""The examples of docs/command-line.md, run as they are written there."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage, Offloader, TextBlock
from tests.cli.running import SCRIPT
from tests.docs.command_line import PAGE, with_commands

if TYPE_CHECKING:
    from pathlib import Path

MARKDOWN = PAGE.read_text(encoding="utf-8")
COMMANDS = re.findall("```sh\n(.*?)```", MARKDOWN, re.DOTALL)[0].splitlines()
SHELL = shutil.which("bash")
LOG = "".join(f"{number} {'ERROR' if number == 777 else 'fine'}\n" for number in range(5_000))


@pytest.mark.skipif(SHELL is None, reason="no shell that knows pipes")
def test_the_commands_on_the_page_work(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    env = {"PATH": f"{SCRIPT.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    said: dict[str, str] = {}
    for line in COMMANDS:
        reference = re.search("stdin-[0-9a-f]{16}-[0-9a-f]{4}", said.get("put", ""))
        command = line.replace("some-command", "cat log").replace("REF", reference.group() if reference else "REF")
        ran = subprocess.run(
            [str(SHELL), "-c", command], cwd=tmp_path, env=env, input="y\n", capture_output=True, text=True, check=True
        )
        said[line.partition("coatcheck ")[2].split()[0]] = ran.stdout

    assert list(said) == ["put", "get", "cat", "show", "ls", "stats", "verify", "sweep", "rm"]
    assert "> 778| 777 ERROR" in said["get"]
    assert (tmp_path / "whole.txt").read_text() == LOG


def test_the_command_for_the_langchain_agent_lists_what_it_stored(tmp_path: Path) -> None:
    (command,) = re.findall(r"`(coatcheck ls --storage \./artifacts [^`]*)`", MARKDOWN)
    offloader = Offloader(FileStorage(tmp_path / "artifacts"))
    offloader.offload([TextBlock(LOG)], tool_name="search", identity="conversation-1")

    ran = subprocess.run([SCRIPT, *command.split()[1:]], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert len(ran.stdout.splitlines()) == 2
    assert f"{len(LOG):,}" in ran.stdout


def test_the_page_has_the_help_of_every_command() -> None:
    assert with_commands(MARKDOWN) == MARKDOWN, "python -m tests.docs.rewrite"
