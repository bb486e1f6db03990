"""The cost of the retrieval tool's definition in every request, measured in what a framework's client sends."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coatcheck import RETRIEVAL_TOOL, Offloader, TiktokenCounter
from coatcheck.testing import Conversation, Harness, Model, Run, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("MAX_TOKENS", "tokens_on_the_wire")

MAX_TOKENS = 150
"""Tokens of ``o200k_base``. Every turn of every conversation pays for them, even if nothing is ever offloaded."""


class _Recording(ScriptedServer):
    """Keeps its last conversation."""

    last: Conversation

    @contextmanager
    def conversation(self, model: Model, **options: str) -> Iterator[Conversation]:
        with super().conversation(model, **options) as self.last:
            yield self.last


def tokens_on_the_wire(harness: Callable[[ScriptedServer], Harness]) -> int:
    """Return the number of tokens in the tool's definition as a framework's client sends it."""
    with _Recording().serving() as server:
        assert isinstance(server, _Recording)
        harness(server).run(Run(offloader=Offloader(), scope="conversation-1", tools={}, model=lambda _: ()))
        body = server.last.sent[-1].decode()
    tools = json.loads(body)["tools"]
    (tool,) = (tool for tool in tools if tool.get("function", tool)["name"] == RETRIEVAL_TOOL)
    forms = (json.dumps(tool, separators=(",", ":"), ensure_ascii=False), json.dumps(tool))
    (sent,) = (form for form in forms if form in body)
    return TiktokenCounter("o200k_base").count(sent)
