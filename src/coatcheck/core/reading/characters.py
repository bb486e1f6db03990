"""Slices by character: of the content, and of anything else that is one text.

The body of such an answer is exactly the characters between its first and its last line end, so that pages put
together give the original back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import wording
from coatcheck.core.reading.index import START
from coatcheck.core.reading.source import Answer
from coatcheck.core.reading.walk import Walk, orient

if TYPE_CHECKING:
    from coatcheck.core.reading.request import Request
    from coatcheck.core.reading.source import Reading, Source
    from coatcheck.core.reading.writer import Writer

__all__ = ("read_characters", "resolve_offset")


def read_characters(source: Source, request: Request, writer: Writer) -> Reading:
    """Show the content from an offset on."""
    total, start, place = source.characters, request.offset or 0, START
    if start or total is None:
        index = yield from orient(source)
        total = index.characters
        start = resolve_offset(start, total)
        place = index.nearest(character=start)
    walk = Walk(place, source.size)
    yield from walk.to_character(start)
    text = to_valid_unicode((yield from walk.gather(writer.overflows)))

    def compose(shown: str) -> str:
        stop = start + len(shown)
        finished = walk.ended and len(shown) == len(text)
        footer = wording.END_OF_CONTENT if finished else writer.more({"offset": stop})
        return f"{wording.characters_header(start, stop, total)}\n{shown}\n{footer}"

    shown = writer.page(text, compose)
    finished = walk.ended and len(shown) == len(text)
    return Answer(text=compose(shown), next_call=None if finished else {"offset": start + len(shown)})


def resolve_offset(offset: int, total: int, what: str = "content") -> int:
    """Return the character that ``offset`` names among ``total``; a negative one counts from the end.

    Raises:
        InvalidRequest: it is after the last character.

    """
    if offset < 0:
        return max(0, total + offset)
    if offset >= total > 0:
        raise InvalidRequest(wording.offset_beyond(offset, total, what))
    return offset
