"""Read stored content back, in answers that fit a token budget. Pure, without I/O.

    reading = read(source, request, counter=..., budget=..., tool_name=...)
    ByteRange(start, length)  ─▶  the engine sends those bytes          ┐ until the generator
    IndexNeeded()             ─▶  the engine sends the index, or None   ┘ returns an Answer

``slices`` reads by character and by line, ``search`` by pattern (with ``pattern``, ``meanings`` and ``scan``), and
``query`` by JMESPath (with ``interpreter``, ``compared`` and ``records``). Below them, ``source`` fetches bytes,
``index`` knows where lines and characters are, and ``wording`` has every message. This module chooses between them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from coatcheck.core.arguments import Request, parse_request
from coatcheck.core.blocks import is_text
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import loading
from coatcheck.core.reading import wording
from coatcheck.core.reading.index import Encoded, LineIndex, encode_bytes, index_text
from coatcheck.core.reading.source import Answer, ByteRange, IndexNeeded, Reading, Source
from coatcheck.core.settings import MAX_QUERY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.reading.slices import Writer
    from coatcheck.core.tokens import TokenCounter

__all__ = (
    "Answer",
    "ByteRange",
    "Encoded",
    "IndexNeeded",
    "LineIndex",
    "Reading",
    "Request",
    "Source",
    "encode_bytes",
    "index_text",
    "parse_request",
    "read",
)

_Mode: TypeAlias = "Callable[[Source, Request, Writer], Reading]"

_SHOWN_TYPE = 100  # characters; a tool may call its content anything


def read(
    source: Source,
    request: Request,
    *,
    counter: TokenCounter,
    budget: int,
    tool_name: str,
    max_query_bytes: int = MAX_QUERY_BYTES,
    native_media: bool = False,
) -> Reading:
    """Return a reading whose answer has at most ``budget`` tokens and, if there is more, names the next call.

    The budget is at least ``MIN_BUDGET``, as ``Settings`` ensures. Each answer goes at least one character further than
    the previous one. ``native_media`` says that the engine itself answers requests for whole non-text content.

    Raises:
        InvalidRequest: the request does not fit the content; the message says what would.
        CorruptContent: the content ends before ``source.size``.

    """
    if not is_text(source.content_type):
        return _describe(source, request, native_media=native_media)
    if not source.size:
        return Answer(text=wording.EMPTY)
    new_writer, read_query, read_matches, read_lines, read_characters = _load_modes()
    writer = new_writer(counter=counter, budget=budget, tool_name=tool_name, reference=source.reference)
    if request.query is not None:
        return (yield from read_query(source, request, writer, max_query_bytes))
    if request.pattern is not None:
        return (yield from read_matches(source, request, writer))
    if request.line_range is not None:
        return (yield from read_lines(source, request, writer))
    return (yield from read_characters(source, request, writer))


@cache
def _load_modes() -> tuple[type[Writer], Callable[[Source, Request, Writer, int], Reading], _Mode, _Mode, _Mode]:
    """Load RE2, JMESPath and what uses them, once: an agent that begins by offloading need not wait for them."""
    with loading:
        from coatcheck.core.reading import query, search, slices  # noqa: PLC0415

    return slices.Writer, query.read_query, search.read_matches, slices.read_lines, slices.read_characters


def _describe(source: Source, request: Request, *, native_media: bool) -> Answer:
    """Return the answer for content that is not text."""
    content_type = source.content_type[:_SHOWN_TYPE]
    if not request.selects_nothing:
        raise InvalidRequest(wording.binary_refused(content_type, given=request.given(), shown_whole=native_media))
    return Answer(text=wording.binary(content_type, source.size))
