"""docs/mcp-settings.md and docs/mcp-clients.md agree with the parser of ``coatcheck.toml`` and with ``install``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import tomli

from coatcheck_mcp.config import DEFAULT_STORAGE, KEYS, KNOBS, SERVER_KEYS, TOOL_KEYS, Config, load
from coatcheck_mcp.install.clients import CLIENTS
from coatcheck_mcp.install.entries import is_wrapped, unwrap, wrap
from coatcheck_mcp.install.spans import parse
from coatcheck_mcp.serving import LOOPBACK, PATH
from coatcheck_mcp.transports import TOKEN_VARIABLE
from tests.docs.pages import blocks_of
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS, CLIENTS_PAGE = ROOT / "docs/mcp-settings.md", ROOT / "docs/mcp-clients.md"
FETCHES = re.compile(r"\b(?:uvx|npx|pipx|uv tool|pip install|--from)\b[^\n]*\bcoatcheck\b")
"""Matches a command that would ask a package index for the name."""


def rows(section: str) -> dict[str, list[str]]:
    """Return the rows of the table in a section of the settings page, by key."""
    text = SETTINGS.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    return {cells[0].strip("`"): cells[1:] for cells in found}


def entries(page: Path) -> Iterator[dict[str, Any]]:
    """Yield each server of the files that a page shows."""
    for block in blocks_of(page):
        if block.kind in {"json", "toml"}:
            (servers,) = (json.loads(block.text) if block.kind == "json" else tomli.loads(block.text)).values()
            yield from servers.values()


def test_entries_on_the_page_of_the_proxy_name_their_server_as_rules_do() -> None:
    """Without ``--name``, a rule such as ``[tools."github.*"]`` would never match."""
    page = ROOT / "docs/mcp.md"
    shown = [json.loads(block.text)["mcpServers"] for block in blocks_of(page) if block.kind == "json"]
    through = [(name, entry["args"]) for servers in shown for name, entry in servers.items() if "args" in entry]

    assert through
    assert all(args[:3] == ["mcp", "--name", name] for name, args in through)
    commands = re.findall(r"^    coatcheck mcp (?:.* )?(?:--url|--http|--storage) .*$", page.read_text(), re.MULTILINE)
    assert len(commands) >= 4
    assert [command for command in commands if "--name " not in command and "--oauth" not in command] == []


def test_the_entry_for_http_has_the_address_and_the_token_of_the_proxy() -> None:
    page = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
    blocks = [block.text for block in blocks_of(ROOT / "docs/mcp.md") if block.kind == "json"]
    (entry,) = [each for text in blocks for each in json.loads(text)["mcpServers"].values() if "url" in each]

    (port,) = re.findall(r"--http (\d+) -- npx", page)
    header = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
    assert entry == {"type": "http", "url": f"http://{LOOPBACK}:{port}{PATH}", "headers": header}


def test_every_key_is_on_the_page() -> None:
    general = {**rows("What is kept, and for how long"), **rows("What leaves, and what the model sees")}

    assert {*general, "tools", "servers"} == set(KEYS)
    assert set(rows("Rules for single tools")) == set(TOOL_KEYS)
    assert set(rows("Servers")) == set(SERVER_KEYS)


def test_the_defaults_are_those_of_the_parser(tmp_path: Path) -> None:
    kept, leaves = rows("What is kept, and for how long"), rows("What leaves, and what the model sees")
    config = Config()
    values = {
        **{name: getattr(config.settings, name) for name in KNOBS},
        "preview_tokens": config.settings.preview_limit,
        "max_retrieval_tokens": config.settings.retrieval_limit,
    }

    for name, value in values.items():
        assert leaves[name][0] == (str(value).lower() if isinstance(value, bool) else f"{value:,}")
    assert kept["storage"][0] == f'`"{DEFAULT_STORAGE}"`'
    others = [(name, leaves[name]) for name in ("offer_tool", "start_timeout")]
    written = [f"{name} = {cells[0].strip('`')}" for name, cells in (*kept.items(), *others)]
    file = tmp_path / "coatcheck.toml"
    file.write_text("\n".join(line for line in written if not line.startswith(("storage", "scope"))))
    assert load(file) == Config(path=file)


@pytest.mark.parametrize("number", range(2))
def test_the_files_on_the_page_are_valid(number: int, tmp_path: Path) -> None:
    file = tmp_path / "coatcheck.toml"
    file.write_text([block.text for block in blocks_of(SETTINGS) if block.kind == "toml"][number])

    found = load(file, variables={"FILES_TOKEN": "x", "FAR_TOKEN": "y"})

    assert found.tools if number == 0 else found.servers


def test_the_entries_on_the_page_are_those_that_install_writes() -> None:
    before, after, *others = entries(CLIENTS_PAGE)

    assert len(others) == 5
    for entry in (after, *others):
        if isinstance(entry["command"], list):  # opencode has program and arguments in one list
            program, *arguments = entry["command"]
            entry |= {"command": program, "args": arguments}
        text = json.dumps(entry)
        assert is_wrapped(parse(text))
        assert json.loads(unwrap(text, parse(text)))["command"] == "npx"
    written = json.loads(wrap(json.dumps(before), parse(json.dumps(before)), ["--name", "github"]))
    assert {**written, "command": after["command"], "args": [word for word in written["args"] if word != "-P"]} == {
        **after,
        "args": [word for word in after["args"] if word != "-P"],
    }


@pytest.mark.parametrize("page", [SETTINGS, CLIENTS_PAGE], ids=lambda page: page.name)
def test_no_command_would_fetch_coatcheck_from_a_package_index(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace('pip install "/path/to/checkout[', "")

    assert not FETCHES.search(text)
    assert FETCHES.search("uvx coatcheck mcp")


def test_every_client_of_install_is_on_the_page() -> None:
    text = CLIENTS_PAGE.read_text(encoding="utf-8")

    assert all(f"| `{name}` |" in text for name in CLIENTS)
