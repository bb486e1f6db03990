"""What the tests of both LangChain extras share: large results, an offloader for them, and how to look inside.

Only values and small functions belong here, and nothing that needs more than langchain-core.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from coatcheck import InMemoryStorage, Offloader

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

LONG = "\n".join(f"row {number}: the quick brown fox jumps over the lazy dog" for number in range(1, 2_001))
"""Some 28,000 tokens: above the default threshold, below ``max_inline_tokens``."""

SHORT = "only a few words"

OPENING = "Tool result offloaded."

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_TEXT = base64.b64encode(PNG).decode("ascii")

BIG_MEDIUM = base64.b64encode(PNG * 4_000).decode("ascii")
"""Some 370 KB of base64."""

SURROGATE = "\ud83d"
"""Half an emoji: no client can send it."""


def make_offloader(**knobs: Any) -> Offloader:
    return Offloader(InMemoryStorage(), **knobs)


def text_of(message: BaseMessage) -> str:
    """Return what a model reads in a message: its text parts, joined."""
    if isinstance(message.content, str):
        return message.content
    parts = [part if isinstance(part, str) else str(part.get("text", "")) for part in message.content]
    return "\n".join(parts)


def tool_call(name: str, args: dict[str, Any] | None = None, *, call_id: str | None = "call-1") -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": args or {}, "id": call_id}
