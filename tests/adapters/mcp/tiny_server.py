"""A stdio server without a library: it starts at once and can do what no library would. Run, not imported."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

SCHEMA = {"type": "object"}
TOOLS = ("big", "text", "env", "die", "silent", "flood", "pid", "half", "huge", "last_id")


def answer(message: dict[str, object], result: object, *, id_last: bool = False) -> None:
    head, tail = {"jsonrpc": "2.0", "id": message["id"]}, {"result": result}
    line = {**tail, **head} if id_last else {**head, **tail}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def text(said: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}]}


def call(message: dict[str, object], name: str, arguments: dict[str, object]) -> None:
    match name:
        case "env":
            answer(message, text(os.environ.get(str(arguments["name"]), "")))
        case "pid":
            answer(message, text(str(os.getpid())))
        case "die":
            os._exit(3)
        case "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id": ')
            sys.stdout.flush()
            os._exit(3)
        case "silent":
            if "HEARD" in os.environ:
                Path(os.environ["HEARD"]).write_text("heard", encoding="utf-8")
        case "flood":
            for _ in range(2_000):
                sys.stderr.write("x" * 1_000 + "\n")
            answer(message, text("flooded"))
        case "huge" | "last_id":
            answer(message, text("y" * int(str(arguments["size"]))), id_last=name == "last_id")
        case _:
            answer(message, text("line of a log\n" * 9_000))


def note(number: int, _: object) -> None:
    with Path(os.environ["SIGNALS"]).open("a", encoding="utf-8") as file:
        file.write(f"{signal.Signals(number).name}\n")


def main() -> None:
    if "--not-an-mcp-server" in sys.argv:
        sys.stdout.write("Hello!\n")
        return
    if "--never-up" in sys.argv:
        Path(os.environ["PID_FILE"]).write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(600)
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                info = {"name": "tiny", "version": "1"}
                answer(message, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
            case "tools/list":
                answer(message, {"tools": [{"name": name, "inputSchema": SCHEMA} for name in TOOLS]})
            case "tools/call":
                call(message, message["params"]["name"], message["params"].get("arguments") or {})
            case "notifications/cancelled" if "CANCELLED" in os.environ:
                Path(os.environ["CANCELLED"]).write_text(line, encoding="utf-8")
            case _ if "id" not in message:
                pass
            case _:
                error = {"code": -32601, "message": "Method not found"}
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n")
                sys.stdout.flush()
    while "--stay" in sys.argv:  # like a server that does not notice that its client left
        time.sleep(60)


if "SIGNALS" in os.environ:  # note them, and go on
    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGTERM, note)
main()
