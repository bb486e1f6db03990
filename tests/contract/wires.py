"""The wire formats of Anthropic and Bedrock, for every framework with clients of both.

The whole contract runs in OpenAI's format. Here are the scenarios whose content looks different in these two, and the
conversation that all frameworks have in common. The servers fail on what the real ones refuse.
"""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import RETRIEVAL_TOOL, TiktokenCounter
from coatcheck.adapting import find_references_in
from coatcheck.testing import SCENARIOS, AdapterContract, ModelCall
from coatcheck.testing.adapter import reason_to_skip
from tests.contract.anthropic import AnthropicServer
from tests.contract.bedrock import BedrockServer
from tests.contract.definition import MAX_TOKENS
from tests.contract.golden import golden, play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from coatcheck.testing import Capability, Conversation, Harness, Model, Received, ScriptedServer

__all__ = ("FILE", "ON_EACH_WIRE", "check_native_media", "check_wire")

ON_EACH_WIRE = pytest.mark.parametrize("wire", ["anthropic", "bedrock"])

SERVERS: Mapping[str, type[ScriptedServer]] = {"anthropic": AnthropicServer, "bedrock": BedrockServer}

HERE = {
    *("several texts", "text and media", "mixed media", "JSON object block", "image", "document", "read media"),
    *("parallel calls", "error", "unknown reference", "just above the threshold"),
}

FILE = b"%PDF" * 5_000
READS = 2

AWS = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}


def check_wire(
    wire: str,
    harness: Callable[[ScriptedServer], Harness],
    *,
    lacks: Mapping[Capability, str],
    patch: pytest.MonkeyPatch,
    folder: Path,
) -> None:
    """Run these scenarios and the common conversation through a framework's client for one provider."""
    for name, value in AWS.items():
        patch.setenv(name, value)
    server, opened = SERVERS[wire](), list["Conversation"]()
    open_one = server.conversation

    @contextmanager
    def recording(model: Model, **options: str) -> Iterator[Conversation]:
        with open_one(model, **options) as conversation:
            opened.append(conversation)
            yield conversation

    patch.setattr(server, "conversation", recording)
    with server.serving():
        for scenario in SCENARIOS:
            if scenario.name in HERE and reason_to_skip(scenario, lacks=lacks, cannot={}) is None:
                AdapterContract().test_scenario(
                    harness(server), scenario=scenario, delivery="sync, memory", tmp_path=folder
                )
        assert play(harness(server)) == golden()
    check_requests([json.loads(body) for body in opened[-1].sent])


def check_native_media(wire: str, run: Callable[[Conversation], object], *, patch: pytest.MonkeyPatch) -> None:
    """Let a model call ``fetch``, which returns ``FILE``, and read it back twice; check that each read sends it."""
    for name, value in AWS.items():
        patch.setenv(name, value)

    def model(received: Sequence[Received]) -> Sequence[ModelCall]:
        if not received:
            return [ModelCall(tool="fetch", arguments={}, call_id="call")]
        reference = next(find_references_in([{"role": "tool", "content": received[0].text}]))
        read = ModelCall(tool=RETRIEVAL_TOOL, arguments={"reference": reference}, call_id=f"read_{len(received)}")
        return [read] if len(received) <= READS else []

    server = SERVERS[wire]()
    with server.serving(), server.conversation(model) as conversation:
        run(conversation)
    assert conversation.sent[-1].count(b64encode(FILE)) == READS


def check_requests(bodies: list[dict[str, Any]]) -> None:
    """Check that each request extends the previous one, as a prompt cache needs, and that our tool costs little."""
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert {**later, "messages": ()} == {**earlier, "messages": ()}
    tools = bodies[0].get("tools") or bodies[0]["toolConfig"]["tools"]
    (ours,) = (tool for tool in tools if RETRIEVAL_TOOL in json.dumps(tool))
    assert TiktokenCounter("o200k_base").count(json.dumps(ours, separators=(",", ":"))) <= MAX_TOKENS
