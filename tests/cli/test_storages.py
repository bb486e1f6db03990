"""``ls``, ``stats``, ``verify``, ``sweep`` and ``rm`` on a folder: what they say, and what they leave there."""

from __future__ import annotations

import errno
import json
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import Always, FileStorage, Listed, Offloader, TextBlock
from coatcheck.cli.scope_notes import write_note
from coatcheck.core.references import scope_part
from coatcheck.engine.cleanup import overdue
from tests.cli.running import answered, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck import Scope
    from coatcheck.engine.cleanup import SweepLimits

DAY = 86_400
LARGE = "words of a large result\n" * 50_000
"""More than a megabyte, so that its line index is an entry of its own."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COATCHECK_STORAGE", str(tmp_path / "artifacts"))
    monkeypatch.delenv("COATCHECK_SCOPE", raising=False)
    return tmp_path / "artifacts"


HINT = " Other scopes hold 1 content: name one with --scope, or list all with ls --all-scopes."
"""The hint that is added when a scope is empty and another one is not."""


def store(folder: Path, *texts: str, scope: Scope = "default", days: float = 0) -> list[str]:
    """Store strings as last used this many days ago; return their references."""
    storage = FileStorage(folder)
    offloader = Offloader(storage)
    references = []
    for text in texts:
        before = {entry.key for entry in storage.entries("")}
        outcome = offloader.offload([TextBlock(text)], tool_name="search", scope=scope, policy=Always())
        references += [reference.id for reference in outcome.references]
        for entry in storage.entries(""):
            if entry.key not in before:
                age(storage, entry.key, days)
    return references


def age(storage: FileStorage, key: str, days: float) -> None:
    for content_type in ("text/plain", "application/json"):
        path = storage.local_path(key, content_type=content_type)
        if path.exists():
            os.utime(path, (time.time() - days * DAY,) * 2)


def keys(folder: Path) -> set[str]:
    return {entry.key for entry in FileStorage(folder).entries("")}


def test_ls_prints_references_that_get_accepts_most_recently_used_first(folder: Path) -> None:
    store(folder, "old words", days=3)
    store(folder, LARGE, days=1)
    store(folder, "other words", scope="other")

    rows = answered("ls")
    lines = run("ls").stdout.splitlines()

    assert [row["bytes"] for row in rows] == [len(LARGE), 9]
    assert [run("get", row["reference"], "--lines", "1:1").exit_code for row in rows] == [0, 0]
    assert lines[0].split() == ["REFERENCE", "BYTES", "LAST", "SAVED", "OR", "USED", "TYPE"]
    assert [line.split()[:2] for line in lines[1:]] == [
        [rows[0]["reference"], f"{len(LARGE):,}"],
        [rows[1]["reference"], "9"],
    ]
    assert max(map(len, lines)) <= 80


def test_ls_of_a_tool_lists_its_results(folder: Path) -> None:
    offloader = Offloader(FileStorage(folder), policies={"*": Always()})
    for tool in ("get_issue", "list_files"):
        offloader.offload([TextBlock(f"words of {tool}")], tool_name=tool, scope="default")

    (row,) = answered("ls", "--tool", "get_issue")

    assert row["reference"].startswith("get_issue-")
    assert (row["tool"], row["content_type"]) == ("get_issue", "text/plain")
    assert run("ls", "--tool", "get_issue").stdout.splitlines()[1].endswith("  text/plain")
    assert "Nothing of the tool 'grep' is stored" in run("ls", "--tool", "grep").stderr
    assert [run("ls", *more, "--all-scopes").exit_code for more in (("--tool", "grep"), ("--look-up-all",))] == [2, 2]


def test_ls_of_all_scopes_lists_keys(folder: Path) -> None:
    store(folder, "words")
    store(folder, "words", scope="other")

    rows = answered("ls", "--all-scopes")

    assert {row["key"] for row in rows} == keys(folder)
    assert {row["reference"] for row in rows} == {None}
    assert all(key in run("ls", "--all-scopes").stdout for key in keys(folder))


def test_an_empty_scope_is_reported_on_stderr_and_not_on_stdout(folder: Path) -> None:
    store(folder, "words")

    ran = run("ls", "--scope", "other")

    assert (ran.exit_code, ran.stdout) == (0, "")
    assert ran.stderr == f"Nothing is stored in scope 'other' of FileStorage('{folder}').{HINT}\n"
    assert answered("ls", "--scope", "other") == []

    store(folder, "words", scope="third")
    assert " Other scopes hold 2 contents: name one with --scope," in run("ls", "--scope", "other").stderr


def test_no_hint_at_other_scopes_is_given_for_an_empty_storage(folder: Path) -> None:
    folder.mkdir(exist_ok=True)

    assert run("ls").stderr == f"Nothing is stored in scope 'default' of FileStorage('{folder}').\n"


def test_ls_in_a_proxys_folder_names_the_command_that_lists_its_scopes(folder: Path) -> None:
    store(folder, "words", scope="mcp-1")
    write_note(FileStorage(folder), "mcp-1", server="github")

    said = run("ls").stderr

    words = shlex.split(said.partition("name one with --scope, or list those of MCP servers with `")[2].rstrip("`.\n"))
    assert words[0] == "coatcheck"
    (row,) = json.loads(run(*words[1:]).stdout)["scopes"]
    assert run("ls", "--scope", row["scope"]).exit_code == 0


def test_ls_hints_at_the_folders_of_the_proxy_and_the_hook_if_none_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COATCHECK_STORAGE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".coatcheck/mcp").mkdir(parents=True)

    hint = "The MCP proxy and the hook have folders of their own: --storage ~/.coatcheck/mcp.\n"
    assert run("ls").stderr.endswith(f"'). {hint}")
    assert run("ls", "--all-scopes").stderr.endswith(f"'). {hint}")
    assert "have folders" not in run("ls", "--storage", tmp_path).stderr


def test_stats_count_contents_and_bytes_by_scope(folder: Path) -> None:
    store(folder, "words", "more words")
    store(folder, LARGE, scope="thread-1")
    index = sum(entry.size for entry in FileStorage(folder).entries("") if entry.key.endswith("-lines"))

    facts = answered("stats")
    lines = run("stats", "--scope", "thread-1").stdout.splitlines()

    assert index > 0
    assert (facts["contents"], facts["content_bytes"]) == (3, 15 + len(LARGE))
    assert (facts["entries"], facts["bytes"]) == (4, 15 + len(LARGE) + index)
    assert [(row["scope"], row["scope_digest"], row["contents"], row["content_bytes"]) for row in facts["scopes"]] == [
        (None, scope_part("thread-1"), 1, len(LARGE)),
        ("default", scope_part("default"), 2, 15),
    ]
    assert [line.split()[0] for line in lines[2:]] == ["thread-1", "default", "all", "and"]
    assert lines[-2].split()[:4] == ["all", "2", "3", f"{15 + len(LARGE):,}"]
    assert lines[-1] == f"and {index:,} bytes more in indexes of lines and leftovers"
    assert scope_part("thread-1") in run("stats").stdout


def test_stats_show_the_last_tool_of_a_scope_without_a_name(folder: Path) -> None:
    offloader = Offloader(FileStorage(folder))
    offloader.offload([TextBlock(LARGE)], tool_name="get_file", scope="thread-1", policy=Always())

    (line,) = [line for line in run("stats").stdout.splitlines() if line.startswith(scope_part("thread-1"))]

    assert line.split()[1] == "get_file"
    assert len(line) <= 80


def test_stats_distinguish_the_scopes_of_a_tenant_and_show_their_last_tool(folder: Path) -> None:
    tails = set()
    for number in range(3):
        store(folder, "some words", scope=("tenant-7", f"thread-{number}"))
        tails.add(scope_part(("tenant-7", f"thread-{number}"))[-16:])

    rows = [line.split()[:2] for line in run("stats").stdout.splitlines()[2:5]]

    assert sorted(rows) == sorted([f"…{tail}", "search"] for tail in tails)


def test_stats_show_scopes_of_a_proxy_by_server_and_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = folder / "\x1b[31m" / ("a long name " * 4) / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    store(folder, "words", scope="mcp-1")
    store(folder, "words", scope="mcp-2")
    write_note(FileStorage(folder), "mcp-1", server="git\x1b[31m hub")
    write_note(FileStorage(folder), "mcp-2", server="s" * 100)

    lines = run("stats").stdout.splitlines()[2:4]

    assert {line[:33] for line in lines} == {
        "git 31m hub …a long name /project",
        "sssssssssssssss… …g name /project",
    }
    assert all("\x1b" not in line and len(line) <= 80 for line in lines)
    (row,) = [row for row in answered("stats")["scopes"] if row["scope"] == "mcp-1"]
    assert (row["server"], row["folder"]) == ("git\x1b[31m hub", str(project))
    (note,) = folder.glob(f"scopes/{scope_part('mcp-1')}*")
    assert [path.stat().st_mode & 0o777 for path in (note, note.parent)] == [0o600, 0o700]


@pytest.mark.parametrize(
    "planted",
    [
        b"",
        b"[]",
        b"[" * 40_000,
        b"{",
        b'"',
        b"\xff",
        b'{"scope": 1, "server": "a", "folder": "b"}',
        b"null",
        b'{"scope": "another", "server": "a", "folder": "b"}',
        b'{"scope": "mcp-1", "server": "a", "folder": []}',
    ],
)
def test_stats_show_no_name_that_does_not_match_its_digest(folder: Path, planted: bytes) -> None:
    store(folder, "words", scope="mcp-1")
    write_note(FileStorage(folder), "mcp-1", server="issues")
    (note,) = folder.glob("scopes/*")
    note.write_bytes(planted)

    (row,) = answered("stats")["scopes"]

    assert (row["scope"], row["server"], row["folder"]) == (None, None, None)
    note.unlink()
    note.symlink_to(folder)
    assert answered("stats")["scopes"] == [row]


def test_stats_ls_and_verify_agree_on_bytes(folder: Path) -> None:
    store(folder, LARGE, "words")

    listed = sum(row["bytes"] for row in answered("ls"))

    assert answered("stats")["content_bytes"] == listed
    assert run("stats").stdout.splitlines()[-2].split()[3] == f"{listed:,}"
    assert f"2 contents, {listed:,} bytes, and " in run("verify").stdout


def test_stats_show_the_largest_scopes_and_shorten_long_names(folder: Path) -> None:
    store(folder, "the largest of them", scope="s" * 100)
    for number in range(20):
        store(folder, f"words {number}", scope=f"thread-{number}")

    lines = run("stats", "--scope", "s" * 100).stdout.splitlines()

    assert len(lines) == 2 + 15 + 2
    assert lines[2].startswith("s" * 32 + "…")
    assert "... and 6 smaller ones" in lines
    assert max(map(len, lines[1:])) <= 80
    assert len(answered("stats")["scopes"]) == 21


@pytest.mark.parametrize("command", [("stats",), ("verify",), ("sweep", "--max-age=30d")], ids=lambda it: it[0])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_folder_without_a_storage_is_an_error(
    command: tuple[str, ...], options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "another program's").mkdir()
    (tmp_path / "passwd").touch()

    ran = run(*command, "--storage", tmp_path, *options)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"coatcheck: there is no coatcheck storage in {tmp_path}: the first save makes one.")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [("stats",), ("verify",), ("sweep", "--max-age=30d")], ids=lambda it: it[0])
def test_a_storage_that_the_user_may_not_read_is_not_reported_as_missing(
    command: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(folder, "words")

    real = os.lstat

    def refusing(path: str | Path, **options: Any) -> os.stat_result:  # noqa: ANN401 - those of ``os.lstat``
        if folder in Path(path).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, **options)

    monkeypatch.setattr(os, "lstat", refusing)  # not a mode: the tests may run as root, which reads everything

    ran = run(*command)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"coatcheck: {folder}: {os.strerror(errno.EACCES)}\n"


def test_a_storage_that_was_swept_empty_is_still_a_storage(folder: Path) -> None:
    store(folder, "words", days=3)

    assert run("sweep", "--max-age=1d").stdout.startswith("Deleted 1 content, ")
    ran = run("verify")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == "Verified 0 contents, 0 bytes: all as they were saved.\n"


def test_stats_of_an_empty_storage_are_zero(folder: Path) -> None:
    (folder / "v1").mkdir(parents=True)

    facts = answered("stats")

    assert (facts["contents"], facts["bytes"], facts["modified"], facts["scopes"]) == (0, 0, None, [])
    assert run("stats").stdout.splitlines()[-1].split() == ["all", "0", "0", "0", "-"]


def test_verify_reports_that_everything_is_intact_and_changes_nothing(folder: Path) -> None:
    store(folder, "words", LARGE, days=3)
    before = {entry.key: entry.modified for entry in FileStorage(folder).entries("")}

    ran = run("verify")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Verified 2 contents, ")
    assert ran.stdout.endswith(": all as they were saved.\n")
    assert {entry.key: entry.modified for entry in FileStorage(folder).entries("")} == before


def test_verify_names_all_that_is_damaged(folder: Path) -> None:
    store(folder, "well", "to be changed", "to be shortened", "to lose its description", "to be described by nonsense")
    files = {path.read_text(): path for path in folder.rglob("*.txt")}
    well = files.pop("well")
    changed, shortened, undescribed, nonsense = files.values()
    changed.write_bytes(changed.read_bytes().swapcase())
    shortened.write_bytes(shortened.read_bytes()[:-1])
    undescribed.with_suffix(".entry.json").unlink()
    nonsense.with_suffix(".entry.json").write_text("nonsense")

    ran = run("verify")
    facts = json.loads(run("verify", "--json").stdout)

    lines = ran.stdout.splitlines()
    assert ran.exit_code == 1
    assert len(lines) == 5
    assert lines[-1].endswith("bytes: 4 damaged or unreadable.")
    assert all(any(path.stem in line for line in lines[:-1]) for path in files.values())
    assert well.stem not in ran.stdout
    assert {row["key"] for row in facts["damaged"]} == {f"{path.parent.name}/{path.stem}" for path in files.values()}


def test_verify_names_incomplete_entries(folder: Path) -> None:
    store(folder, "to lose its content", scope="one")
    store(folder, LARGE, scope="other")
    lost, whole = sorted(folder.rglob("*.txt"), key=lambda path: path.stat().st_size)
    lost.unlink()
    os.utime(lost.with_suffix(".entry.json"), (time.time() - DAY,) * 2)
    for path in (whole, whole.with_suffix(".entry.json")):
        path.unlink()

    ran = run("verify")

    assert ran.exit_code == 1
    *damaged, last = ran.stdout.splitlines()
    assert any(lost.stem in line and "only half of the entry" in line for line in damaged)
    assert any(f"{whole.stem}-lines: " in line and "but the content is not" in line for line in damaged)
    assert last.endswith("2 damaged or unreadable.")


def test_verify_names_content_that_lost_its_line_index(folder: Path) -> None:
    store(folder, LARGE, days=1)
    for path in folder.rglob("*-lines.*"):
        path.unlink()

    ran = run("verify")

    assert ran.exit_code == 1
    assert "the line index of '" in ran.stdout
    assert ran.stdout.endswith("1 damaged or unreadable.\n")


def test_verify_waits_a_minute_for_a_line_index(folder: Path) -> None:
    store(folder, LARGE)
    for path in folder.rglob("*-lines.*"):
        path.unlink()

    assert run("verify").exit_code == 0


def test_sweep_by_age_deletes_and_says_how_much(folder: Path) -> None:
    store(folder, "old words", LARGE, days=40)
    (kept,) = store(folder, "words", days=20)

    would = run("sweep", "--max-age", "30d", "--dry-run")
    left_by_dry_run = keys(folder)
    ran = run("sweep", "--max-age", "30d")

    assert "within the last hour" not in would.stdout + ran.stdout
    assert len(left_by_dry_run) == 4
    assert would.stdout.startswith("Would delete 2 contents, ")
    assert ran.stdout == would.stdout.replace("Would delete", "Deleted")
    assert len(keys(folder)) == 1
    assert run("cat", kept).stdout == "words"


def test_sweep_lists_the_storage_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(folder, "words", days=0.5 / 24)
    prefixes: list[str] = []
    listing = FileStorage.entries

    def noted(storage: FileStorage, prefix: str) -> list[Listed]:
        prefixes.append(prefix)
        return listing(storage, prefix)

    monkeypatch.setattr(FileStorage, "entries", noted)

    run("sweep", "--max-age", "30d", "--dry-run")

    assert prefixes == [""]


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_sweep_says_why_recent_content_stays(dry_run: tuple[str, ...], folder: Path) -> None:
    store(folder, "words", days=0.5 / 24)

    ran = run("sweep", "--max-bytes", "0", *dry_run)

    assert ran.stdout.splitlines() == [
        f"{'Would delete' if dry_run else 'Deleted'} 0 contents, 0 bytes.",
        "What was saved or used within the last hour stays, whatever the limit.",
    ]
    assert len(keys(folder)) == 1


@pytest.mark.parametrize(
    ("option", "amount", "deleted"),
    [
        ("--max-bytes", "20", 2),
        ("--max-bytes", "0.03KB", 1),
        ("--max-bytes", "1 gb", 0),
        ("--max-scope-bytes", "25", 1),
        ("--max-age", "36h", 2),
        ("--max-age", "2w", 0),
        ("--max-age", "129600s", 2),
        ("--max-age", "2160m", 2),
    ],
)
def test_limits_are_accepted_with_units(option: str, amount: str, deleted: int, folder: Path) -> None:
    store(folder, "a" * 10, days=4)
    store(folder, "b" * 10, days=3)
    store(folder, "c" * 10, days=1)
    store(folder, "d" * 10, scope="other")

    facts = answered("sweep", option, amount)

    assert (facts["deleted"], facts["contents"]) == (deleted, deleted)
    assert len(keys(folder)) == 4 - deleted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "sweep needs a limit: --max-age, --max-bytes or --max-scope-bytes"),
        (("--max-age", "30"), "--max-age must be a number with one of the units s, m, h, d, w, not '30'"),
        (("--max-age", "-1d"), "--max-age must be a number with one of the units s, m, h, d, w, not '-1d'"),
        (
            ("--max-bytes", "5XB"),
            "--max-bytes must be a number alone or with one of the units KB, MB, GB, TB, not '5XB'",
        ),
        (("--max-scope-bytes", "much"), "--max-scope-bytes must be a number"),
    ],
)
def test_an_invalid_limit_is_refused(options: tuple[str, ...], said: str, folder: Path) -> None:
    store(folder, "words", days=40)

    ran = run("sweep", *options)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"coatcheck: {said}")
    assert len(keys(folder)) == 1


def test_an_entry_used_while_sweeping_stays_and_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used, _ = store(folder, "used meanwhile", "old words", days=40)

    def then_used(listed: Sequence[Listed], limits: SweepLimits, *, now: float) -> list[Listed]:
        past = overdue(listed, limits, now=now)
        Offloader(FileStorage(folder)).load(used)
        return past

    monkeypatch.setattr("coatcheck.engine.cleanup.overdue", then_used)

    ran = run("sweep", "--max-age", "30d")

    assert ran.stdout.startswith("Deleted 2 contents, 23 bytes, except 1 of the entries, used meanwhile.\n")
    assert run("cat", used).stdout == "used meanwhile"


class _Bucket:
    """Lists, loads and deletes as a bucket does: it does not sweep by itself."""

    def __init__(self, *modified: float) -> None:
        self.kept = {f"{number:016x}/{number:016x}": time for number, time in enumerate(modified)}

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        raise NotImplementedError

    def load(self, key: str) -> None:
        raise NotImplementedError

    def entries(self, prefix: str) -> list[Listed]:
        return [
            Listed(key=key, size=10, modified=modified) for key, modified in self.kept.items() if key.startswith(prefix)
        ]

    def delete(self, key: str) -> None:
        del self.kept[key]


def test_a_storage_that_does_not_sweep_by_itself_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = _Bucket(1_000, 2_000, time.time())
    monkeypatch.setattr("coatcheck.cli.storage_commands.storage_at", lambda *_, **__: bucket)

    ran = run("sweep", "--max-age", "1d")

    assert ran.exit_code == 0
    assert ran.stdout.startswith("Deleted 2 contents, 20 bytes.\n")
    assert len(bucket.kept) == 1


def test_verify_continues_after_an_entry_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = _Bucket(2_000, 1_000)
    monkeypatch.setattr("coatcheck.cli.storage_commands.storage_at", lambda *_, **__: bucket)

    ran = run("verify")

    assert ran.exit_code == 1
    assert ran.stdout.count("loading (_Bucket) failed: NotImplementedError") == 2
    assert [line.split(": ")[0] for line in ran.stdout.splitlines()[:-1]] == list(bucket.kept)
    assert ran.stdout.endswith("Verified 2 contents, 20 bytes: 2 damaged or unreadable.\n")


def test_rm_deletes_one_scope_whole_and_no_other(folder: Path) -> None:
    store(folder, "words", LARGE, scope="mine")
    (kept,) = store(folder, "words", scope="yours")

    facts = answered("rm", "--scope", "mine", "--yes")

    assert (facts["contents"], facts["deleted"]) == (2, 2)
    assert len(keys(folder)) == 1
    assert run("cat", kept, "--scope", "yours").stdout == "words"


def test_rm_of_a_scope_that_holds_nothing_fails(folder: Path) -> None:
    store(folder, "words")

    ran = run("rm", "--scope", "elsewhere", "--yes")

    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"Nothing is stored in scope 'elsewhere' of FileStorage('{folder}'). Other scopes hold 1 content: name one with"
        " --scope. Where a name is lost, sweep --max-age 30d deletes by age, in all scopes.\n"
    )
    assert len(keys(folder)) == 1


def test_rm_in_a_proxys_folder_names_the_command_that_lists_its_scopes(folder: Path) -> None:
    store(folder, "words", scope="mcp-1")
    write_note(FileStorage(folder), "mcp-1", server="github")

    said = run("rm", "--scope", "mcp-2", "--yes").stderr

    listed = f"`coatcheck mcp stats --json --storage={folder}`"
    assert f": name one with --scope, or list those of MCP servers with {listed}. Where a name is lost, sweep" in said


def test_rm_deletes_every_scope_of_a_tenant_and_no_other(folder: Path) -> None:
    store(folder, "words", scope=("tenant-7", "thread-1"))
    store(folder, "words", LARGE, scope=("tenant-7", "thread-2", "deep"))
    store(folder, "words", scope="tenant-7")
    store(folder, "words", scope=("tenant-77", "thread-1"))

    facts = answered("rm", "--under", "tenant-7", "--yes")

    assert (facts["under"], facts["contents"], facts["deleted"]) == (["tenant-7"], 3, 3)
    assert len(keys(folder)) == 2
    again = run("rm", "--under", "tenant-7", "--yes")
    assert again.exit_code == 1
    assert again.stderr.startswith("Nothing is stored in the scopes under ('tenant-7',) of ")


def test_rm_keeps_the_note_about_a_scope_because_a_running_proxy_writes_it_once(folder: Path) -> None:
    store(folder, "words", scope="mcp-1")
    write_note(FileStorage(folder), "mcp-1", server="github")

    assert run("rm", "--scope", "mcp-1", "--yes").exit_code == 0

    assert [path.name for path in folder.glob("scopes/*")] == [f"{scope_part('mcp-1')}.json"]


def test_rm_of_a_reference_says_that_only_scopes_are_deleted(folder: Path) -> None:
    (reference,) = store(folder, "words")

    ran = run("rm", reference, "--yes")

    assert (ran.exit_code, ran.stdout) == (2, "")
    said = f"rm deletes whole scopes, with --scope or --under, not a single content such as '{reference}'"
    assert ran.stderr == f"coatcheck: {said}\n"
    assert len(keys(folder)) == 1
    assert "A single content cannot be deleted" in run("rm", "--help").stdout


@pytest.mark.parametrize("words", [(), ("--scope", "a", "--under", "a")])
def test_rm_takes_either_a_scope_or_a_tenant(words: tuple[str, ...], folder: Path) -> None:
    store(folder, "words")

    ran = run("rm", "--yes", *words)

    assert (ran.exit_code, ran.stderr) == (2, "coatcheck: rm needs either --scope or --under\n")
    assert len(keys(folder)) == 1


def test_rm_takes_no_scope_from_the_environment(folder: Path) -> None:
    store(folder, "words")

    ran = run("rm", "--yes", env={"COATCHECK_SCOPE": "default"})

    assert ran.exit_code == 2
    assert len(keys(folder)) == 1
