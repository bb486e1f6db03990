"""What the definition of the retrieval tool costs in every request, by the bytes that a framework's client sends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from coatcheck import RETRIEVAL_TOOL, Offloader, TiktokenCounter
from coatcheck.testing import Harness, Run
from tests.contract.server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug import Request, Response

__all__ = ("MOST_TOKENS", "tokens_on_the_wire")

MOST_TOKENS = 150
"""Of ``o200k_base``. Every turn of every conversation pays for it, also those in which nothing is ever offloaded."""


class _Recording(ScriptedServer):
    """Keeps the last request as it came."""

    body = b""

    def _answer(self, request: Request) -> Response:
        self.body = request.get_data()
        return super()._answer(request)


def tokens_on_the_wire(harness: Callable[[ScriptedServer], Harness]) -> int:
    """Return the tokens of what a framework's client sends as the definition of the tool."""
    with _Recording().serving() as server:
        assert isinstance(server, _Recording)
        harness(server).run(Run(offloader=Offloader(), scope="conversation-1", tools={}, model=lambda _: ()))
        body = server.body.decode()
    (tool,) = (tool for tool in json.loads(body)["tools"] if tool["function"]["name"] == RETRIEVAL_TOOL)
    forms = (json.dumps(tool, separators=(",", ":"), ensure_ascii=False), json.dumps(tool))
    (sent,) = (form for form in forms if form in body)
    return TiktokenCounter("o200k_base").count(sent)
