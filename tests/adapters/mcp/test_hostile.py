"""Servers on pipes that send what no server should: their call ends, no other call does, and the session goes on."""

# ruff: noqa: ANN401 - lines are any JSON

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp.faults import messages_in
from coatcheck_mcp.flow import Gate, PacedReads
from tests.adapters.mcp.processes import PATIENCE, Process
from tests.adapters.mcp.servers import HELLO

if TYPE_CHECKING:
    from collections.abc import Iterator

RAW = (sys.executable, str(Path(__file__).parent / "raw_server.py"))
GOOD = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"fine"}]}}'
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}'
DEEP = 10_000
LARGE = "a line of a log\\n" * 9_000


def answer(result: str) -> str:
    return '{"jsonrpc":"2.0","id":@ID@,"result":' + result + "}"


def text(said: str) -> str:
    return answer('{"content":[{"type":"text","text":"' + said + '"}]}')


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("hostile"), *RAW) as process:
        process.shake_hands()
        yield process
        process.leave()  # if the proxy were killed, a server that has closed its input would outlive it


def say(client: Process, *lines: str, **more: Any) -> Any:
    return client.call("say", lines=list(lines), **more)


BEFORE_A_GOOD_ANSWER = {
    "a cancellation of a number": '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}',
    "a line of 2 MB that is no JSON": "x" * 2_000_000,
    "a log of NaN": '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}x',
    "a log without parameters": '{"jsonrpc":"2.0","method":"notifications/message"}',
    "an answer to a huge id": '{"jsonrpc":"2.0","id":' + "9" * 4_000 + ',"result":{}}',
    "an answer to a list": '{"jsonrpc":"2.0","id":[1],"result":{}}',
    "an answer to a long id": '{"jsonrpc":"2.0","id":"' + "9" * 1_000_000 + '","result":{}}',
    "an answer to a number with a fraction": '{"jsonrpc":"2.0","id":1.5,"result":{}}',
    "an answer to no id": '{"jsonrpc":"2.0","id":null,"result":{}}',
    "an answer to nobody": '{"jsonrpc":"2.0","id":123456,"result":{}}',
    "an answer to true": '{"jsonrpc":"2.0","id":true,"result":{}}',
    "an error for nobody": '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"?"}}',
    "an unknown notification": '{"jsonrpc":"2.0","method":"notifications/of/ours","params":{"a":1}}',
    "invalid UTF-8": '{"jsonrpc":"2.0","method":"\xff\xfe"}',
    "objects in objects": '{"a":' * DEEP,
    "progress for a list": PROGRESS % "[]",
    "progress for nobody": PROGRESS % '"x"',
    "a batch for nobody": "[" + GOOD.replace("@ID@", "123456") + ',{"jsonrpc":"2.0"},[],7]',
    "an empty batch": "[]",
}


@pytest.mark.parametrize("line", BEFORE_A_GOOD_ANSWER.values(), ids=BEFORE_A_GOOD_ANSWER.keys())
def test_a_meaningless_line_loses_no_answer(client: Process, line: str) -> None:
    assert client.said(say(client, line, GOOD)) == "fine"
    assert client.said(say(client, GOOD)) == "fine"


def test_of_two_answers_to_a_call_the_first_counts_and_the_second_is_dropped(client: Process) -> None:
    assert client.said(say(client, text("first"), text("second"))) == "first"
    assert client.said(say(client, GOOD)) == "fine"


@pytest.mark.parametrize(
    "said", ["the quota is used up", "Connection closed", "Connection closed by the database", "SSE stream 7 is busy"]
)
def test_a_servers_error_with_the_code_of_a_lost_connection_is_passed_on_and_ends_nothing(
    client: Process, said: str
) -> None:
    error = {"code": -32_000, "message": said, "data": {"wait": 60}}
    line = '{"jsonrpc":"2.0","id":@ID@,"error":' + json.dumps(error) + "}"
    assert say(client, line)["error"] == error
    assert client.said(say(client, GOOD)) == "fine"


def test_an_answer_whose_id_is_a_string_arrives(client: Process) -> None:
    assert client.said(say(client, GOOD.replace("@ID@", '"@ID@"'))) == "fine"


BATCHES = {
    "a batch of one": f"[{GOOD}]",
    "a batch with half a surrogate pair": "[" + PROGRESS % '"\\ud83d"' + "," + GOOD + "]",
    "a batch with what cannot be read": f'[7,{{"jsonrpc":"2.0"}},{GOOD}]',
    "a byte order mark": f"\xef\xbb\xbf{GOOD}",
    "a byte order mark before a batch": f"\xef\xbb\xbf[{GOOD}]",
}


@pytest.mark.parametrize("line", BATCHES.values(), ids=BATCHES.keys())
def test_an_answer_in_a_batch_or_behind_a_byte_order_mark_arrives(client: Process, line: str) -> None:
    assert client.said(say(client, line)) == "fine"
    assert client.said(say(client, GOOD)) == "fine"


def test_a_batch_is_read_to_its_last_message_however_many_it_has(client: Process) -> None:
    assert client.said(say(client, "[" + "{}," * 1_500 + GOOD + "]")) == "fine"
    assert client.said(say(client, GOOD)) == "fine"


def test_a_batch_yields_its_messages_one_by_one_and_skips_what_is_not_an_object() -> None:
    batch = "[" + "0," * 900 + '{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]'
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json(batch, by_name=False)
    messages = messages_in(raised.value)
    assert iter(messages) is messages
    assert [each.message.method for each in messages] == ["a", "b"]


def test_a_line_with_an_unescaped_lone_surrogate_is_an_error_like_any_other() -> None:
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json('{"jsonrpc":"2.0","x":"\ud83d"}', by_name=False)
    assert list(messages_in(raised.value)) == [raised.value]


async def test_other_tasks_run_between_two_messages_of_a_batch() -> None:
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json("[" + "{}," * 99 + "{}]", by_name=False)
    into, batches = anyio.create_memory_object_stream[Any](1)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with into, PacedReads(batches, Gate(1)) as reads, anyio.create_task_group() as tasks:
        await into.send(raised.value)
        tasks.start_soon(take_turns)
        for _ in range(100):
            await reads.receive()
        tasks.cancel_scope.cancel()
    assert turns >= 100


WRONG = {
    "content that is no list": answer('{"content":{"type":"text"}}'),
    "no content and structured content that is a list": answer('{"structuredContent":[1]}'),
    "content that is null": answer('{"content":null}'),
    "content without a type": answer('{"content":[{"text":"x"}]}'),
    "text that is a number": answer('{"content":[{"type":"text","text":7}]}'),
    "many faults": answer('{"content":[' + ",".join(['{"type":"text","text":7}'] * 500) + "]}"),
}


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG.keys())
def test_an_answer_that_the_protocol_forbids_is_an_error_that_names_the_server(client: Process, line: str) -> None:
    error = say(client, line)["error"]
    begins = "the MCP server raw answered tools/call with something the protocol does not allow: "
    assert error["message"].startswith(begins)
    assert len(error["message"]) <= len(begins) + 300
    assert "http" not in error["message"]
    assert client.said(say(client, GOOD)) == "fine"


def test_a_result_without_content_passes_as_clients_read_it_without_a_proxy(client: Process) -> None:
    structured = say(client, answer('{"structuredContent":{"a":1},"isError":false}'))["result"]
    assert structured == {"structuredContent": {"a": 1}, "isError": False, "content": []}
    assert say(client, answer("{}"))["result"] == {"content": []}


UNREADABLE = {
    "a batch with neither a result nor an error": '[{"jsonrpc":"2.0","id":@ID@}]',
    "an error that is a text": '{"jsonrpc":"2.0","id":@ID@,"error":"no"}',
    "levels that are too many": answer('{"content":[],"structuredContent":{"a":' + "[" * DEEP + "]" * DEEP + "}}"),
    "neither a result nor an error": '{"jsonrpc":"2.0","id":@ID@}',
    "no JSON after the id": '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[oh',
    "no JSON before the id": '{"result":{"content":[oh]},"jsonrpc":"2.0","id":@ID@}',
    "result that is a list": answer("[]"),
    "result that is null": answer("null"),
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_answer_that_cannot_be_read_is_an_error_for_its_call(client: Process, line: str) -> None:
    error = say(client, line)["error"]
    assert error["message"].startswith("coatcheck cannot read the server's answer: ")
    assert len(error["message"]) < 300
    assert client.said(say(client, GOOD)) == "fine"


def test_an_unreadable_request_is_not_taken_for_the_answer_to_a_call_with_its_id(client: Process) -> None:
    asked = '{"jsonrpc":"2.0","id":@ID@,"method":"roots/list","params":{"a":oh}}'
    turned = '{"method":"roots/list","params":[],"jsonrpc":"2.0","id":@ID@}'
    assert client.said(say(client, asked, turned, GOOD)) == "fine"


def write(client: Process, line: bytes) -> None:
    assert client.popen.stdin is not None
    client.popen.stdin.write(line + b"\n")
    client.popen.stdin.flush()


ASKED = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"say","arguments":{"a":@}}}'
UNREADABLE_REQUESTS = {
    "levels that are too many": (ASKED.replace(b"@", b"[" * 300 + b"]" * 300), -32_700, "recursion limit"),
    "more levels than any parser takes": (ASKED.replace(b"@", b"[" * 9_000 + b"]" * 9_000), -32_700, "recursion limit"),
    "digits that are too many": (ASKED.replace(b"@", b"9" * 4_400), -32_700, "number out of range"),
    "no JSON": (ASKED.replace(b"@", b"oh"), -32_700, "Invalid JSON"),
    "parameters as a list": (b'{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}', -32_600, "params: Input"),
    "no version": (b'{"params":{"id":7,"method":"ping"},"id":"x","method":"ping"}', -32_600, "jsonrpc: Field required"),
}


@pytest.mark.parametrize(("line", "code", "why"), UNREADABLE_REQUESTS.values(), ids=UNREADABLE_REQUESTS.keys())
def test_a_request_that_cannot_be_read_is_answered_with_an_error(
    client: Process, line: bytes, code: int, why: str
) -> None:
    write(client, line)
    answer = client.read()
    assert (answer["id"], answer["error"]["code"]) == ("x", code)
    assert answer["error"]["message"].startswith("coatcheck cannot read this request: ")
    assert why in answer["error"]["message"]
    assert client.said(say(client, GOOD)) == "fine"


def test_a_batch_of_the_client_is_answered_one_by_one(client: Process) -> None:
    ping, unreadable = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}', b'{"id":"odd","method":"ping"}'
    write(client, b"[" + b"{}," * 1_500 + ping + b"," + unreadable + b"]")
    answers = {answer["id"]: answer for answer in (client.read(), client.read())}
    assert answers["ping"]["result"] == {}
    assert answers["odd"]["error"]["message"].startswith("coatcheck cannot read this request: jsonrpc")
    assert client.said(say(client, GOOD)) == "fine"


def test_a_byte_order_mark_before_a_request_is_skipped(client: Process) -> None:
    write(client, b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"marked","method":"ping"}')
    assert client.read()["id"] == "marked"


@pytest.mark.parametrize(
    "line",
    [
        ASKED.replace(b'"id":"x",', b"").replace(b"@", b"[" * 300),
        b'{"jsonrpc":"2.0","id":1,"result":{"a":oh}}',
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
    ],
)
def test_an_unreadable_line_that_is_not_a_request_gets_no_answer(client: Process, line: bytes) -> None:
    write(client, line)
    assert client.said(say(client, GOOD)) == "fine"


ODD = {
    "a lone surrogate": (text("a\\ud83d"), "a\ufffd"),
    "an escaped backslash": (text("\\\\ud800 \\ud800\\\\"), "\\ud800 \ufffd\\"),
    "an escaped NUL": (text("a\\u0000b"), "a\x00b"),
    "both halves in the wrong order": (text("\\udc00\\ud800x \\ud83d\\ude00"), "\ufffd\ufffdx \U0001f600"),
    "bytes that are no text": (text("a\xffb"), "a\ufffdb"),
    "the same key twice": (answer('{"content":[{"type":"text","text":"a","text":"b"}]}'), "b"),
}


@pytest.mark.parametrize(("line", "said"), ODD.values(), ids=ODD.keys())
def test_odd_text_arrives(client: Process, line: str, said: str) -> None:
    assert client.said(say(client, line)) == said


def test_a_clients_argument_that_was_cut_within_an_emoji_reaches_the_server(client: Process) -> None:
    lines = '["{\\"jsonrpc\\":\\"2.0\\",\\"id\\":@ID@,\\"result\\":{\\"content\\":[]}}"], "cut": "\\ud83d"'
    head = b'{"jsonrpc":"2.0","id":"cut","method":"tools/call","params":{"name":"say","arguments":{"lines":'
    write(client, head + lines.encode() + b"}}}")
    assert client.read() == {"jsonrpc": "2.0", "id": "cut", "result": {"content": []}}


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_nan_and_infinity_become_null_for_the_client(client: Process, value: str) -> None:
    line = answer('{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":' + value + "}}")
    assert say(client, line)["result"]["structuredContent"] == {"a": None}


@pytest.mark.parametrize("odd", ["\\u0000", "\xff\xfe", "\\ud83d\\ude00"])
def test_a_large_result_with_odd_characters_is_offloaded_and_read_back(client: Process, odd: str) -> None:
    result = say(client, text(LARGE + odd))["result"]
    (reference,) = result["_meta"]["coatcheck"]["references"]
    back = client.call(RETRIEVAL_TOOL, reference=reference, line_range={"start": 9_001, "end": 9_001})
    assert not back["result"]["isError"]


def test_a_line_of_19_mb_on_stderr_goes_to_stderr(client: Process) -> None:
    assert client.said(say(client, GOOD, stderr=19_000_000)) == "fine"
    client.wait_for_stderr("x" * 1_000)


def test_a_server_that_logs_to_stdout_blocks_nothing_while_nobody_reads_stderr(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        with Process(tmp_path, *RAW, stderr=writing) as process:
            os.close(writing)
            process.shake_hands()
            assert process.said(say(process, *["a line of a log"] * 300, GOOD)) == "fine"
            assert process.leave() == 0
    finally:
        said = os.read(reading, 1_000_000).decode()
        os.close(reading)
    assert "coatcheck: Failed to parse JSONRPC message from server\n" in said
    assert "Traceback" not in said


def test_a_server_that_closes_its_input_counts_as_ended_and_is_restarted(client: Process) -> None:
    assert client.said(say(client, GOOD, deaf=True)) == "fine"
    assert "the MCP server raw has ended" in say(client, GOOD)["error"]["message"]
    assert client.said(say(client, GOOD)) == "fine"


RESULTS = [
    '{"content":[{"text":"\\u00e9","type":"text"}],"x-own":{"b":1,"a":[1.0,1,1e-07]},"isError":false,"_meta":{"z":1,"a":2}}',
    '{"structuredContent":{"b":1,"a":2},"content":[{"x-own":true,"type":"text","text":"{}","annotations":{"priority":1}}]}',
    '{"isError":true,"content":[{"type":"text","text":"no"}],"nothing":null}',
    '{"content":[{"type":"text","text":"{\\"a\\": 1}"}],"structuredContent":{"a":true,"b":10000000000000000,"c":-0.0}}',
]
METHODS: list[tuple[str, dict[str, Any], str]] = [
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": "v"}},
        '{"completion":{"total":1,"x":2,"values":[]}}',
    ),
    ("prompts/get", {"name": "p"}, '{"messages":[{"content":{"text":"x","type":"text"},"role":"user"}],"b":1,"a":1}'),
    ("prompts/list", {}, '{"prompts":[{"title":"t","name":"p","x":1,"arguments":[{"required":true,"name":"a"}]}]}'),
    ("resources/list", {}, '{"resources":[{"size":3,"uri":"file:///a","annotations":{"priority":1},"name":"a"}]}'),
    (
        "resources/read",
        {"uri": "file:///a"},
        '{"contents":[{"text":"x","uri":"file:///a","_meta":{"b":1,"a":1}}],"z":1}',
    ),
    ("resources/templates/list", {}, '{"resourceTemplates":[{"uriTemplate":"file:///{x}","x":null,"name":"t"}]}'),
]


MODERN = '"ttlMs":0,"cacheScope":"private","resultType":"complete"'
"""What the protocol without a handshake requires in each answer."""


def results_of(command: list[str], folder: Path, version: str) -> list[str]:
    """Return the answers to all requests, each as JSON with its keys in their original order."""
    info = {**HELLO, "protocolVersion": version}
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    meta = {f"io.modelcontextprotocol/{name}": info[name] for name in ("clientInfo", "protocolVersion")}
    meta["io.modelcontextprotocol/clientCapabilities"] = {}
    results, said = (
        [f"{{{MODERN},{each[1:]}" if is_modern else each for each in given]
        for given in (RESULTS, [said for *_, said in METHODS])
    )
    calls = [("tools/call", {"name": "say", "arguments": {"lines": [answer(each)]}}, None) for each in results]
    asked = [(method, params, each) for (method, params, _), each in zip(METHODS, said, strict=True)]
    lines: list[dict[str, Any]] = [] if is_modern else [{"id": 0, "method": "initialize", "params": info}, INITIALIZED]
    for number, (method, params, each) in enumerate([*calls, *asked], 1):
        with_meta = {**params, "_meta": {**(meta if is_modern else {}), "say": each}}
        lines.append({"id": number, "method": method, "params": with_meta})
    found: dict[int, Any] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines).encode())
        process.stdin.flush()
        while len(found) < sum("id" in line for line in lines):
            message = json.loads(process.stdout.readline())
            found[message["id"]] = message["result"]
        process.stdin.close()
        process.wait(PATIENCE)
    return [json.dumps(found[number]) for number in range(1, len(calls) + len(asked) + 1)]


INITIALIZED = {"method": "notifications/initialized"}


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS])
def test_answers_have_the_servers_own_keys_values_and_order(tmp_path: Path, version: str) -> None:
    server = [*RAW, version]
    proxy = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={tmp_path / 'store'}", "--", *RAW]
    if version in MODERN_PROTOCOL_VERSIONS:
        proxy.append(version)
    assert results_of(proxy, tmp_path, version) == results_of(server, tmp_path, version)


def test_the_error_names_an_unknown_protocol_version_of_a_server(tmp_path: Path) -> None:
    with Process(tmp_path, *RAW, "1999-01-01") as process:
        error = process.shake_hands()["error"]
    assert "it speaks version '1999-01-01' of MCP, which coatcheck does not know" in error["message"]
