"""A new user: an empty folder, a fresh environment, one line in a client's file, a result of 1 MB that is read back."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import anyio
import pytest
from fastmcp import Client

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp import offloaded_references
from tests.mcp_servers.test_public_servers import FOLDER, OFFICIAL, node

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not FOLDER.name, reason="needs the environment that `nox -s mcp_servers` makes")

PROGRAM = FOLDER / "user/bin/coatcheck"


@pytest.mark.parametrize("writes", ["install", "by hand"])
async def test_a_result_of_one_megabyte_is_offloaded_and_read_back(tmp_path: Path, writes: str) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".cursor").mkdir(parents=True)
    home.mkdir()
    text = "".join(f"line {number} of a long file\n" for number in range(40_000))
    (project / "notes.txt").write_text(text, encoding="utf-8")
    program, *arguments = node(f"{OFFICIAL}-filesystem")
    env = {"HOME": os.fspath(home), "PATH": os.environ["PATH"]}
    entry = {"command": program, "args": [*arguments, os.fspath(project)], "env": env}
    if writes == "by hand":
        line = {"command": os.fspath(PROGRAM), "args": ["mcp", "--name", "notes", "--", program, *entry["args"]]}
        entry = {**entry, **line}
    file = project / ".cursor/mcp.json"
    file.write_text(json.dumps({"mcpServers": {"notes": entry}}), encoding="utf-8")
    if writes == "install":
        await anyio.run_process([PROGRAM, "mcp", "install", "cursor", "notes"], cwd=project, env=env)

    async with Client(json.loads(file.read_text(encoding="utf-8"))) as client:
        result = await client.call_tool("read_text_file", {"path": os.fspath(project / "notes.txt")})
        (reference,) = offloaded_references(result)
        asked = {"reference": reference, "pattern": "line 39999 of"}
        answer = await client.call_tool(RETRIEVAL_TOOL, asked)

    assert len(text) > 1_000_000
    assert len(result.content[0].text) < 10_000
    assert "line 39999 of a long file" in answer.content[0].text
    assert (home / ".coatcheck/mcp").stat().st_mode & 0o777 == 0o700
