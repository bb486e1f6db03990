"""Messages that are too long are refused before they are parsed, with an error for the call that they answer."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import codecs
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp import command_upstream, offloaded_references
from coatcheck_mcp.http_limits import LimitedTransport
from coatcheck_mcp.limits import lines_codec
from tests.adapters.mcp.servers import client_of

TINY = (sys.executable, str(Path(__file__).parent / "tiny_server.py"))


def decode(data: bytes, *, limit: int, step: int) -> str:
    decoder = codecs.getincrementaldecoder(lines_codec(limit))()
    pieces = [decoder.decode(data[start : start + step]) for start in range(0, len(data), step)]
    return "".join([*pieces, decoder.decode(b"", True)])


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_lines_within_the_limit_are_decoded_wherever_the_pieces_end(step: int) -> None:
    lines = "äöü €\n\nzwei\r\nthe end"
    assert decode(lines.encode(), limit=1_000, step=step) == lines


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("identifier", [3, "a-4"])
@pytest.mark.parametrize(
    "order",
    ["jsonrpc id result", "result jsonrpc id", "jsonrpc id trace result", "trace id result", "result id trace"],
)
def test_a_longer_line_becomes_an_error_for_its_request(step: int, identifier: Any, order: str) -> None:
    values = {"jsonrpc": "2.0", "id": identifier, "result": {"text": '"id":7}' * 1_500}, "trace": "a"}
    long = json.dumps({name: values[name] for name in order.split()})
    before, refused, after, _ = decode(f"one\n{long}\ntwo\n".encode(), limit=9_000, step=step).split("\n")
    error = json.loads(refused)
    assert (before, after) == ("one", "two")
    assert error["id"] == identifier
    assert "more than 9,000 bytes" in error["error"]["message"]


def test_a_longer_line_that_answers_nothing_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    long = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": "x" * 9_000})
    assert decode(f"one\n{long}\ntwo\n".encode(), limit=5_000, step=100) == "one\n\ntwo\n"
    assert "a message of more than 5,000 bytes was dropped" in caplog.text


def test_bytes_that_are_not_text_do_not_end_the_session() -> None:
    assert decode(b"\xff\none\n", limit=100, step=1) == "\ufffd\none\n"


@pytest.mark.parametrize("tool", ["huge", "last_id"])
async def test_the_call_gets_the_error_and_the_session_goes_on(tool: str) -> None:
    async with client_of(command_upstream(TINY, max_bytes=2_000_000)) as client:
        with pytest.raises(MCPError, match="more than 2,000,000 bytes"):
            await client.call_tool(tool, {"size": 2_000_000})
        result = await client.call_tool(tool, {"size": 1_900_000})
        (reference,) = offloaded_references(result)
        assert (await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})).content


async def test_an_answer_over_http_that_is_too_long_is_not_read() -> None:
    class Long(httpx2.AsyncByteStream):
        async def __aiter__(self) -> Any:
            for _ in range(1_000):
                yield b"x" * 1_000

    answer = httpx2.Response(200, headers={"content-type": "application/json"}, stream=Long())

    async def handle(*_: Any) -> httpx2.Response:
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handle)
        async with httpx2.AsyncClient(transport=LimitedTransport(10_000)) as client:
            with pytest.raises(httpx2.StreamError, match="more than 10,000 bytes"):
                await client.get("http://127.0.0.1/")
