"""Drive a read from bytes in memory, the way the engine does from a storage, and record what was requested.

Only this belongs here; random text comes from ``strategies``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import (
    Answer,
    ByteRange,
    IndexNeeded,
    LineIndex,
    Source,
    encode_bytes,
    index_text,
    parse_request,
    read,
)
from coatcheck.core.reading.index import Place, columns_of
from coatcheck.core.tokens import ByteCounter, TokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from coatcheck.core.reading import Encoded

_Result = TypeVar("_Result")

REFERENCE = "search_orders-4f9c1e7a20b3d8e1-07ac"
TOOL = "retrieve_offloaded_content"


@dataclass(kw_only=True)
class Stored:
    """Stored content, and every part of it that was read."""

    data: bytes
    content_type: str = "text/plain"
    characters: int | None = None
    lines: int | None = None
    index: bytes | None = None
    reference: str = REFERENCE
    parts: list[ByteRange] = field(default_factory=list)
    indexes: int = 0

    def ask(self, *, counter: TokenCounter | None = None, budget: int = 2_500, **selectors: object) -> Answer:
        """Return the answer to one call of the retrieval tool."""
        return self.follow(selectors, counter=counter, budget=budget)

    def follow(
        self, arguments: Mapping[str, object], *, counter: TokenCounter | None = None, budget: int = 2_500
    ) -> Answer:
        """Return the answer to a call with these arguments, such as another answer's next call."""
        source = Source(
            reference=self.reference,
            content_type=self.content_type,
            size=len(self.data),
            characters=self.characters,
            lines=self.lines,
            has_index=self.index is not None,
        )
        request = parse_request(**arguments)
        reading = read(source, request, counter=counter or ByteCounter(), budget=budget, tool_name=TOOL)
        try:
            wanted = next(reading)
            while True:
                wanted = reading.send(self._fetch(wanted))
        except StopIteration as stop:
            return cast("Answer", stop.value)

    def read_bytes(self) -> int:
        return sum(part.length for part in self.parts)

    def _fetch(self, wanted: ByteRange | IndexNeeded) -> bytes | None:
        if isinstance(wanted, IndexNeeded):
            self.indexes += 1
            return self.index
        assert wanted.length > 0
        self.parts.append(wanted)
        return self.data[wanted.start : wanted.start + wanted.length]


def stored(text: str, content_type: str = "text/plain", *, spacing: int | None = None) -> Stored:
    """Return ``text`` as the engine stores it. ``spacing`` puts a checkpoint at every so many characters."""
    encoded = encode_text(text)
    index = encoded.index
    if spacing is not None and text:
        index = dense_index(text, spacing)
    return Stored(
        data=encoded.data,
        content_type=content_type,
        characters=encoded.characters,
        lines=encoded.lines,
        index=index.to_bytes() if index is not None else None,
    )


def foreign(data: bytes, content_type: str = "text/plain") -> Stored:
    """Return bytes without totals or an index, as another library's storage holds them."""
    return Stored(data=data, content_type=content_type)


def encode_text(text: str) -> Encoded:
    """Return ``text`` as the engine stores it, with its totals and its index."""
    return _finish(_encode(text))


def _encode(text: str) -> Generator[None, None, Encoded]:
    data, starts = yield from encode_bytes(text)
    return (yield from index_text(text, data, starts))


def _finish(work: Generator[None, None, Encoded]) -> Encoded:
    try:
        while True:
            next(work)
    except StopIteration as end:
        return cast("Encoded", end.value)


def dense_index(text: str, spacing: int) -> LineIndex:
    """Build, the naive way, an index with a checkpoint every ``spacing`` characters."""
    places = [
        Place(len(text[:at].encode("utf-8", "surrogatepass")), text[:at].count("\n"), at)
        for at in range(0, len(text), spacing)
    ]
    encoded = encode_text(text)
    return LineIndex(
        size=len(encoded.data), characters=encoded.characters, lines=encoded.lines, checkpoints=columns_of(places)
    )


def body(answer: Answer) -> str:
    """Return the part of an answer between its first and last line ends."""
    return answer.text.partition("\n")[2].rpartition("\n")[0]


def shown(text: str) -> str:
    """Return ``text`` as the model gets it, with lone surrogates replaced."""
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


def split_lines(text: str) -> list[str]:
    r"""Return the lines of ``text``. Each ends at ``\n``; a ``\r`` before that belongs to the line end."""
    pieces = text.split("\n")
    last = pieces.pop()
    return [piece.removesuffix("\r") for piece in pieces] + ([last] if last else [])


def attempt(call: Callable[[], _Result]) -> _Result | InvalidRequest:
    """Return what ``call`` returns, or the refusal it raises. Any other error is a bug."""
    try:
        return call()
    except InvalidRequest as error:
        return error
