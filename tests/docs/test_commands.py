"""Everything that pages tell people to type exists: extras, packages, sessions, files and ``coatcheck`` commands."""

# ruff: noqa: ANN401 - the class of the commands is private to their library

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import PAGES, blocks_of
from tests.meta.source_tree import ROOT, pyproject

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = {"coatcheck", "echo", "export", "nox", "pip", "python", "some-command"}
"""The programs that pages may name. ``some-command`` stands for whatever the reader runs."""

MIN_COMMANDS = 20
"""Fewer commands than this mean that the parser is broken."""

_REQUIREMENT = re.compile(r"(?:/path/to/checkout|([\w-]+))(?:\[([\w,-]+)\])?")
_INLINE = re.compile(r"`((?:coatcheck|nox|pip install|python) [^`]+)`")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every command on the pages with its place, from blocks and from sentences."""
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        for block in blocks_of(page):
            if block.kind == "shell":
                for number, line in enumerate(block.text.splitlines(), block.line + 1):
                    yield from ((f"{name}:{number}", words) for words in commands_in(line))
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield from ((name, words) for found in _INLINE.findall(prose) for words in commands_in(found))


def commands_in(line: str) -> list[list[str]]:
    """Return the commands of a line, split at pipes and separators, without variable assignments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&>;")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;"):
            found.append([])
        else:
            found[-1].append(word)
    return [command for words in found if (command := [word for word in words if not re.match(r"[A-Z_]+=", word)])]


COMMANDS = list(commands())


def those_of(program: str) -> list[Any]:
    """Return the arguments of each command that runs a program, as test parameters."""
    found = [
        pytest.param(words[1:], id=f"{place} {' '.join(words)}") for place, words in COMMANDS if words[0] == program
    ]
    return list({parameter.id: parameter for parameter in found}.values())


def table(*keys: str) -> dict[str, Any]:
    found: Any = pyproject()
    for key in keys:
        found = found[key]
    assert isinstance(found, dict)
    return found


def test_every_program_is_known() -> None:
    assert {words[0] for _, words in COMMANDS} <= PROGRAMS
    assert len(COMMANDS) >= MIN_COMMANDS


@pytest.mark.parametrize("arguments", those_of("pip"))
def test_every_package_and_extra_to_install_is_in_pyproject(arguments: list[str]) -> None:
    extras = table("project", "optional-dependencies")
    named = re.findall(r'"([\w-]+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert arguments[0] == "install"
    for requirement in arguments[1:]:
        found = _REQUIREMENT.fullmatch(requirement)
        assert found is not None
        if found[1] in {None, "coatcheck"}:
            assert set((found[2] or "").split(",")) <= {"", *extras}
        else:
            assert found[1] in named


@cache
def sessions_and_parameters() -> tuple[set[str], set[str]]:
    """Return the names of all sessions in noxfile.py, and all parameters that may follow in parentheses."""
    nodes = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
    sessions = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.decorator_list}
    parameters = {
        *("core", *(path.stem for folder in ("benchmarks", "examples") for path in (ROOT / folder).glob("*.py"))),
        *(
            path.name.replace("_", "-")
            for folder in ("adapters", "storage")
            for path in (ROOT / "tests" / folder).iterdir()
            if path.is_dir()
        ),
    }
    return sessions, parameters


@pytest.mark.parametrize("arguments", those_of("nox"))
def test_every_session_exists(arguments: list[str]) -> None:
    sessions, parameters = sessions_and_parameters()
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments

    for word in own:
        if not word.startswith("-"):
            session, _, parameter = word.removesuffix(")").partition("(")
            assert session in sessions
            assert parameter in {"", *parameters}
        else:
            assert word in {"-s", "-R", "-l"}


@pytest.mark.parametrize("arguments", those_of("python"))
def test_every_file_and_module_exists(arguments: list[str]) -> None:
    name = arguments[1].replace(".", "/") if arguments[0] == "-m" else arguments[0]
    places = [ROOT / name, ROOT / f"{name}.py", ROOT / "src" / name]

    assert any(place.exists() for place in places)


@pytest.fixture(scope="module")
def root_command() -> Any:
    """Return the command line as Typer's object. It is made once, because that takes longer than all lookups."""
    typer_main = pytest.importorskip("typer.main", reason="the session `cli` installs it")
    from coatcheck.cli.app import app  # noqa: PLC0415 - needs the extra

    return typer_main.get_command(app)


@pytest.mark.parametrize("arguments", those_of("coatcheck"))
def test_every_command_of_ours_exists(arguments: list[str], root_command: Any) -> None:
    command = root_command
    words = iter(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    for word in words:
        if word.startswith("-"):
            named = {
                name: parameter for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
            }
            option, given, _ = word.partition("=")
            assert option in {*named, "--help"}
            if option in named and not (given or named[option].is_flag):
                next(words, None)  # its value
        elif word == "COMMAND":  # as in a line of usage, after [OPTIONS]
            break
        elif hasattr(command, "commands") and word != "[OPTIONS]":
            assert word in command.commands
            command = command.commands[word]
