"""What passes between an adapter and the core: content blocks go in, an outcome comes out.

An adapter converts its framework's tool result to these blocks and back. Only values belong here, and how each block is
encoded for storage. ``plan`` decides which results are offloaded; ``retrieved`` has what is read back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coatcheck.core.errors import CoatcheckError
    from coatcheck.core.facts import Estimate, Reference

__all__ = (
    "Block",
    "JsonBlock",
    "JsonValue",
    "KeepReason",
    "Kept",
    "MediaBlock",
    "Offloaded",
    "OpaqueBlock",
    "Outcome",
    "TextBlock",
    "ToolResult",
    "Truncated",
    "fits_bytes",
    "is_text",
    "json_text",
    "require_result",
    "to_valid_unicode",
    "utf8_length",
)

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text of any kind, including text that happens to be JSON, CSV, HTML or a log."""

    text: str
    """Stored as UTF-8, unchanged: ``surrogatepass`` preserves lone surrogates."""


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """A JSON value that the framework passes as a value, not as text."""

    value: JsonValue
    """Stored as compact JSON. NaN and infinity, which JSON lacks, are written as Python's ``json`` writes them."""


@dataclass(frozen=True, slots=True)
class MediaBlock:
    """An image, audio, video or document, with its bytes."""

    data: bytes = field(repr=False)
    """The raw bytes, not base64."""

    media_type: str
    """A MIME type such as ``image/png``; it becomes the stored content type."""

    name: str | None = field(default=None, kw_only=True)
    """The document's own name, shown to the model and never used as a path."""


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """A block that coatcheck does not understand. ``offload`` never stores it, and returns the same object."""

    native: object
    """The framework's own block."""


Block: TypeAlias = TextBlock | JsonBlock | MediaBlock | OpaqueBlock
"""A content block of any kind."""

_TEXT_TYPES = frozenset(
    {
        "application/csv",
        "application/ecmascript",
        "application/graphql",
        "application/html",
        "application/javascript",
        "application/json",
        "application/json5",
        "application/jsonl",
        "application/jsonlines",
        "application/markdown",
        "application/md",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/txt",
        "application/x-javascript",
        "application/x-jsonlines",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-toml",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
"""MIME types of text that do not begin with ``text/``. Strands uses ``application/csv``, ``html``, ``md`` and ``txt``
for its documents."""

_MAX_OF_A_STEP = 1_000_000
"""Bytes of JSON that the standard ``json`` may write in one call. That takes 20 ms and blocks the event loop, because
it holds the interpreter's lock. Its pure Python encoder takes four times as long."""

_BLOCKS = (TextBlock, JsonBlock, MediaBlock, OpaqueBlock)
_BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """One tool call and its result, as a callable policy gets it."""

    blocks: tuple[Block, ...]
    """The content blocks, in the framework's order."""

    tool_name: str
    """The tool's name as the framework reports it, unchanged."""

    tool_args: Mapping[str, object] = field(default_factory=dict)
    """The arguments of the call, as the model gave them."""

    is_error: bool = False
    """Whether the framework marked the result as an error."""


KeepReason: TypeAlias = Literal[
    "within the threshold", "policy", "error", "nothing to store", "would not shrink", "storage failed", "exempt"
]


class _Blocks:
    """What all outcomes have in common."""

    __slots__ = ()
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined with newlines: all there is to show if only text came in."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(_Blocks):
    """The result stays in the conversation unchanged."""

    blocks: tuple[Block, ...]
    """The same objects that came in, in the same order."""

    reason: KeepReason
    """Why it stays."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Empty: there is nothing to refer to."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded(_Blocks):
    """The whole result was stored, and a placeholder replaces it in the conversation."""

    blocks: tuple[Block, ...]
    """What goes into the conversation: the notice with the previews, media placeholders, and opaque blocks
    unchanged."""

    references: tuple[Reference, ...]
    """One for each content stored, in order. The last is the ``index``, if there is one."""

    tokens: Estimate
    """Tokens that the result would have cost."""

    index: Reference | None = None
    """The stored list of all references, if there are more than the notice shows."""

    @property
    def mark(self) -> dict[str, Any]:
        """Metadata for the host in the message: all references, or that of the index and how much it lists."""
        if self.index is None:
            return {"references": [reference.id for reference in self.references]}
        size = sum(reference.size for reference in self.references[:-1])
        return {"references": [self.index.id], "blocks": len(self.references) - 1, "bytes": size}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated(_Blocks):
    """The storage failed and the result was above ``max_inline_tokens``: it was cut, and the notice says so."""

    blocks: tuple[Block, ...]
    """What goes into the conversation."""

    error: CoatcheckError
    """Why it could not be stored."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Empty: nothing was stored that the conversation could refer to."""
        return ()

    @property
    def mark(self) -> dict[str, Any]:
        """Metadata for the host in the message: no references."""
        return {"references": []}


Outcome: TypeAlias = Kept | Offloaded | Truncated
"""What became of a tool result."""


def require_result(blocks: Sequence[Block], tool_name: object) -> tuple[Block, ...]:
    """Check what an adapter passed, and return the content blocks as a tuple.

    Raises:
        InvalidRequest: ``tool_name`` is not a ``str``, or ``blocks`` is not a sequence of valid content blocks.

    """
    if not isinstance(tool_name, str):
        msg = f"tool_name must be a str, not {tool_name!r}"
        raise InvalidRequest(msg)
    if isinstance(blocks, _BLOCKS):
        msg = f"blocks must be a sequence of content blocks, not one {type(blocks).__name__}: put it into a list"
        raise InvalidRequest(msg)
    try:
        content = tuple(blocks)
    except TypeError:
        msg = f"blocks must be a sequence of content blocks, not {type(blocks).__name__}"
        raise InvalidRequest(msg) from None
    for block in content:
        if isinstance(block, TextBlock):
            if not isinstance(block.text, str):
                kind = type(block.text).__name__
                msg = f"the text of a TextBlock must be a str, not {kind}; for bytes use a MediaBlock"
                raise InvalidRequest(msg)
        elif isinstance(block, MediaBlock):
            _require_medium(block)
        elif not isinstance(block, _BLOCKS):
            kind = type(block).__name__
            wrap = "; for text use TextBlock(text)" if isinstance(block, str) else ""
            msg = f"a content block must be a TextBlock, JsonBlock, MediaBlock or OpaqueBlock, not {kind}{wrap}"
            raise InvalidRequest(msg)
    return content


def _require_medium(block: MediaBlock) -> None:
    data, media_type, name = block.data, block.media_type, block.name
    if not (isinstance(data, _BYTES) and isinstance(media_type, str) and isinstance(name, str | None)):
        held = ", ".join(type(one).__name__ for one in (data, media_type, name))
        msg = f"a MediaBlock must hold bytes, a MIME type as a str, and a name or None, not {held}"
        raise InvalidRequest(msg)


def json_text(value: JsonValue) -> str:
    """Encode ``value`` as compact JSON.

    orjson does it, except for values that it changes or refuses: it turns NaN and infinity into ``null``, and refuses
    integers beyond 64 bits and lone surrogates. Those go through the standard ``json``.

    Raises:
        InvalidRequest: ``value`` is not made of JSON types.

    """
    with loading:
        import orjson  # noqa: PLC0415 - it imports json, datetime and uuid, and most results are text

    options = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
    try:
        encoded = orjson.dumps(value, option=options)
    except (TypeError, RecursionError):  # orjson.JSONEncodeError is a TypeError
        return _standard_json_text(value)
    if b"null" in encoded and not _is_finite(value):
        return _standard_json_text(value, in_one_step=len(encoded) <= _MAX_OF_A_STEP)
    return encoded.decode("utf-8")


def _is_finite(value: object) -> bool:
    """Return whether a value that orjson accepts holds no NaN and no infinity.

    Walking the value lets other threads run and makes no copy. Parsing orjson's output to compare it takes five times
    as long, without a pause.
    """
    open_values: list[Any] = [(value,)]
    while open_values:
        node = open_values.pop()
        for child in node.values() if type(node) is dict else node:
            kind = type(child)  # orjson accepts no subclass of these four
            if kind is float:
                if child - child != 0:  # the difference is NaN, for infinity too
                    return False
            elif kind is dict or kind is list or kind is tuple:
                open_values.append(child)
    return True


def _standard_json_text(value: JsonValue, *, in_one_step: bool = True) -> str:
    """Encode with the standard ``json``: in one C call, or in pure Python, which lets other threads run in between."""
    with loading:
        import json  # noqa: PLC0415 - see json_text

    encoder = json.JSONEncoder(separators=(",", ":"))
    try:
        return encoder.encode(value) if in_one_step else "".join(encoder.iterencode(value))
    except (TypeError, ValueError, RuntimeError) as error:  # too deep, or a tool is still changing it
        msg = f"JsonBlock holds a value that JSON cannot express ({error}); pass JSON types, or the text as a TextBlock"
        raise InvalidRequest(msg) from error


def utf8_length(text: str) -> int:
    """Return the length of ``text`` in UTF-8 bytes. A lone surrogate counts three, like the U+FFFD that replaces it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fits_bytes(contents: Iterable[Block | str], limit: int) -> bool:
    """Return whether all ``contents`` are text, and have at most ``limit`` UTF-8 bytes together."""
    for content in contents:
        text = content.text if isinstance(content, TextBlock) else content
        if not isinstance(text, str) or len(text) > limit:
            return False
        limit -= len(text) if text.isascii() else utf8_length(text)  # a call for each would double the time
    return limit >= 0


def to_valid_unicode(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced by U+FFFD, so that every client accepts it.

    The length in characters stays the same, so offsets into the result are offsets into ``text``. Text without a
    surrogate is returned unchanged.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # One code point for one: decoding with errors="replace" would make three of each surrogate.
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def is_text(content_type: str) -> bool:
    """Return whether content of this MIME type is read as UTF-8 text. Parameters and case are ignored."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence in _TEXT_TYPES or essence.endswith(("+json", "+xml", "+yaml"))
