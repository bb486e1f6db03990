"""The hard limit that holds when everything else failed: no result above it enters a conversation whole.

An adapter's guard calls this after something went wrong in its conversions, in the engine or in a storage. So it has
few parts: no preview by kind, no policy, no line index. Bytes decide about a result that is far too large. For a result
that may be within the limit, the token counter decides, or bytes if the counter fails.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from coatcheck.core.arguments import PROPOSED
from coatcheck.core.blocks import (
    Block,
    JsonBlock,
    MediaBlock,
    Offloaded,
    OpaqueBlock,
    TextBlock,
    Truncated,
    fits_bytes,
    to_valid_unicode,
    utf8_length,
)
from coatcheck.core.errors import CoatcheckError, InvalidRequest, StorageError, describe_error
from coatcheck.core.facts import Estimate
from coatcheck.core.notice import (
    ALL_LOST,
    ENDS_SHOWN,
    LEFT_OUT,
    block_left_out,
    notice,
    reference_line,
    truncation_notice,
)
from coatcheck.core.tokens import CountedOnce, ends_of
from coatcheck.engine.contents import Contents
from coatcheck.engine.events import About
from coatcheck.engine.failures import cause_for_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coatcheck.core.facts import Reference
    from coatcheck.core.references import Scope
    from coatcheck.core.settings import Settings
    from coatcheck.engine.events import Recorder
    from coatcheck.engine.execution import Effects, StorageAccess

__all__ = ("LastResort", "with_opaque_as_json")

BYTES_PER_TOKEN = 4
"""The usual estimate for ordinary English text. Text with more bytes than this times the limit counts as above it, so
little is ever left to count."""

_NO_SEQUENCES = (str, bytes, bytearray, memoryview, Mapping)
"""Types that can be iterated over, but are one value."""

_ENCODED = re.compile(r"(?:data:[^,]{,200},)?[\w+/=\r\n-]*", re.ASCII)
"""Media encoded in a ``str``. Ordinary text of any length has spaces or punctuation."""


class LastResort:
    """Stores the text of a result as it is, or cuts it. Returns failures as outcomes instead of raising them."""

    def __init__(self, storage: StorageAccess, settings: Settings, recorder: Recorder) -> None:
        self._contents = Contents(storage)
        self._recorder = recorder
        self._counter = settings.counter
        self._tokens = settings.max_inline_tokens
        self._limit = BYTES_PER_TOKEN * settings.max_inline_tokens
        self._preview = min(settings.preview_limit, settings.max_inline_tokens)

    def settle(
        self,
        blocks: Sequence[Block],
        scope: Scope | Exception,
        *,
        tool_name: str,
        retrieval_tool: str | None,
        error: Exception | None,
    ) -> Effects[Offloaded | Truncated | None]:
        """Store what is above the limit, or cut it, and return what enters the conversation; None if the result stays.

        ``error`` is what led here; it is reported to the host. An argument of the wrong type does not keep the result
        from being stored, since the caller has failed already.
        """
        blocks, tool_name = _blocks_in(blocks), tool_name if isinstance(tool_name, str) else ""
        retrieval_tool = (retrieval_tool or None) if isinstance(retrieval_tool, str) else None
        about = About(scope=None if isinstance(scope, Exception) else scope, tool_name=tool_name, references=())
        if isinstance(error, Exception):
            failure = _ours(error, "an adapter could not offload a result")
            self._recorder.record_failure(failure, about, logged=None)
        if not self._is_needed(blocks):
            return None
        try:
            stored: Reference | Exception = yield from self._store(blocks, scope, tool_name=tool_name)
        except Exception as failed:  # noqa: BLE001 - the result must not stay whole, whatever keeps it from being stored
            stored = failed
        without_scope = isinstance(scope, Exception)
        return self._outcome(blocks, stored, about, retrieval_tool=retrieval_tool, without_scope=without_scope)

    def cut(self, blocks: Sequence[Block], error: Exception, *, tool_name: str) -> Truncated | Offloaded | None:
        """Cut what is above the limit and store nothing, after ``error`` kept ``settle`` from running."""
        blocks, tool_name = _blocks_in(blocks), tool_name if isinstance(tool_name, str) else ""
        about = About(scope=None, tool_name=tool_name, references=())
        return self._outcome(blocks, error, about, retrieval_tool=None) if self._is_needed(blocks) else None

    def _is_needed(self, blocks: Sequence[Block]) -> bool:
        """Return whether the text blocks together exceed the limit, or any other block alone."""
        texts = _texts(blocks)
        if not fits_bytes(texts, self._limit) or any(self._exceeds_limit(block) for block in blocks):
            return True
        return self._exceeds("\n".join(texts), self._tokens)

    def _store(self, blocks: Sequence[Block], scope: Scope | Exception, *, tool_name: str) -> Effects[Reference]:
        """Store everything that is taken out, joined by line ends, and return the reference.

        Raises:
            CoatcheckError: the storage failed; or ``scope`` is an error, raised when it was chosen.

        """
        if isinstance(scope, CoatcheckError):
            raise scope
        if isinstance(scope, Exception):
            msg = f"choosing its scope failed: {describe_error(scope)}"
            raise InvalidRequest(msg, for_host=True) from scope
        held = [*_texts(blocks), *(_as_json(block) for block in blocks if self._exceeds_limit(block))]
        data = "\n".join(held).encode("utf-8", "surrogatepass")
        saved = yield from self._contents.save(data, "text/plain", scope=scope, tool_name=tool_name)
        if isinstance(saved, CoatcheckError):
            raise saved
        return saved

    def _outcome(
        self,
        blocks: Sequence[Block],
        stored: Reference | Exception,
        about: About,
        *,
        retrieval_tool: str | None,
        without_scope: bool = False,
    ) -> Offloaded | Truncated:
        """Return what enters the conversation: the head and tail of the text, and every other small block as it is."""
        heavy = [block for block in blocks if self._exceeds_limit(block)]
        rest = [block for block in blocks if not (isinstance(block, TextBlock) or self._exceeds_limit(block))]
        known: int | None = None
        try:
            texts = [*_texts(blocks), *(block_left_out(_size_of(block)) for block in heavy)]
            count = self._count(_texts(blocks)) + -(-sum(map(_size_of, heavy)) // BYTES_PER_TOKEN)
            known = round(count, 2 - len(str(count)))
            tokens = Estimate(known, exact=False)
            if isinstance(stored, Exception):
                error = _ours(stored)
                reason = cause_for_model(error, without_scope=without_scope)
                head = truncation_notice(tool_name=about.tool_name or "", tokens=tokens, reason=reason)
                text = self._with_ends(f"{head}\n\n", texts, self._tokens)
                outcome: Offloaded | Truncated = Truncated(blocks=(TextBlock(text), *rest), error=error)
            else:
                head = notice(
                    [reference_line(stored)],
                    blocks=len(blocks) - len(rest),
                    tokens=tokens,
                    retrieval_tool=retrieval_tool,
                    selectors=PROPOSED,
                )
                text = f"{head}\n\n{ENDS_SHOWN}\n{self._with_ends('', texts, self._preview)}"
                outcome = Offloaded(blocks=(TextBlock(text), *rest), references=(stored,), tokens=tokens)
        except Exception as failed:  # noqa: BLE001 - nothing comes after this
            outcome = Truncated(blocks=(TextBlock(ALL_LOST), *rest), error=_ours(failed))
        self._recorder.record_outcome(outcome, about, tokens=known)
        return outcome

    def _with_ends(self, head: str, texts: Sequence[str], limit: int) -> str:
        """Return ``head`` and as much of both ends of the text as fits with it into ``limit`` tokens."""
        room = BYTES_PER_TOKEN * limit - utf8_length(head)
        while ends := _ends(texts, room):
            if not self._exceeds(head + ends, limit):
                return head + ends
            room = room * 3 // 4  # few tries are left, since a token has at least one byte
        return head.rstrip()

    def _count(self, texts: Sequence[str]) -> int:
        """Estimate how many tokens the text has, by its bytes if the counter fails."""
        try:
            return CountedOnce(self._counter).estimate("\n".join(texts), exact_up_to=self._tokens).tokens
        except Exception:  # noqa: BLE001 - it may be what failed before
            return -(-sum(map(utf8_length, texts)) // BYTES_PER_TOKEN)

    def _exceeds(self, text: str, limit: int) -> bool:
        """Return whether ``text`` has more tokens than ``limit``, by its bytes if the counter fails."""
        try:
            return self._counter.exceeds(text, limit)
        except Exception:  # noqa: BLE001 - it may be what failed before
            return utf8_length(text) > BYTES_PER_TOKEN * limit

    def _exceeds_limit(self, block: Block) -> bool:
        return not isinstance(block, TextBlock) and _size_of(block, up_to=self._limit) > self._limit


def _blocks_in(given: object) -> tuple[Block, ...]:
    """Return the blocks that an adapter passed; turn anything else into a block of text or an opaque block."""
    try:
        parts = (given,) if isinstance(given, _NO_SEQUENCES) else tuple(cast("Iterable[object]", given))
    except Exception:  # noqa: BLE001 - such as for None
        parts = (given,)
    return tuple(map(_as_block, parts))


def _as_block(part: object) -> Block:
    held = part.text if isinstance(part, TextBlock) else part
    if isinstance(held, str):
        return part if isinstance(part, TextBlock) else TextBlock(held)
    return held if isinstance(held, JsonBlock | MediaBlock | OpaqueBlock) else OpaqueBlock(held)


def with_opaque_as_json(blocks: Sequence[Block], *, max_inline_tokens: int) -> tuple[Block, ...]:
    """Return the blocks; opaque ones become JSON text, which can be offloaded, if they hold more text than the limit.

    Media in them do not count, because a model does not get them as text. A block that is mostly media stays as it is,
    unless its text alone exceeds the limit.
    """
    limit = BYTES_PER_TOKEN * max_inline_tokens
    texts = [
        _size_of(block, up_to=limit, weigh=_length_of_text) if isinstance(block, OpaqueBlock) else 0 for block in blocks
    ]
    if sum(texts) <= limit:
        return tuple(blocks)
    return tuple(
        TextBlock(_as_json(block)) if text > limit or (text and 2 * text >= _size_of(block)) else block
        for block, text in zip(blocks, texts, strict=True)
    )


def _length_of(value: str | bytes) -> int:
    return utf8_length(value) if isinstance(value, str) else len(value)


def _size_of(block: Block, *, up_to: float = math.inf, weigh: Callable[[Any], int] = _length_of) -> int:
    """Return roughly how many bytes a block holds, with text as UTF-8; stop counting above ``up_to``."""
    size, seen, left = 0, set[int](), [_held_by(block)]
    while left and size <= up_to:
        value = left.pop()
        size += 1
        if isinstance(value, str | bytes | bytearray | memoryview):
            size += weigh(value)
        elif id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, Mapping):
                left += [*value.keys(), *value.values()]
            elif isinstance(value, list | tuple | set | frozenset):
                left += value
            else:
                left += _fields_of(value).values()
    return size


def _length_of_text(value: str | bytes) -> int:
    return utf8_length(value) if isinstance(value, str) and _ENCODED.fullmatch(value) is None else 0


def _fields_of(value: object) -> dict[str, Any]:
    """Return the fields of a dataclass or a pydantic model; none for any other object, which may lead anywhere."""
    if isinstance(value, type):
        return {}
    if dataclasses.is_dataclass(value):
        return {field.name: _get(value, field.name) for field in dataclasses.fields(value)}
    return _attributes_of(value) if _get(value, "__pydantic_fields__") is not None else {}


def _attributes_of(value: object) -> dict[str, Any]:
    fields = [_get(value, name) for name in ("__dict__", "__pydantic_extra__")]
    return {
        name: held for some in fields if isinstance(some, Mapping) for name, held in some.items() if held is not None
    }


def _get(value: object, name: str) -> Any:  # noqa: ANN401 - whatever it holds
    """Return an attribute; None if there is none, or if reading it raises."""
    with suppress(Exception):
        return getattr(value, name)
    return None


def _held_by(block: Block) -> object:
    match block:
        case TextBlock():
            return block.text
        case JsonBlock():
            return block.value
        case MediaBlock():
            return block.data
        case OpaqueBlock(native) if _get(native, "__dict__") is not None and not dataclasses.is_dataclass(native):
            return _attributes_of(native)  # a framework's own part object
        case OpaqueBlock(native):
            return native


def _as_json(block: Block) -> str:
    held = _held_by(block)
    try:
        return json.dumps(held, ensure_ascii=False, default=_as_json_value)
    except (TypeError, ValueError):  # a key that JSON cannot have, or a value that contains itself
        return repr(held)


def _as_json_value(value: object) -> object:
    with suppress(Exception):
        return _fields_of(value) or repr(bytes(value) if isinstance(value, memoryview) else value)
    return object.__repr__(value)


def _texts(blocks: Sequence[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def _ends(texts: Sequence[str], room: int) -> str:
    """Return the head and tail of ``texts`` in about ``room`` bytes, cut between characters."""
    if sum(map(utf8_length, texts)) + len(texts) <= room:
        return to_valid_unicode("\n".join(texts))
    mark = LEFT_OUT
    half = (room - utf8_length(mark) - 2) // 2  # two line ends
    if half <= 0:
        return ""
    head, tail = ends_of(texts, half)
    return f"{head}\n{mark}\n{tail}"


def _ours(error: Exception, what: str = "the last resort could not store a result") -> CoatcheckError:
    if isinstance(error, CoatcheckError):
        return error
    ours = StorageError(f"{what}: {describe_error(error)}")
    ours.__cause__ = error
    return ours
