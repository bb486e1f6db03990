"""A proxy in front of a real server that fails on purpose: delays, errors, cut connections, slow answers.

It stands in for a bad network and a busy server, so the client, the server and their protocol are the real ones.
Only faults belong here; the tests say what must survive them.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

__all__ = ("Fault", "Faults", "Request", "running_proxy", "running_proxy_process", "sometimes")

Fault: TypeAlias = Literal["500", "501", "503", "409", "cut before", "cut after", "cut body", "slow body"]
"""An answer with that status and nothing done; a connection cut before the request reaches the server, between the
request and the answer, or in the middle of the answer's body; a body that arrives in small pieces."""

CODES = {"409": "ConditionalRequestConflict", "500": "InternalError", "501": "NotImplemented", "503": "SlowDown"}
NOT_PASSED_ON = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
SLOW_PIECES = 20
SLOW_SECONDS = 0.2
SOCKET_SECONDS = 30.0


@dataclass(frozen=True)
class Request:
    """The part of a request by which its fault is chosen."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Faults:
    """What the proxy does to requests. Tests may change it while the proxy runs."""

    choose: Callable[[Request], Fault | None] = field(default=lambda _: None)
    """Returns the fault of a request. Called from many threads, one at a time."""

    latency_seconds: float = 0.0
    """The delay before each request is passed on."""

    done: Counter[str] = field(default_factory=Counter)
    """The number of requests by fault; ``"none"`` counts those without one."""

    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, request: Request) -> Fault | None:
        """Return the fault of a request, and count it."""
        with self.lock:
            fault = self.choose(request)
            self.done[fault or "none"] += 1
        return fault


def sometimes(share: float, *faults: Fault, seed: int) -> Callable[[Request], Fault | None]:
    """Return a function that gives a ``share`` of all requests one of ``faults``, reproducibly by ``seed``."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    return lambda _: chance.choice(faults) if chance.random() < share else None


@contextmanager
def running_proxy(endpoint: str, faults: Faults) -> Iterator[str]:
    """Run the proxy in front of ``endpoint``; yield its own address."""
    target = urlsplit(endpoint).netloc

    class Proxy(_Proxy):
        upstream = target
        fails = faults

    server = _Server(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Report nothing about cut connections: cutting them is what this proxy is for."""


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_SECONDS
    upstream: ClassVar[str]
    fails: ClassVar[Faults]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Log nothing."""

    def _handle(self) -> None:
        request = Request(self.command, self.path, dict(self.headers.items()))
        fault = self.fails.of(request)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(self.fails.latency_seconds)
        if fault == "cut before":
            self._cut()
        elif fault in CODES:
            self._refuse(cast("str", fault))
        else:
            self._pass_on(body, fault)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle  # noqa: N815 - the parent's names

    def _refuse(self, status: str) -> None:
        told = f"<Error><Code>{CODES[status]}</Code><Message>on purpose</Message></Error>".encode()
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        upstream = http.client.HTTPConnection(self.upstream, timeout=SOCKET_SECONDS)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {"connection", "expect"}:
                    upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            content = answer.read()
        finally:
            upstream.close()
        if fault == "cut after":
            self._cut()
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in NOT_PASSED_ON:
                self.send_header(name, value)
        length = str(len(content)) if self.command != "HEAD" else answer.headers.get("Content-Length", "0")
        self.send_header("Content-Length", length)
        self.end_headers()
        self._send(content, fault)

    def _send(self, content: bytes, fault: Fault | None) -> None:
        if fault == "cut body":
            self.wfile.write(content[: len(content) // 2])
            self._cut()
        elif fault == "slow body":
            size = max(1, len(content) // SLOW_PIECES)
            for start in range(0, len(content), size):
                self.wfile.write(content[start : start + size])
                time.sleep(SLOW_SECONDS / SLOW_PIECES)
        else:
            self.wfile.write(content)

    def _cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()


@contextmanager
def running_proxy_process(endpoint: str, *, latency_seconds: float) -> Iterator[str]:
    """Run a proxy that only delays, in a process of its own, so that it takes no time from the measured one."""
    context = get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_serve, args=(endpoint, latency_seconds, its), daemon=True)
    process.start()
    its.close()  # so that a process that ends without an answer raises here instead of hanging
    try:
        yield str(mine.recv())
    finally:
        mine.send("stop")
        process.join()


def _serve(endpoint: str, latency_seconds: float, pipe: Connection) -> None:
    with running_proxy(endpoint, Faults(latency_seconds=latency_seconds)) as address:
        pipe.send(address)
        pipe.recv()
