"""What a recorded conversation is made of, whatever framework recorded it: frozen values in the order of the recording.

Only these values belong here, and the conversion of a message's content to content blocks. ``formats`` decides which
message becomes which value. Recordings are plain JSON, so this module needs no framework, but knows the shapes that all
of them write.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("SYSTEM", "TOOLS", "Call", "Conversation", "Part", "Result", "Turn", "Words", "blocks_of")

SYSTEM, TOOLS = "system", "tools"
"""Members of ``Conversation.counted``: the system prompt, and the definitions of the tools."""

_TEXT_KEYS = ("text", "thinking", "reasoning", "reasoning_text", "refusal", "output")
"""The keys under which a block holds its text, the most common first."""

_DATA_KEYS = ("base64", "base64_image", "base64_data", "data", "bytes", "file_data", "url", "image_url")
"""The keys under which a media block holds its bytes at any depth, as base64 or as a data URL."""

_MEDIA_KINDS = {"image": "image", "audio": "audio", "video": "video", "document": "application", "file": "application"}
"""Maps a word in the type of a block to the first half of the MIME type, for blocks that name no MIME type."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the system, the user or the host told the model."""

    blocks: tuple[Block, ...]

    is_system: bool = False
    """Whether it is the system prompt, or a part of it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the model wrote."""

    name: str
    arguments: str
    """JSON text, or whatever the model wrote in its place."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of the model, which was sent everything before it, and wrote this."""

    said: tuple[Block, ...]
    calls: tuple[Call, ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Everything that it wrote. Each call becomes its tool's name, followed by its arguments as JSON text."""
        return (*self.said, *(TextBlock(call.name + call.arguments) for call in self.calls))


@dataclass(frozen=True, slots=True)
class Result:
    """What one tool call returned."""

    result: ToolResult

    offloaded: bool = False
    """Whether the recording marks it as offloaded already, by coatcheck or by the framework's own offloader."""


Part: TypeAlias = Words | Turn | Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One recorded conversation."""

    name: str
    """The recording's own id, or its place in the file."""

    source: str
    """The path of its file or folder."""

    recorded_as: str
    """The format that it was recognized as."""

    parts: tuple[Part, ...]

    counted: frozenset[str] = frozenset()
    """Which of ``SYSTEM`` and ``TOOLS``, which every request sends before the conversation, ``parts`` include."""

    has_tool: bool = False
    """Whether the recorded tools include one that reads back offloaded results."""

    was_sent: bool = False
    """Whether it is a request to a model's API, so that the model was sent all of it."""


def blocks_of(content: Any) -> tuple[Block, ...]:  # noqa: ANN401 - any JSON value
    """Return the content of a message as content blocks, in order; none for empty content."""
    if content is None or content == "":
        return ()
    if isinstance(content, list):
        return tuple(map(_block_of, content))
    block = _block_of(content)
    # Outside a list, an unknown object is not a framework's own block: a tool returned it.
    return (JsonBlock(content) if isinstance(block, OpaqueBlock) else block,)


def _block_of(native: Any) -> Block:  # noqa: ANN401 - any JSON value
    if isinstance(native, str):
        return TextBlock(native)
    if not isinstance(native, Mapping):
        return JsonBlock(native)
    if "json" in native:
        return JsonBlock(native["json"])
    return _text_of(native) or _media_of(native) or OpaqueBlock(native)


def _text_of(native: Mapping[str, Any]) -> TextBlock | None:
    source = native.get("source")
    if isinstance(source, Mapping) and source.get("type") == "text":  # an Anthropic document
        return TextBlock(str(source.get("data")))
    for key in _TEXT_KEYS:
        value = native.get(key)
        if isinstance(value, str):
            return TextBlock(value)
        if key == "reasoning" and isinstance(value, Mapping):  # Haystack's reasoning is a level deeper
            return _text_of(value)
    return None


def _media_of(native: Mapping[str, Any]) -> MediaBlock | None:
    kind = str(native.get("type") or next(iter(native), ""))
    first = next((half for word, half in _MEDIA_KINDS.items() if word in kind), None)
    if first is None:
        return None
    leaves = dict(_leaves(native))
    head, _, encoded = next((leaves[key] for key in _DATA_KEYS if key in leaves), "").rpartition(",")
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError:
        data = b""  # it is at a URL: it costs tokens, but there is nothing to store
    named = leaves.get("mime_type") or leaves.get("media_type") or head.removeprefix("data:").partition(";")[0]
    return MediaBlock(data, named or f"{first}/{leaves.get('format', 'unknown')}")


def _leaves(native: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every string in nested mappings with its key. No recursion: a recording may be nested to any depth."""
    open_mappings: list[Mapping[str, Any]] = [native]
    while open_mappings:
        for key, value in open_mappings.pop().items():
            if isinstance(value, str):
                yield key, value
            elif isinstance(value, Mapping):
                open_mappings.append(value)
