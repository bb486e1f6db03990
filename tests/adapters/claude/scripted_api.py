"""A scripted model that speaks Anthropic's wire format on loopback, for the real Claude Code that the SDK bundles."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ("Script", "run_client", "scripted_api")

SECONDS = 120

Script: TypeAlias = "Callable[[list[str]], tuple[str, dict[str, object]] | None]"
"""Takes the results of all calls so far, as the model reads them. Returns the next call, or None to give its answer."""


def run_client(command: Sequence[str | Path], folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a client in ``folder`` with empty stdin, and return its exit code and output. Allow it two minutes."""
    return subprocess.run(
        command,
        env=env,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )


def results_in(body: dict[str, Any]) -> list[str]:
    """Return the text of each tool result in a request."""
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [
        content if isinstance(content := block["content"], str) else "".join(each.get("text", "") for each in content)
        for block in blocks
        if block["type"] == "tool_result"
    ]


def events(model: str, number: int, call: tuple[str, dict[str, object]] | None) -> list[dict[str, Any]]:
    """Return the events of one streamed message."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": "done"}
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    stop = {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


@contextmanager
def scripted_api(
    script: Script, *, bodies: list[dict[str, Any]] | None = None
) -> Iterator[tuple[str, list[list[str]]]]:
    """Serve a script. Yield the URL and the tool results in each request. ``bodies`` collects the requests in full."""
    seen: list[list[str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send(b"{}", "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
            if not body.get("tools") or not body.get("stream"):  # asks for a title or a token count
                self._send(b'{"input_tokens": 1}', "application/json")
                return
            seen.append(results_in(body))
            if bodies is not None:
                bodies.append(body)
            said = events(body["model"], len(seen), script(seen[-1]))
            stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in said)
            self._send(stream.encode(), "text/event-stream")

        def _send(self, data: bytes, content_type: str) -> None:
            self.send_response(200)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
