"""Each client's own files: which one ``install`` picks, and how it edits files as the client documents them.

The fixtures are ours, in the shapes that ``SOURCES`` names. On this system, macOS and Windows locations are just paths.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from coatcheck import InvalidRequest
from coatcheck_mcp.install import CLIENTS, Machine, files_of, find_servers, install, uninstall, write

FIXTURES = Path(__file__).parent / "clients"

SOURCES = {
    "claude-code.user.json": "https://code.claude.com/docs/en/mcp",
    "claude-code.project.json": "https://code.claude.com/docs/en/mcp",
    "cursor.json": "https://cursor.com/docs/mcp",
    "vscode.jsonc": "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    "vscode.portable.json": "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
}
"""The client's documentation that each fixture takes its shape from."""


@dataclass(frozen=True)
class Desk:
    """A user's folder, and a project in it."""

    home: Path
    project: Path

    @property
    def machine(self) -> Machine:
        return Machine(home=self.home, folder=self.project / "src", variables={}, system="linux")

    def put(self, fixture: str, path: str) -> Path:
        """Copy a fixture to where a client looks, with its project paths set to this project."""
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (FIXTURES / fixture).read_text(encoding="utf-8")
        target.write_text(text.replace("/srv/engine", str(self.project)), encoding="utf-8")
        return target

    def write(self, text: str, path: str = ".cursor/mcp.json") -> Path:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
        return target

    def install(self, client: str, server: str = "issues", file: Path | None = None) -> Path:
        """Install, and return the changed file."""
        change = install(client, server, self.machine, file=file)
        write(change.found.source, change.text, backups=self.home / "backups")
        return change.found.source.path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    project = tmp_path / "home/engine"
    (project / "src").mkdir(parents=True)
    return Desk(tmp_path / "home", project)


def test_every_fixture_has_a_source() -> None:
    assert sorted(path.name for path in FIXTURES.iterdir()) == sorted(SOURCES)


@dataclass(frozen=True)
class Case:
    """A fixture, where the client looks for it, a server in it, and what the proxy's arguments end with."""

    fixture: str
    path: str
    server: str
    behind: tuple[str, ...]

    @property
    def client(self) -> str:
        return self.fixture.partition(".")[0]


ISSUES = ("--", "npx", "-y", "@example/issues-server")
KEY, LOGIN = (f"{name}: $COATCHECK_HEADER_{name.replace('-', '_')}" for name in ("X-Api-Key", "Authorization"))
FAR = ("--url", "https://far.example.com/mcp")
CASES = [
    Case("claude-code.project.json", "engine/.mcp.json", "issues", ("--", "${ENGINE}/issues", "--project", "engine")),
    Case("claude-code.user.json", ".claude.json", "issues", ISSUES),
    Case("claude-code.user.json", ".claude.json", "clock", ("--", "/opt/clock/serve")),
    Case("cursor.json", "engine/.cursor/mcp.json", "issues", (*ISSUES, "${workspaceFolder}")),
    Case("cursor.json", ".cursor/mcp.json", "far", ("--header", KEY, *FAR)),
    Case("vscode.jsonc", "engine/.vscode/mcp.json", "issues", (*ISSUES, "--token=${input:issues-token}")),
    Case("vscode.jsonc", ".config/Code/User/mcp.json", "far", ("--header", LOGIN, *FAR)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path}-{case.server}")
def test_a_file_as_the_client_documents_it_is_edited_and_restored(desk: Desk, case: Case) -> None:
    file = desk.put(case.fixture, case.path)
    before = file.read_bytes()

    assert desk.install(case.client, case.server) == file

    (found,) = [each for each in find_servers(case.client, desk.machine, server=case.server) if each.goes_through]
    args = found.entry.member("args")
    assert args is not None
    assert args.value.strings is not None
    assert tuple(args.value.strings[-len(case.behind) - 2 :]) == ("--name", case.server, *case.behind)
    assert uninstall(case.client, case.server, desk.machine).text.encode() == before


def test_the_portable_file_of_vs_code_is_edited_if_the_user_names_it(desk: Desk) -> None:
    file = desk.put("vscode.portable.json", "engine/.mcp.json")

    assert desk.install("vscode", file=file) == file
    assert uninstall("vscode", "issues", desk.machine, file=file).is_needed


def test_claude_code_takes_local_before_project_before_user(desk: Desk) -> None:
    own, project = (
        desk.put("claude-code.user.json", ".claude.json"),
        desk.put("claude-code.project.json", "engine/.mcp.json"),
    )

    change = install("claude-code", "issues", desk.machine)
    assert (change.found.source.path, change.found.place.reach) == (own, "local")
    assert [(place.path, place.reach) for place in change.others] == [(project, "project"), (own, "user")]

    elsewhere = Machine(home=desk.home, folder=desk.home, variables={}, system="linux")
    assert install("claude-code", "issues", elsewhere).found.place.reach == "user"

    own.unlink()
    assert install("claude-code", "issues", desk.machine).found.place.reach == "project"


def test_claude_code_may_keep_its_file_elsewhere(desk: Desk, tmp_path: Path) -> None:
    file = desk.put("claude-code.user.json", "moved/.claude.json")
    machine = Machine(home=desk.home, folder=desk.project, variables={"CLAUDE_CONFIG_DIR": str(file.parent)})

    assert install("claude-code", "clock", machine).found.source.path == file


def test_a_file_that_the_user_names_takes_precedence_over_all_others(desk: Desk) -> None:
    desk.put("claude-code.user.json", ".claude.json")
    project = desk.put("claude-code.project.json", "engine/.mcp.json")

    assert install("claude-code", "issues", desk.machine, file=project).found.source.path == project


@pytest.mark.parametrize(
    ("client", "fixture", "folder"), [("cursor", "cursor.json", ".cursor"), ("vscode", "vscode.jsonc", ".vscode")]
)
def test_if_the_client_does_not_say_which_file_counts_the_user_must(
    desk: Desk, client: str, fixture: str, folder: str
) -> None:
    near = desk.put(fixture, f"engine/src/{folder}/mcp.json")
    far = desk.put(fixture, f"engine/{folder}/mcp.json")

    with pytest.raises(InvalidRequest) as error:
        install(client, "issues", desk.machine)

    assert f"'issues' is in {near} and {far}, and {client} does not say which one counts; choose with --file" in str(
        error.value
    )
    assert install(client, "issues", desk.machine, file=far).found.source.path == far


def test_uninstall_picks_the_entry_that_goes_through_coatcheck(desk: Desk) -> None:
    near, far = (desk.put("cursor.json", path) for path in ("engine/.cursor/mcp.json", ".cursor/mcp.json"))
    desk.install("cursor", file=far)

    assert uninstall("cursor", "issues", desk.machine).found.source.path == far
    assert not uninstall("cursor", "issues", desk.machine, file=near).is_needed


def test_installing_twice_changes_nothing(desk: Desk) -> None:
    desk.put("cursor.json", ".cursor/mcp.json")
    desk.install("cursor")

    again = install("cursor", "issues", desk.machine)

    assert not again.is_needed
    assert again.diff == ""


def test_uninstall_keeps_edits_of_the_file_since_the_installation(desk: Desk) -> None:
    file = desk.put("vscode.jsonc", ".vscode/mcp.json")
    before = file.read_text()
    desk.install("vscode")
    edits = [
        ('"LEVEL": "debug"', '"LEVEL": "info"'),
        ('"servers": {', '"servers": {\n        "new": {"command": "n"},'),
    ]
    for old, new in edits:
        before = before.replace(old, new)
        file.write_text(file.read_text().replace(old, new))

    assert uninstall("vscode", "issues", desk.machine).text == before


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_bytes_around_the_entry_stay(desk: Desk, ends: str, mark: str) -> None:
    text = mark + (FIXTURES / "vscode.jsonc").read_text().replace("\n", ends)
    file = desk.write(text, ".vscode/mcp.json")
    desk.install("vscode")

    lines, after = text.split("\n"), file.read_bytes().decode().split("\n")

    assert len(lines) == len(after)
    assert sum(old != new for old, new in zip(lines, after, strict=True)) == 2  # command, and the bracket of args


def test_the_diff_shows_the_change_to_the_file(desk: Desk) -> None:
    file = desk.write('{"mcpServers": {\n"a": {"command": "x"}}}')

    lines = install("cursor", "a", desk.machine).diff.splitlines()

    assert lines[:2] == [f"--- {file}", f"+++ {file}"]
    assert lines[4] == '-"a": {"command": "x"}}}'
    assert lines[6].startswith('+"a": {"command": ')
    assert lines[5] == lines[7] == "\\ No newline at end of file"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", ":1: this is not JSON: a key in double quotes should come here"),
        ('{"mcpServers": []}', ":1: 'mcpServers' must be an object"),
        ('{\n"mcpServers": {},\n"mcpServers": {}}', ":1: 'mcpServers' is there 2 times; keep one of them"),
        ('{"mcpServers":\n{"issues": {}, "issues": {}}}', ":2: 'issues' is there 2 times; keep one of them"),
        ('{"mcpServers":\n{"issues":\n1}}', ":3: 'issues' stays as it is: it is not an object; edit it by hand"),
        (
            '{"mcpServers": {"b": {}, "a": {}}}',
            "no file of cursor has a server 'issues'; it has 'b', 'a'; --file",
        ),
        ("[1]", "no file of cursor has a server 'issues'; --file names another file"),
        ("", "no file of cursor has a server 'issues'; --file names another file"),
        (f'{{"a": {"[" * 5_000}', "more than 100 levels"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_and_left_as_it_is(desk: Desk, text: str, complaint: str) -> None:
    file = desk.write(text)

    with pytest.raises(InvalidRequest) as error:
        install("cursor", "issues", desk.machine)

    assert complaint in str(error.value)
    assert file.read_text() == text


def test_a_key_that_occurs_twice_elsewhere_does_not_matter(desk: Desk) -> None:
    desk.write('{"a": 1, "a": 2, "mcpServers": {"b": 1, "b": 2, "issues": {"command": "x"}}}')

    assert install("cursor", "issues", desk.machine).is_needed


def test_unknown_clients_and_missing_files_are_named(desk: Desk) -> None:
    with pytest.raises(
        InvalidRequest, match=r"'zed' is not one of claude-code, cursor, vscode; for others, .*docs/mcp-clients\.md$"
    ):
        install("zed", "issues", desk.machine)
    with pytest.raises(InvalidRequest, match=r"there is no file .*none\.json"):
        install("cursor", "issues", desk.machine, file=desk.home / "none.json")


def test_a_large_file_is_edited(desk: Desk) -> None:
    history = [{"display": f"prompt {number} " * 20, "pastedContents": {}} for number in range(10_000)]
    file = desk.write(json.dumps({"history": history, "mcpServers": {"issues": {"command": "x"}}}), ".claude.json")

    assert file.stat().st_size > 2_000_000
    assert install("claude-code", "issues", desk.machine).is_needed


@pytest.mark.parametrize(
    ("system", "variables", "client", "path"),
    [
        ("linux", {}, "vscode", ".config/Code/User/mcp.json"),
        ("linux", {"XDG_CONFIG_HOME": "HOME/own"}, "vscode", "own/Code/User/mcp.json"),
        ("darwin", {}, "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("win32", {"APPDATA": "HOME/AppData/Roaming"}, "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("win32", {}, "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("darwin", {}, "cursor", ".cursor/mcp.json"),
        ("win32", {}, "cursor", ".cursor/mcp.json"),
        ("darwin", {}, "claude-code", ".claude.json"),
    ],
)
def test_files_are_found_where_each_system_keeps_them(
    desk: Desk, system: str, variables: dict[str, str], client: str, path: str
) -> None:
    file = desk.write("{}", path)
    given = {name: value.replace("HOME", str(desk.home)) for name, value in variables.items()}

    assert files_of(client, Machine(home=desk.home, folder=desk.project, variables=given, system=system)) == [file]


def test_a_windows_project_is_found_with_its_own_slashes_and_with_those_of_claude_code() -> None:
    class Drive(type(Path())):  # type: ignore[misc]
        """A path whose string is as on Windows."""

        def __str__(self) -> str:
            return str(super().__str__()).replace("/", "\\")

        def as_posix(self) -> str:
            return str(self).replace("\\", "/")

    machine = Machine(home=Path("/home"), folder=Drive("/engine"), variables={}, system="win32")
    names = [place.keys[1] for place in CLIENTS["claude-code"].places(machine) if place.reach == "local"]

    assert names[:2] == ["\\engine", "/engine"]


def test_every_client_has_a_fixture() -> None:
    assert {name.partition(".")[0] for name in SOURCES} == set(CLIENTS)
