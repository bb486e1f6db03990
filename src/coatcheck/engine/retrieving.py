"""Reading stored content back: for the model, within its budget; for the host, whole.

``Retrieving.retrieve`` is the path of a model's request: parse, find, read, record. It consists of generators of
effects, which ``execution`` drives, sync or async. Searching and cutting content belongs to ``reading``, which asks
for the bytes it needs; ``contents`` knows the places in a storage.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from coatcheck.core.arguments import LAST_LINE, LISTING, asks_for_list
from coatcheck.core.blocks import MediaBlock, TextBlock, is_text
from coatcheck.core.errors import (
    CoatcheckError,
    InvalidRequest,
    ReferenceExpired,
    ReferenceNotFound,
    StorageError,
)
from coatcheck.core.facts import Reference
from coatcheck.core.notice import (
    LIST_READ_INSTEAD,
    NOT_LISTED_BY_STORAGE,
    NOT_LISTED_WITHOUT_SCOPE,
    missing_reference,
    too_slow,
)
from coatcheck.core.reading import Answer, ByteRange, IndexNeeded, Request, parse_request, read
from coatcheck.core.reading.wording import NOTHING_STORED
from coatcheck.core.references import DEFAULT_SCOPE, canonical_reference
from coatcheck.core.retrieved import Content, Retrieved
from coatcheck.core.settings import MIN_BUDGET
from coatcheck.engine.contents import Contents, content_type_in
from coatcheck.engine.counting import blame_counter, without_counter
from coatcheck.engine.events import About
from coatcheck.engine.execution import PAUSE, PIECE_BYTES
from coatcheck.engine.listing import listing

if TYPE_CHECKING:
    from coatcheck.core.references import Scope
    from coatcheck.core.settings import Settings
    from coatcheck.engine.contents import Entry
    from coatcheck.engine.events import Recorder
    from coatcheck.engine.execution import Effects, StorageAccess

__all__ = ("READING_SECONDS", "Retrieving")

READING_SECONDS = 10.0
"""Seconds of computing after which a read-back is given up; waiting for the storage does not count. The limit is
checked between the parts of 2 MiB that ``reading`` asks for, so the last part may take as long again. Only a clock can
limit this: the time is linear, but nothing in a pattern shows the factor. RE2 takes 0.1 to 0.3 seconds for 100 MB, but
a thousand times as long if its automaton outgrows its memory, as with ``(a|b)*a(a|b){15}c`` on content of only "a" and
"b"."""


class Retrieving:
    """Reads stored content back."""

    def __init__(self, storage: StorageAccess, settings: Settings, recorder: Recorder) -> None:
        self._storage = storage
        self._contents = Contents(storage)
        self._settings = settings
        self._recorder = recorder
        self._counter = settings.counter
        by_bytes = without_counter(settings)
        self._by_bytes = None if by_bytes is None else Retrieving(storage, by_bytes, recorder)
        """Does the same without the host's token counter, if there is one."""

    def retrieve(
        self,
        reference: str | Reference | None,
        scope: Scope,
        *,
        native_media: bool,
        retrieval_tool: str,
        about: About | None = None,
        **selectors: object,
    ) -> Effects[Retrieved]:
        """Answer a model's request within the budget, and record how that ended; see ``reading.parse_request``.

        ``about`` is given if this read replaces one whose counter failed.
        """
        if isinstance(reference, Reference):
            reference = reference.id
        reference = LISTING if reference is None or asks_for_list(reference) else reference
        about = about or About(scope=scope, tool_name=None, references=(canonical_reference(reference),))
        try:
            try:
                request = parse_request(**selectors)
                if reference == LISTING:
                    answered = yield from self._list(scope, request=request, retrieval_tool=retrieval_tool)
                else:
                    answered = yield from self._retrieve(
                        reference, scope, request=request, native_media=native_media, retrieval_tool=retrieval_tool
                    )
            except InvalidRequest as error:
                if (text := self._cut_if_over_budget(str(error))) is None:
                    raise
                raise InvalidRequest(text) from error
            if (text := self._cut_if_over_budget(answered.text)) is not None:
                answered = replace(answered, text=text, blocks=(TextBlock(text),))
            tokens = self._counter.count(answered.text) if self._recorder.listening else None
        except CoatcheckError as error:
            self._not_retrieved(error, about)
            raise
        except Exception as error:
            if self._by_bytes is not None:
                blame_counter(error, about, settings=self._settings, recorder=self._recorder, what="an answer")
                again = self._by_bytes.retrieve(
                    reference, scope, native_media=native_media, retrieval_tool=retrieval_tool, about=about, **selectors
                )
                return (yield from again)
            # A bug: the caller logs or shows it; this counts and reports it.
            self._recorder.record_read("failed", about, reason="an internal error", error_type=type(error).__name__)
            raise
        self._recorder.record_read("retrieved", about, tokens=tokens)
        return answered

    def _cut_if_over_budget(self, text: str) -> str | None:
        """Return the head of ``text`` if it exceeds the budget, as it may quote something long; None if it fits."""
        budget = self._settings.retrieval_limit
        return self._counter.head(text, budget) if self._counter.exceeds(text, budget) else None

    def _not_retrieved(self, error: CoatcheckError, about: About) -> None:
        match error:
            case ReferenceExpired():
                self._recorder.record_read("expired", about, reason="the content is gone")
            case ReferenceNotFound():
                # Not the error's message: that one is for the model, and quotes what it wrote.
                self._recorder.record_read("missed", about, reason="the scope never had such a reference")
            case StorageError():
                self._recorder.record_failure(error, about, logged=str(error))
            case _:
                pass  # the request itself was wrong, and the answer says so

    def _retrieve(
        self, reference: str, scope: Scope, *, request: Request, native_media: bool, retrieval_tool: str
    ) -> Effects[Retrieved]:
        found = yield from self._contents.find(reference, scope)
        if request.pattern is not None or request.query is not None:
            yield PAUSE  # a slow query or pattern may take a second even on the smallest content
        if native_media and request.selects_nothing and not is_text(found.stored.content_type):
            whole = yield from self._contents.load(reference, scope)
            medium = MediaBlock(whole.content, whole.content_type)
            return Retrieved(text=f"[{whole.content_type}, {whole.size:,} bytes]", blocks=(medium,))
        reading = self._read(
            found,
            scope,
            request=request,
            retrieval_tool=retrieval_tool,
            budget=self._settings.retrieval_limit,
            native_media=native_media,
        )
        return (yield from reading)

    def _list(self, scope: Scope, *, request: Request, retrieval_tool: str) -> Effects[Retrieved]:
        """Answer a call that has no reference with a list of what the scope holds, which is read like any content.

        Raises:
            InvalidRequest: the scope is the shared default, or the storage cannot list; the message says so.
            StorageError: the storage failed.

        """
        if scope == DEFAULT_SCOPE:
            raise InvalidRequest(missing_reference(NOT_LISTED_WITHOUT_SCOPE))
        if not self._storage.lists:
            raise InvalidRequest(missing_reference(NOT_LISTED_BY_STORAGE))
        found = yield from listing(self._storage, scope)
        if found is None:
            return Retrieved(text=NOTHING_STORED, blocks=(TextBlock(NOTHING_STORED),))
        heading, content = found
        lines = (1, LAST_LINE) if request.selects_nothing else request.line_range
        request = replace(request, line_range=lines, context_lines=0)  # lines around a match are about other contents
        # The heading tells a model that asked by mistake what this is. If the budget is too small, it is left out.
        budget = self._settings.retrieval_limit - self._counter.count(f"{heading}\n")
        if budget < MIN_BUDGET:
            heading, budget = "", self._settings.retrieval_limit
        try:
            answer = yield from self._read(
                content, scope, request=request, retrieval_tool=retrieval_tool, budget=budget
            )
        except InvalidRequest as error:
            raise InvalidRequest(missing_reference(f"{LIST_READ_INSTEAD}{error}")) from error
        text = f"{heading}\n{answer.text}".lstrip()
        return replace(answer, text=text, blocks=(TextBlock(text),))

    def _read(
        self,
        found: Entry,
        scope: Scope,
        *,
        request: Request,
        retrieval_tool: str,
        budget: int,
        native_media: bool = False,
    ) -> Effects[Retrieved]:
        """Drive ``reading``: fetch the parts of the content that it asks for, and return its answer.

        Raises:
            InvalidRequest: the request does not fit the content, or takes too long on it.

        """
        reading = read(
            found.source,
            request,
            counter=self._counter,
            budget=budget,
            tool_name=retrieval_tool,
            max_query_bytes=self._settings.max_query_bytes,
            native_media=native_media,
        )
        try:
            wanted, seconds, fetched = next(reading), 0.0, 0
            while seconds <= READING_SECONDS:
                match wanted:
                    case ByteRange():
                        if fetched >= PIECE_BYTES:
                            yield PAUSE
                            fetched = 0
                        fetched += wanted.length
                        data: bytes | None = yield from self._contents.part(found, wanted, scope=scope)
                    case IndexNeeded():
                        data = yield from self._contents.index(found)
                started = time.perf_counter()
                wanted = reading.send(data)
                seconds += time.perf_counter() - started
        except StopIteration as stop:
            answer = cast("Answer", stop.value)
            return Retrieved(
                text=answer.text, blocks=(TextBlock(answer.text),), next_call=answer.next_call, matches=answer.matches
            )
        raise InvalidRequest(too_slow(READING_SECONDS))

    def load(self, reference: str | Reference, scope: Scope) -> Effects[Content]:
        """Return a stored content, whole and verified, for the host."""
        if isinstance(reference, Reference):
            reference = reference.id
        stored = yield from self._contents.load(reference, scope)
        items = yield from self._contents.items(stored, reference, scope)
        return Content(
            data=stored.content, content_type=content_type_in(stored.content_type, stored.metadata), items=items
        )

    def expand(self, text: str, scope: Scope) -> Effects[str]:
        """Replace every reference of ``scope`` in ``text`` with the text that it refers to."""
        expanded: list[str] = []
        end = 0
        for match in self._contents.references_in(text, scope):
            replacement = yield from self._text_of(match.group(), scope)
            if replacement is not None:
                expanded += [text[end : match.start()], replacement]
                end = match.end()
        return "".join([*expanded, text[end:]])

    def _text_of(self, reference: str, scope: Scope) -> Effects[str | None]:
        try:
            content = yield from self.load(reference, scope)
        except ReferenceNotFound:
            return None
        return content.text if is_text(content.content_type) else None
