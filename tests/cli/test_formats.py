"""The command line lists, verifies, reads, sweeps and deletes content that earlier versions stored in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.running import answered, run
from tests.formats.kept import every_version, left_by, make_old

if TYPE_CHECKING:
    from pathlib import Path


@every_version
def test_every_command_reads_what_an_earlier_version_stored(version: str, tmp_path: Path) -> None:
    left = left_by(version, "file", tmp_path)
    contents = {content["reference"][-21:] for result in left.results for content in result["contents"]}
    (large,) = [result for result in left.results if result["name"] == "large text"]
    at = ("--storage", tmp_path)

    users = ("user-1", "user-2", "default")
    listed = [one["reference"] for user in users for one in answered("ls", *at, "--scope", user)]
    assert {reference[-21:] for reference in listed} == contents
    assert len(answered("ls", *at, "--all-scopes")) == len(contents)
    assert answered("verify", *at)["damaged"] == []
    got = run("get", *at, "--scope", large["scope"], large["contents"][0]["reference"], "--lines", "5000-5000")
    assert "row 5000 of 6000" in got.output
    assert answered("rm", *at, "--scope", "user-2", "--yes")["deleted"] > 0
    assert answered("ls", *at, "--scope", "user-2") == []
    make_old(tmp_path)
    assert run("sweep", *at, "--max-age", "1h").exit_code == 0
    assert answered("ls", *at, "--all-scopes") == []
