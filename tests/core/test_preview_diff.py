"""A diff is shown by the files that it changes, each with the line on which it begins."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.preview import Previewed, preview
from coatcheck.core.preview.kinds import kinds_of
from coatcheck.core.tokens import TiktokenCounter
from tests.core.result_strategies import as_diff

if TYPE_CHECKING:
    from pathlib import Path

COUNTER = TiktokenCounter()
ROW = re.compile(r"(\d+): (.+?)(?: \+([\d,]+))?(?: -([\d,]+))?")
LIKE_HEADERS = ["", "a", "-- old", "++ new", "-- a/x.txt\tnow", "@@ -1 +1 @@ f()", "diff --git a/x b/x", "\\ no", "汉"]
"""Lines of files that look like headers once a sign stands before them."""

MERGE = """\
diff --cc main.py
index 5f2a1b3,7c9d0e1..0000000
--- a/main.py
+++ b/main.py
@@@ -1,2 -1,2 +1,2 @@@ def run():
- left
 -right
++both
"""


def _shown(text: str, budget: int = 500) -> list[str]:
    return preview(Previewed.of(text), COUNTER, budget=budget).split("\n")


def _rows(shown: list[str]) -> list[tuple[int, str, int, int]]:
    """Return the line, the name, and the numbers of added and of removed lines of each file that is shown."""
    rows = filter(None, map(ROW.fullmatch, shown))
    return [(int(row[1]), row[2], _number(row[3]), _number(row[4])) for row in rows]


def _number(digits: str | None) -> int:
    return int((digits or "0").replace(",", ""))


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false")
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    done = subprocess.run([git, *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two commits: files changed, added, deleted and renamed, one of them binary."""
    folder = tmp_path_factory.mktemp("repository")
    _git(folder, "init", "-q")
    for number in range(30):
        functions = (f"def f_{n}():\n    return {n}\n\n" for n in range(number, number + 40))
        (folder / f"part_{number}.py").write_text("".join(functions))
    (folder / "picture.bin").write_bytes(bytes(range(256)))
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "first")
    for number in range(0, 30, 2):
        path = folder / f"part_{number}.py"
        path.write_text(
            path.read_text().replace("return 30\n", "return 8\n    # more\n").replace("return 36\n", "return 3\n")
        )
    (folder / "part_1.py").unlink()
    (folder / "part_3.py").rename(folder / "renamed.py")
    (folder / "new file.txt").write_text("one\ntwo")
    (folder / "picture.bin").write_bytes(bytes(256))
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "second: ERROR is only a word here")
    return folder


@pytest.mark.parametrize(
    ("how", "counted"),
    [
        (("show",), ("show", "--format=")),
        (("diff", "HEAD~1", "HEAD"), ("diff", "HEAD~1", "HEAD")),
        (("diff", "-U0", "HEAD~1", "HEAD"), ("diff", "HEAD~1", "HEAD")),
        (("log", "-p"), ("log", "--format=")),
        (("format-patch", "--stdout", "--root", "HEAD"), ("log", "--reverse", "--format=")),
    ],
)
def test_files_and_counts_are_those_of_git(repository: Path, how: tuple[str, ...], counted: tuple[str, ...]) -> None:
    text = _git(repository, *how)
    of_git = [row.split("\t") for row in _git(repository, *counted, "--numstat").split("\n") if row]
    rows = _rows(_shown(text, 2_000))
    lines = text.split("\n")

    assert [row[2:] for row in rows] == [tuple(int(count.replace("-", "0")) for count in row[:2]) for row in of_git]
    assert all(lines[first - 1].startswith("diff --git ") for first, *_ in rows)
    assert {"new file.txt", "part_1.py", "picture.bin", "renamed.py"} <= {row[1] for row in rows}


@given(st.lists(st.sampled_from(LIKE_HEADERS)), st.lists(st.sampled_from(LIKE_HEADERS)))
def test_no_line_of_a_hunk_is_taken_for_a_header(old: list[str], new: list[str]) -> None:
    text = as_diff([*old, "old"], [*new, "new"], 20)
    one = as_diff([*old, "old"], [*new, "new"], 1).splitlines()
    counts = tuple(sum(line.startswith(sign) for line in one[2:]) for sign in "+-")
    rows = _rows(_shown(text, min(500, COUNTER.count(text) - 1)))

    assert rows
    assert rows == [(1 + at * len(one), f"part_{at}.txt", *counts) for at in range(len(rows))]


def test_the_headings_of_hunks_follow_their_file_and_the_text_follows_both(repository: Path) -> None:
    shown = _shown(_git(repository, "show", "--", "part_0.py", "part_2.py"), 300)

    assert shown[0] == "[diff: 2 files, 6 lines added, 4 removed; each file with the line on which it begins:]"
    assert [row for row in shown if row.startswith("  ")][:2] == ["  11: def f_29():", "  21: def f_35():"]
    assert "    second: ERROR is only a word here" in shown


def test_files_that_do_not_fit_are_counted(repository: Path) -> None:
    shown = _shown(_git(repository, "diff", "HEAD~1", "HEAD"), 150)

    assert shown[-1] == f"[… {19 - len(_rows(shown))} more files …]"
    assert not any(line.startswith("  ") for line in shown)


def test_the_lines_of_a_merge_are_not_counted() -> None:
    rows = _rows(_shown(MERGE * 20))

    assert rows[:2] == [(1, "main.py", 0, 0), (9, "main.py", 0, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "diff - of words\n" * 90,
        "Index: what this book is about\n\n" + "It is about diffs.\n" * 200,
        f"commit {'a' * 40}\n\n" + "    a long message\n" * 200,
        MERGE + "This is what came of the merge.\n" * 200,
        "--- old\n+++ new\n@@ -1 +1 @@\n-a\n+b\n" + "This is how a diff looks.\n" * 200,
    ],
)
def test_text_that_only_begins_like_a_diff_is_shown_as_text(text: str) -> None:
    assert next(kinds_of(Previewed.of(text))).__name__ == "preview_diff"
    assert not _shown(text, 200)[0].startswith("[diff")


def test_a_hunk_of_absurd_length_is_no_fault() -> None:
    content = Previewed.of(f"--- a/x\n+++ b/x\n@@ -1,{'9' * 5_000} +1 @@\n" + "-a\n" * 900)

    assert preview(content, COUNTER, budget=200)
    assert not content.failures


def test_the_errors_of_a_command_that_ran_after_a_diff_are_shown() -> None:
    diff = as_diff(["old"] * 20, ["new"] * 20, 40)
    after = "ok\n" * 400 + "ERROR: no space left on device\n" + "ok\n" * 400

    assert any("no space left" in line for line in _shown(diff + after, 300))
    assert _rows(_shown(diff + "-- \n2.39.5\n\n", 300))


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("diff --git a/my tool.sh b/my tool.sh\nold mode 100644\nnew mode 100755", "my tool.sh"),
        ("diff --git a/my b/tool b/my b/tool\nindex 1..2\nBinary files differ", "my b/tool"),
        ("diff --git my tool my tool\nindex 1..2\nBinary files differ", "my tool"),
        ("diff --git a/my old b/my new one\nrename from my old\nrename to my new one", "my new one"),
        ('diff --git "a/\\346.txt" "b/\\346.txt"\n--- "a/\\346.txt"\n+++ "b/\\346.txt"', '"\\346.txt"'),
        ("Index: my tool\n=====\nCannot display: file marked as a binary type.", "my tool"),
        ("Index: a.c\n=====\nCannot display: file marked as a binary type.", "a.c"),
    ],
)
def test_a_name_may_have_spaces_and_quotes(header: str, name: str) -> None:
    rows = _rows(_shown(f"{as_diff(['old'] * 20, ['new'] * 20, 9)}{header}\n"))

    assert [row[1] for row in rows if "part_" not in row[1]] == [name]


@pytest.mark.parametrize(
    "above",
    [
        "Here is the diff:\n\n```diff\n",
        "$ git status --short && git diff\n M main.py\n?? notes.txt\n",
        "1234567 (HEAD -> main) Say hello\n",
        "commit 1234567\nAuthor: A\n\n" + "    A long message\n" * 20,
        "# HG changeset patch\n# User A\n# Date 1 0\n#      Thu Jan 01 1970\n# Node ID 1\n# Parent  2\ntwo\n\n",
    ],
)
def test_a_few_lines_may_stand_above_a_diff(above: str) -> None:
    rows = _rows(_shown(above + as_diff(["old"] * 20, ["new"] * 20, 9), 300))

    assert [row[0] for row in rows][:2] == [above.count("\n") + 1, above.count("\n") + 44]


def test_the_return_code_stands_above_a_diff() -> None:
    diff = as_diff(["old"] * 20, ["new"] * 20, 90)
    shown = _shown(f"<returncode>1</returncode>\n<output>\n{diff}</output>", 300)

    assert "<returncode>1</returncode>" in shown[0]
    assert _rows(shown)[0][:2] == (1, "part_0.txt")


def test_words_of_a_diff_below_a_return_code_are_no_alarms() -> None:
    diff = as_diff(["old"] * 20, ["ERROR: is only a word here", *["new"] * 19], 1)
    diff += as_diff(["old"] * 20, ["new"] * 20, 90)
    shown = _shown(f"<returncode>1</returncode>\n<output>\n{diff}</output>", 300)

    assert "<returncode>1</returncode>" in shown[0]
    assert not any("ERROR" in line for line in shown[:-1])


def test_the_message_of_a_commit_is_shown_above_more_files_than_fit() -> None:
    diff = as_diff(["old"], ["new"], 400)
    shown = _shown(f"commit {'a' * 40}\nAuthor: A <a@example.org>\n\n    Why all of this changes\n\n{diff}", 400)

    assert "    Why all of this changes" in shown
    assert len(_rows(shown)) > 20
    assert _shown(diff, 400)[0].startswith("[diff: 400 files")
