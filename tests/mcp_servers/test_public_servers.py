"""Servers written by others, each sent the same requests with and without the proxy: ``nox -s mcp_servers``.

The answers must be the same JSON, with the keys in the same order, except for offloaded results, output schemas of
tools, the retrieval tool, and what differs each time, such as the time of day. Messages are lines on pipes; no library
is in between.
"""

# ruff: noqa: ANN401 - lines are any JSON

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import RETRIEVAL_TOOL, FileStorage, Offloader
from coatcheck_mcp.scope import folder_scope

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

FOLDER = Path(os.environ.get("COATCHECK_MCP_SERVERS", ""))
"""Where the nox session installed the servers: the environments ``python`` and ``sqlite``, and ``node_modules``."""

BROWSER = os.environ.get("COATCHECK_BROWSER")
"""The path of a Chromium, if there is one."""

pytestmark = pytest.mark.skipif(not FOLDER.name, reason="needs the servers that `nox -s mcp_servers` installs")

LISTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("ping", {}),
]
CLOCK = re.compile(r"\d{4}-\d{2}-\d{2}T[\d-]+Z|\d{1,2}:\d{2}:\d{2}( [AP]M)?")


MANY_ROWS = """
    select x, 'row ' || x as name
    from (with recursive c(x) as (select 1 union all select x + 1 from c limit 9000) select x from c)
"""


OFFICIAL = "@modelcontextprotocol/server"


def node(name: str, file: str = "dist/index.js") -> list[str]:
    return ["node", str(FOLDER / "node_modules" / name / file)]


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": tool, "arguments": arguments}


def commands(folder: Path, site: str) -> dict[str, tuple[list[str], list[tuple[str, dict[str, Any]]]]]:
    """Return each server's command and its requests besides the lists. For ``LARGE``, the last result is offloaded."""
    files = folder / "files"
    thought = {"nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
    message = {"messageType": "error", "includeImage": True}
    ref = {"type": "ref/prompt", "name": "completable-prompt"}
    return {
        "time": (
            [str(FOLDER / "python/bin/mcp-server-time")],
            [
                call("get_current_time", timezone="Nowhere/X"),
                call("convert_time", source_timezone="UTC", time="12:00", target_timezone="Europe/Berlin"),
            ],
        ),
        "git": (
            [str(FOLDER / "python/bin/mcp-server-git"), "--repository", str(folder / "repository")],
            [
                call("nope"),
                call("git_log", repo_path=str(folder / "repository"), max_count=1),
                call("git_show", repo_path=str(folder / "repository"), revision="HEAD"),
            ],
        ),
        "sqlite": (
            [str(FOLDER / "sqlite/bin/mcp-server-sqlite"), "--db-path", str(folder / "x.db")],
            [call("list_tables"), call("read_query", query=MANY_ROWS.strip())],
        ),
        "filesystem": (
            [*node(f"{OFFICIAL}-filesystem"), str(files)],
            [
                call("list_directory", path=str(files)),
                call("read_text_file", path="/etc/passwd"),
                call("read_media_file", path=str(files / "noise.png")),  # twice: in structuredContent too
                call("read_text_file", path=str(files / "big.txt")),
            ],
        ),
        "fetch": (
            [str(FOLDER / "python/bin/mcp-server-fetch"), "--ignore-robots-txt", "--allow-private-ips"],
            [call("fetch", url=f"{site}/few"), call("fetch", url=f"{site}/many", max_length=900_000, raw=True)],
        ),
        "playwright": (
            [
                *node("@playwright/mcp", "cli.js"),
                "--headless",
                "--isolated",
                "--no-sandbox",
                f"--executable-path={BROWSER}",
            ],
            [call("browser_navigate", url=f"{site}/many"), call("browser_click"), call("browser_snapshot")],
        ),
        "sequential-thinking": (
            node(f"{OFFICIAL}-sequential-thinking"),
            [call("sequentialthinking", thought="first", **thought), call("sequentialthinking", thought=7)],
        ),
        "azure": (
            [*node("@azure/mcp", "index.js"), "server", "start", "--mode", "all"],
            [
                call("acr_registry_list"),
                call("bicepschema_get", **{"resource-type": "Microsoft.Compute/virtualMachines"}),
            ],
        ),
        "kubernetes": (
            [*node("kubernetes-mcp-server", "bin/index.js"), "--kubeconfig", str(clusters(folder))],
            [call("pods_list"), call("configuration_view", minified=False)],
        ),
        "memory": (node(f"{OFFICIAL}-memory"), [call("read_graph"), call("search_nodes", query="x")]),
        "everything": (
            node(f"{OFFICIAL}-everything"),
            [
                call("echo", message="hi"),
                call("get-sum", a=1, b=2),
                call("get-tiny-image"),
                call("get-structured-content", location="New York"),
                call("get-resource-links", count=3),
                call("get-resource-reference", resourceType="Text", resourceId=1),
                call("get-annotated-message", **message),
                ("resources/read", {"uri": "demo://resource/dynamic/text/1"}),
                ("resources/subscribe", {"uri": "demo://resource/dynamic/text/1"}),
                ("prompts/get", {"name": "simple-prompt"}),
                ("completion/complete", {"ref": ref, "argument": {"name": "department", "value": "E"}}),
                ("logging/setLevel", {"level": "error"}),
            ],
        ),
    }


def clusters(folder: Path) -> Path:
    """Write the settings of a Kubernetes client that knows many clusters, all of them down."""
    names = [f"team-{number}" for number in range(1_500)]
    settings = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:9/{name}"}} for name in names],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in names],
        "current-context": "team-3",
        "users": [{"name": "u", "user": {}}],
    }
    path = folder / "clusters.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


LARGE = {
    "azure": "bicepschema_get",
    "fetch": "fetch",
    "filesystem": "read_text_file",
    "git": "git_show",
    "kubernetes": "configuration_view",
    "playwright": "browser_snapshot",
    "sqlite": "read_query",
}
"""The servers whose last result is above the limit, each with the tool that returns it."""


def converse(command: list[str], requests: list[tuple[str, dict[str, Any]]], folder: Path) -> list[Any]:
    """Shake hands, send each request, and return the answers."""
    pipe = subprocess.PIPE
    with (folder / "stderr").open("ab") as stderr:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, cwd=folder)
    with process:
        info = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {"roots": {}}}
        answers = [ask(process, 0, "initialize", {**info, "protocolVersion": "2025-11-25"})]
        write(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        answers += [ask(process, number, *request) for number, request in enumerate(requests, 1)]
    return answers


def ask(process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> Any:
    assert process.stdout is not None
    write(process, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    while line := process.stdout.readline():
        try:
            message = json.loads(line)
        except ValueError:  # Azure's server prints text between its messages
            continue
        if "method" in message and "id" in message:
            write(process, {"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
        elif message.get("id") == number:
            return message.get("result", message.get("error"))
    pytest.fail(f"the connection ended at {method}")


def write(process: subprocess.Popen[bytes], message: object) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


OF_LATER_VERSIONS = {"cacheScope", "ttlMs"}
"""Keys of version 2026-07-28. One server also sends them under 2025-11-25, where the library drops them."""


def comparable(answer: Any) -> str:
    """Return an answer without the time of day, and without what the documented proxy removes or adds."""
    answer.get("capabilities", {}).pop("tasks", None)
    answer = {key: value for key, value in answer.items() if key not in OF_LATER_VERSIONS}
    tools = [tool for tool in answer.get("tools", []) if tool["name"] != RETRIEVAL_TOOL]
    if tools:
        plain = [{key: value for key, value in tool.items() if key != "outputSchema"} for tool in tools]
        answer = {**answer, "tools": plain}
    is_first = "protocolVersion" in answer  # the library writes that answer
    return CLOCK.sub("", json.dumps(answer, sort_keys=is_first))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "repository").mkdir()
    big = "".join(f"line {number}\n" for number in range(60_000))
    (tmp_path / "files/big.txt").write_text(big, encoding="utf-8")
    (tmp_path / "files/noise.png").write_bytes(bytes(range(256)) * 80)
    (tmp_path / "repository/a.txt").write_text(big, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "--message=first"]):
        subprocess.run(["git", *command], cwd=tmp_path / "repository", check=True)  # noqa: S607 - the user's git
    return tmp_path


@pytest.fixture
def site(httpserver: HTTPServer) -> str:
    for path, count in (("few", 3), ("many", 5_000)):
        items = "".join(f"<li>item {number}</li>" for number in range(count))
        page = f"<title>{path}</title><ul>{items}</ul>"
        httpserver.expect_request(f"/{path}").respond_with_data(page, content_type="text/html")
    httpserver.expect_request("/favicon.ico").respond_with_data(b"")
    return httpserver.url_for("").rstrip("/")


NAMES = [
    *("time", "git", "sqlite", "fetch", "filesystem", "memory", "everything", "sequential-thinking", "playwright"),
    *("azure", "kubernetes"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_server_answers_the_same_through_the_proxy_except_for_offloaded_results(
    folder: Path, site: str, name: str
) -> None:
    if name == "playwright" and BROWSER is None:
        pytest.skip("needs a Chromium, such as Debian's")
    command, asked = commands(folder, site)[name]
    requests = [*LISTS, *asked]
    proxy = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={folder / 'store'}", "--", *command]
    direct, through = converse(command, requests, folder), converse(proxy, requests, folder)
    direct[0]["capabilities"].pop("experimental", None)  # no version of the protocol defines its messages
    if name in LARGE:
        shown, whole = through.pop(), direct.pop()
        (reference,) = shown["_meta"]["coatcheck"]["references"]
        assert reference.startswith(LARGE[name])
        assert len(whole["content"][0]["text"]) > 10 * len(shown["content"][0]["text"])
        scope = folder_scope(direct[0]["serverInfo"]["name"], os.path.realpath(folder))
        stored = Offloader(FileStorage(folder / "store")).load(reference, scope=scope)
        assert stored.text == whole["content"][0]["text"]
    assert list(map(comparable, through)) == list(map(comparable, direct))
