"""``coatcheck hook`` on any JSON that a client may send: the shape stays, the hard limit holds, nothing is lost."""

from __future__ import annotations

import base64
import json
import random
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage, Offloader
from coatcheck.hook.answer import respond
from coatcheck.hook.odd_json import read_odd
from coatcheck.hook.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEEDS = 4
"""Random responses of each tool. With 60, the test takes three minutes."""

WORDS = (
    "alpha",
    "beta\n",
    "é",
    "\u2028",
    '"quoted"',
    "\\",
    "\x1b[1m",
    "\U0001d518",
    "\ud800",
    "0",
    "2026-01-01T00:00:00Z",
    "</p>",
)
NUMBERS = (0, -1, 1.5, 10**30, 1e-300, True, False, None)
HARD = Options().hard_limit


class Made:
    """Makes random values. Each string in them begins with a mark of its own."""

    def __init__(self, seed: int) -> None:
        """Seed the generator."""
        self.random = random.Random(seed)  # noqa: S311 - a test draws the same values in every run
        self.marks: list[str] = []

    def text(self, most: int = 60_000) -> str:
        """Return text that is short, large or huge."""
        size = self.random.choice(
            [0, 10, 300, 3_999, 4_001, 9_000, most, most * 4 if self.random.random() < 0.2 else 5]
        )
        mark = f"mark{len(self.marks)}x"
        self.marks.append(mark)
        word = self.random.choice(WORDS)
        return mark + (word * (1 + size // len(word.encode("utf-8", "surrogatepass"))))[:size]

    def lines(self) -> list[str]:
        return [self.text(80) for _ in range(self.random.choice([0, 2, 500]))]

    def data(self) -> str:
        return base64.b64encode(self.random.randbytes(self.random.choice([30, 9_000, 200_000]))).decode()

    def any(self, level: int = 0) -> Any:  # noqa: ANN401 - JSON
        """Return any JSON value."""
        kind = self.random.randrange(9 if level < 4 else 5)
        if kind < 3:
            return self.text()
        if kind < 5:
            return self.random.choice(NUMBERS)
        if kind == 5:
            return {"type": "text", "text": self.text(), **self.more()}
        if kind == 6:
            return [self.any(level + 1) for _ in range(self.random.choice([0, 1, 3, 20]))]
        if kind == 7:
            return [{"id": number, "name": self.text(10)} for number in range(self.random.choice([3, 300]))]
        names = ("text", "data", "type", "a b", "blob", "content", "url", "é")
        return {self.random.choice(names): self.any(level + 1) for _ in range(self.random.choice([0, 1, 4]))}

    def more(self) -> dict[str, Any]:
        """Return further fields for a block."""
        fields = {"annotations": {"audience": ["user"]}, "_meta": {"n": self.text(20)}, "citations": [self.text(30)]}
        return {name: value for name, value in fields.items() if self.random.random() < 0.3}

    def blocks(self) -> list[dict[str, Any]]:
        """Return the content of an MCP result: text blocks, blocks of any kind, or odd media."""
        kinds = self.random.choice([[self.said], [self.said, self.plain, self.medium, self.resource], [self.medium]])
        return [self.random.choice(kinds)() for _ in range(self.random.choice([1, 1, 2, 5, 30, 100]))]

    def said(self) -> dict[str, Any]:
        return {**self.plain(), **self.more()}

    def plain(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text(self.random.choice([20, 60_000]))}

    def medium(self) -> dict[str, Any]:
        data = self.data() if self.random.random() < 0.7 else self.text()
        kind = self.random.choice(["image", "audio", "odd"])
        return {
            "type": kind,
            self.random.choice(["data", "base64", "blob"]): data,
            "mimeType": f"{kind}/x",
            **self.more(),
        }

    def resource(self) -> dict[str, Any]:
        inner = {"text": self.text()} if self.random.random() < 0.5 else {"blob": self.data()}
        uri, kind = f"a://{self.text(5)}", self.random.choice(["text/plain", "image/png", "application/zip"])
        return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, **inner}, **self.more()}


def of_tool(tool: str, made: Made) -> Any:  # noqa: ANN401 - JSON
    """Return a response in the shape of this Claude Code tool."""
    text, lines = made.text, made.lines
    file = {"filePath": "/a", "content": text(), "numLines": 9, "startLine": 1, "totalLines": 9}
    cells = [{"cell_type": "code", "source": lines(), "outputs": [made.any()]} for _ in range(made.random.randrange(4))]
    responses: dict[str, list[Any]] = {
        "Bash": [{"stdout": text(), "stderr": text(), "interrupted": False, "isImage": False}],
        "Read": [
            {"type": "text", "file": file},
            {"type": "image", "file": {"base64": made.data(), "type": "image/png", "originalSize": 9}},
            {"type": "pdf", "file": {"filePath": "/a", "base64": made.data(), "originalSize": 9}},
            {"type": "notebook", "file": {"filePath": "/a", "cells": cells}},
        ],
        "Grep": [{"mode": "content", "numFiles": 0, "filenames": lines(), "content": text(), "numLines": 9}],
        "Glob": [{"filenames": lines(), "durationMs": 3, "numFiles": 9, "truncated": False}],
        "WebFetch": [
            {"bytes": 9, "code": 200, "codeText": "OK", "result": text(), "durationMs": 3, "url": "https://a"}
        ],
        "WebSearch": [
            {"query": "q", "results": [text(), {"tool_use_id": "t", "content": [{"title": text(9), "url": "u"}] * 9}]}
        ],
        "Task": [{"status": "completed", "content": made.blocks(), "totalTokens": 5, "usage": {"input_tokens": 1}}],
        "Agent": [{"status": "completed", "prompt": text(), "content": [{"type": "text", "text": text()}]}],
        "TaskOutput": [{"retrieval_status": "success", "task": {"task_id": "t", "output": text(), "exitCode": 0}}],
        "NotebookRead": [cells],
        "mcp__a__b": [
            text(),
            made.blocks(),
            {"content": made.blocks(), "structuredContent": made.any(), "isError": False, "_meta": made.any()},
            made.any(),
        ],
    }
    return made.random.choice(responses[tool])


TOOLS = (
    "Bash",
    "Read",
    "Grep",
    "Glob",
    "WebFetch",
    "WebSearch",
    "Task",
    "Agent",
    "TaskOutput",
    "NotebookRead",
    "mcp__a__b",
)


def texts(value: object) -> Iterator[str]:
    """Yield each key and each ``str`` in a value."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def is_medium(value: dict[str, Any]) -> bool:
    return str(value.get("mimeType")).startswith(("image/", "audio/"))


def media(value: object) -> Iterator[str]:
    """Yield the contents of media fields."""
    for key, member in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    ):
        if key in {"base64", "blob"} or (key == "data" and isinstance(value, dict) and is_medium(value)):
            yield str(member)
        else:
            yield from media(member)


def without_media(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        hidden = {"base64", "blob"} | ({"data"} if is_medium(value) else set())
        return {key: "" if key in hidden else without_media(member) for key, member in value.items()}
    return [without_media(item) for item in value] if isinstance(value, list) else value


@pytest.mark.no_cover
@pytest.mark.parametrize("tool", TOOLS)
def test_whatever_a_tool_returns_keeps_its_shape_and_its_strings(tool: str, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        made = Made(seed)
        response = of_tool(tool, made)
        folder = tmp_path / str(seed)
        event = {"hook_event_name": "PostToolUse", "session_id": "one", "tool_name": tool, "tool_response": response}

        raw = respond(json.dumps(event).encode(), Options(storage=str(folder)))

        found = response if raw is None else json.loads(raw)["hookSpecificOutput"]["updatedToolOutput"]
        assert type(found) is type(response), seed
        if isinstance(response, dict):
            left = {*response} - {*found} - {"structuredContent"}
            assert not left or found.keys() <= {"offloaded", "type", "text"}, seed
        weight = len(
            json.dumps(without_media(found), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        )
        assert weight <= HARD + 1_000, seed
        assert not any("offloaded" in each.lower() for each in media(found)), seed
        stored = [
            Offloader(FileStorage(folder)).load(reference, scope="one").text
            for each in texts(found)
            if each.startswith("Tool result ")
            for reference in re.findall(r"^  (\S+-[0-9a-f]{16}-\S+) \(", each, re.MULTILINE)[:1]
        ]
        kept = "\n".join([*stored, *texts(found)])
        spoken = {*re.findall(r"mark\d+x", json.dumps(response))}
        assert spoken <= {*re.findall(r"mark\d+x", kept)}, seed


def test_an_unterminated_string_is_searched_in_linear_time() -> None:
    whole = b'{"n": 1, "s": "' + b'\\"x' * 20_000
    started = time.process_time()
    for _ in range(3):
        read_odd(whole + b'"}')
    taken = time.process_time() - started

    started = time.process_time()
    with pytest.raises(ValueError, match="Unterminated string"):
        read_odd(whole)

    assert time.process_time() - started < 100 * taken
