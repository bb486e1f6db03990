"""A server on stdio that says whatever its client tells it to, byte for byte. Run as a program, not imported.

It speaks the protocol version that its only argument names, by default the one that its client asks for.
"""

from __future__ import annotations

import json
import os
import sys
import time

CACHED = b'"ttlMs":0,"cacheScope":"private"'


def say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        number = json.dumps(message.get("id")).encode()
        match message.get("method"):
            case "initialize":
                info = b'{"version":"1","name":"raw","x-own":{"z":1,"a":[]}}'
                offered = b'{"tools":{},"resources":{},"prompts":{},"completions":{},"logging":{}}'
                version = json.dumps([*sys.argv, message["params"]["protocolVersion"]][1]).encode()
                head = b'{"jsonrpc":"2.0","id":' + number + b',"result":{"protocolVersion":' + version
                say(head + b',"capabilities":' + offered + b',"serverInfo":' + info + b"}}")
            case "server/discover" if sys.argv[1:] == ["2026-07-28"]:
                head = b'{"jsonrpc":"2.0","id":' + number + b',"result":{"resultType":"complete",' + CACHED
                offered = b'"capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{}}'
                say(head + b',"supportedVersions":["2026-07-28"],' + offered + b"}}")
            case "tools/list":
                tool = b'{"inputSchema":{"type":"object"},"x-own":1,"name":"say"}'
                head = b'{"jsonrpc":"2.0","id":' + number + b',"result":{"resultType":"complete",' + CACHED
                say(head + b',"tools":[' + tool + b"]}}")
            case "tools/call":
                given = message["params"]["arguments"]
                sys.stderr.write("x" * given.get("stderr", 0) + "\n" * ("stderr" in given))
                sys.stderr.flush()
                if given.get("deaf"):  # like a server that has closed its input but does not end
                    os.close(0)
                for each in given["lines"]:
                    say(each.encode("latin-1").replace(b"@ID@", number))
                if given.get("deaf"):
                    time.sleep(600)
            case _ if "id" in message:
                said = message.get("params", {}).get("_meta", {}).get("say", "{}")
                say(b'{"jsonrpc":"2.0","id":' + number + b',"result":' + said.encode() + b"}")
            case _:
                pass


main()
