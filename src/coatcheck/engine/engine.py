"""The engine: the order of effects, written once as generators that ``execution`` drives, sync or async.

Save first, then hand out the placeholder. What is decided, worded or cut belongs to the pure modules; where calls run
belongs to ``execution``; what is where in a storage belongs to ``contents``. Here they meet the host's
policies, and a failure of either leaves the agent with the raw result.
"""

from __future__ import annotations

import inspect
import os
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from coatcheck.core.blocks import JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.core.errors import (
    CoatcheckError,
    InvalidRequest,
    ReferenceExpired,
    ReferenceNotFound,
    StorageError,
)
from coatcheck.core.items import Part as ResultPart
from coatcheck.core.items import parts_of
from coatcheck.core.notice import index_entry, is_placeholder, too_slow
from coatcheck.core.outcomes import Content, Kept, Offloaded, Outcome, Retrieved, Truncated
from coatcheck.core.placeholder import MOST_LISTED, Item, Placeholder, build_placeholder, cut_to
from coatcheck.core.plan import Decision, Keep, Leave, Measure, decide, fit_step
from coatcheck.core.policy import Rule, Verdict
from coatcheck.core.preview import Previewed, preview
from coatcheck.core.reading import Answer as ReadAnswer
from coatcheck.core.reading import (
    Encoded,
    IndexNeeded,
    Part,
    Request,
    encode_bytes,
    index_text,
    is_text,
    parse_request,
    read,
)
from coatcheck.core.references import canonical_reference
from coatcheck.engine.call import milliseconds_since
from coatcheck.engine.cleanup import SweepLimits, delete_scope, delete_scopes, sweep
from coatcheck.engine.contents import Contents, Found, content_type_of
from coatcheck.engine.events import Event, EventKind, Recorder, log_failure, logger
from coatcheck.engine.execution import PAUSE, PIECE_BYTES, Effect, Steps, in_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck.core.facts import Estimate, Reference
    from coatcheck.core.references import Scope
    from coatcheck.core.settings import Configuration
    from coatcheck.engine.access import StorageAccess
    from coatcheck.engine.call import Call

__all__ = ("Engine", "cause_for_model")

READING_SECONDS = 10.0
"""Of work after which a read-back is given up, without waiting for the storage. It is looked at between the parts of
2 MiB that ``reading`` asks for, so the last of them may take as long again. A clock, since the time is linear but
nothing in a pattern tells the factor: RE2 takes 0.1 to 0.3 seconds for 100 MB, and a thousand times as long where its
automaton outgrows its memory, as with ``(a|b)*a(a|b){15}c`` on a text of a and b."""

PLACEHOLDER_ROOM = 1_500
"""Tokens that notice, references and marks of a placeholder can take beside its preview. What opens like a placeholder
but is longer was written by a tool, and leaves."""


class _Departing:
    """A text that leaves: its bytes first, and what takes time once it is described, best while they are hashed."""

    content: Previewed | None = None
    """The text as previews see it."""

    prepared: tuple[int, str] | None = None
    """What the placeholder may take over."""

    def __init__(
        self, text: str, previewed: Callable[..., Previewed], prepare: Callable[[Previewed], tuple[int, str] | None]
    ) -> None:
        self._text, self._previewed, self._prepare = text, previewed, prepare
        self._starts: Sequence[int] = ()

    def encode(self) -> Steps[bytes]:
        """Return the bytes that are stored."""
        self._data, self._starts = yield from in_pieces(encode_bytes(self._text))
        return self._data

    def describe(self) -> Steps[Encoded | None]:
        """Return where the lines of the encoded text lie, and prepare the rest.

        What fails is left out, so that the content is saved.
        """
        encoded = None
        try:
            encoded = yield from in_pieces(index_text(self._text, self._data, self._starts))
            self.content = self._previewed(lines=encoded.lines)
            self.prepared = self._prepare(self.content)
        except Exception as error:  # noqa: BLE001 - such as a MemoryError, or one of a host's counter
            log_failure(logger, "a text is stored without its line index or its preview", error=error)
            self.content = self.content or self._previewed()
        return encoded


class Engine:
    """All operations as generators of effects."""

    def __init__(self, storage: StorageAccess, configuration: Configuration, recorder: Recorder) -> None:
        self._storage = storage
        self._contents = Contents(storage)
        self._configuration = configuration
        self._recorder = recorder
        self._counter = configuration.counter

    # A tool result on its way into the conversation.

    def offload(self, call: Call) -> Steps[Outcome]:
        """Decide what becomes of a result; store it first if it leaves."""
        if call.certain is not None:
            return self._keep(call, call.certain)
        measure, decision = yield from self._decide(call)
        if isinstance(decision, Leave) and call.confirm is not None:
            ask = partial(call.confirm, measure.estimate(exact_up_to=decision.exact_up_to).tokens)
            answer = yield from self._asked(call, ask, what="confirm", instead="the result leaves")
            decision = decision if answer or isinstance(answer, CoatcheckError) else Keep(reason="policy")
        return (yield from self._carry_out(call, measure, decision))

    def offload_step(self, calls: Sequence[Call]) -> Steps[tuple[Outcome, ...]]:
        """Decide about all results of one step together, then carry it out for each."""
        decided: list[tuple[Call, Measure, Decision]] = []
        for call in calls:
            measure, decision = yield from self._decide(call)
            decided.append((call, measure, decision))
        decisions = [decision for _, _, decision in decided]
        if self._configuration.step_tokens is not None:
            sized = [(measure, decision) for _, measure, decision in decided]
            decisions = fit_step(sized, self._configuration.step_tokens, limits=self._configuration.limits)
        outcomes: list[Outcome] = []
        for (call, measure, _), decision in zip(decided, decisions, strict=True):
            outcomes.append((yield from self._carry_out(call, measure, decision)))
        return tuple(outcomes)

    def _keep(self, call: Call, decision: Keep) -> Kept:
        """Record that a result stays."""
        self._recorder.count(results=1)
        if self._recorder.listening:
            self._emit(call, "kept", reason=decision.reason)
        return Kept(blocks=call.result.blocks, reason=decision.reason)

    def _decide(self, call: Call) -> Steps[tuple[Measure, Decision]]:
        measured = yield from self._measured(call)
        measure = Measure(call.result.blocks, self._counter, measured_tokens=measured)
        rule = yield from self._rule(call)
        decision = decide(measure, rule, limits=self._configuration.limits, is_error=call.result.is_error)
        is_retrieval = call.retrieval_tool is not None and call.result.tool_name == call.retrieval_tool
        if is_retrieval or self._is_own_placeholder(call, measure):
            decision = Keep(reason="exempt")
        return measure, decision

    def _rule(self, call: Call) -> Steps[Rule]:
        """Return the rule that governs a call, asking a callable policy; one that fails gives no verdict."""
        if isinstance(call.policy, Rule):
            return call.policy
        ask = partial(call.policy, call.result)
        answer = yield from self._asked(call, ask, what="the policy", instead="the default threshold decides")
        if isinstance(answer, CoatcheckError):
            return self._configuration.policies.default
        return self._configuration.policies.rule_for(cast("Verdict", answer))

    def _measured(self, call: Call) -> Steps[int | None]:
        """Return the framework's own count, asking a callable one; None where there is none or it fails."""
        if not callable(call.measured_tokens):
            return call.measured_tokens
        answer = yield from self._asked(
            call, call.measured_tokens, what="measured_tokens", instead="the token counter decides"
        )
        return answer if isinstance(answer, int) and not isinstance(answer, bool) else None

    def _asked(self, call: Call, ask: Callable[[], object], *, what: str, instead: str) -> Steps[object]:
        """Return what a callable of the host answers, sync or async, or its error, after telling the host."""
        answer = yield Effect(
            call=ask,
            local=False,
            is_async=inspect.iscoroutinefunction(ask),
            what=f"{what} of {call.result.tool_name!r}",
            failure=CoatcheckError,
        )
        if isinstance(answer, CoatcheckError):
            self._failed(call, answer, f"{answer}; {instead}")
        return answer

    def _is_own_placeholder(self, call: Call, measure: Measure) -> bool:
        """Return whether a result is a placeholder of this scope that came back, not merely content that opens so."""
        first = measure.texts[0] if measure.texts else None
        if first is None or not is_placeholder(first):
            return False
        if measure.local_exceeds(self._configuration.limits.preview_tokens + PLACEHOLDER_ROOM):
            return False
        found = self._contents.references_in(first, call.scope)
        return any(self._contents.belongs(match.group(), call.scope) for match in found)

    def _carry_out(self, call: Call, measure: Measure, decision: Decision) -> Steps[Outcome]:
        match decision:
            case Keep():
                return self._keep(call, decision)
            case Leave():
                return (yield from self._leave(call, measure, decision))

    def _leave(self, call: Call, measure: Measure, decision: Leave) -> Steps[Outcome]:
        """Store every block, then hand out the placeholder. If anything fails, the result stays."""
        parts = parts_of(call.result.blocks, measure.texts)
        alone = sum(1 for part in parts if part.text) == 1

        def prepare(content: Previewed) -> tuple[int, str] | None:
            """Estimate and preview while the content is hashed. Several texts share the budget once all are known."""
            measure.estimate(exact_up_to=decision.exact_up_to)
            if not alone:
                return None
            content = replace(content, exceeds=measure.text_exceeds)
            return decision.preview_tokens, preview(content, self._counter, budget=decision.preview_tokens)

        items: list[Item] = []
        for part in parts:
            saved = yield from self._save_part(call, part, prepare=prepare)
            if isinstance(saved, CoatcheckError):
                items += [Item(block=later.block) for later in parts[len(items) :]]
                return self._not_stored(call, measure, decision, parts=parts, items=items, error=saved)
            items.append(saved)
        references = tuple(item.reference for item in items if item.reference is not None)
        build = partial(
            build_placeholder,
            items,
            decision,
            counter=self._counter,
            tokens=measure.estimate(exact_up_to=decision.exact_up_to),
            retrieval_tool=call.retrieval_tool,
        )
        index: Reference | None = None
        placeholder = build(index=None) if len(references) <= MOST_LISTED else None
        if placeholder is None:
            saved_index = yield from self._save_index(call, references)
            if isinstance(saved_index, CoatcheckError):
                return self._not_stored(call, measure, decision, parts=parts, items=items, error=saved_index)
            index = saved_index
            references = (*references, index)
            placeholder = build(index=index)
        if (yield from self._contents.missing(references, call.scope)):
            error = StorageError("the storage is too small for all of this result")
            return self._not_stored(call, measure, decision, parts=parts, items=items, error=error)
        if placeholder is None or (decision.limit is not None and not measure.local_exceeds(placeholder.tokens)):
            return self._keep(call, Keep(reason="would not shrink"))
        tokens = measure.estimate(exact_up_to=decision.exact_up_to)
        return self._offloaded(call, tokens, placeholder, references=references, index=index)

    def _offloaded(
        self,
        call: Call,
        tokens: Estimate,
        placeholder: Placeholder,
        *,
        references: tuple[Reference, ...],
        index: Reference | None,
    ) -> Offloaded:
        size = sum(reference.size for reference in references)
        saved = max(0, tokens.tokens - placeholder.tokens)
        self._recorder.count(results=1, offloaded=1, bytes_stored=size, tokens_saved=saved)
        self._emit(
            call,
            "offloaded",
            references=tuple(reference.id for reference in references),
            size=size,
            tokens=tokens.tokens,
            tokens_saved=saved,
        )
        return Offloaded(blocks=placeholder.blocks, references=references, tokens=tokens, index=index)

    def _not_stored(
        self,
        call: Call,
        measure: Measure,
        decision: Leave,
        *,
        parts: Sequence[ResultPart],
        items: Sequence[Item],
        error: CoatcheckError,
    ) -> Outcome:
        """Keep a result that could not be stored; cut it only above ``max_inline_tokens``."""
        self._failed(call, error, str(error), logged=f"failed to offload: {error}")
        limit = self._configuration.limits.max_inline_tokens
        if not measure.exceeds(limit):
            return self._keep(call, Keep(reason="storage failed"))
        described = [
            item
            if part.text is None or item.content is not None
            else replace(item, content=self._previewed(call, part.text))
            for item, part in zip(items, parts, strict=True)
        ]
        tokens = measure.estimate(exact_up_to=decision.exact_up_to)
        blocks = cut_to(
            described,
            limit,
            counter=self._counter,
            tool_name=call.result.tool_name,
            tokens=tokens,
            reason=cause_for_model(error),
        )
        self._recorder.count(results=1, truncated=1)
        self._emit(call, "truncated", tokens=tokens.tokens, reason=str(error), error_type=_class_of(error))
        return Truncated(blocks=blocks, error=error)

    def _save_part(
        self, call: Call, part: ResultPart, *, prepare: Callable[[Previewed], tuple[int, str] | None]
    ) -> Steps[Item | CoatcheckError]:
        """Store one part, if it is one that is stored, and return what the placeholder needs to know of it."""
        block, text = part.block, part.text
        save = partial(self._contents.save, scope=call.scope, tool_name=call.result.tool_name)
        item = Item(block=block)
        match block:
            case TextBlock() | JsonBlock():
                if not text:
                    return item
                content_type = "text/plain" if isinstance(block, TextBlock) else "application/json"
                previewed = partial(self._previewed, call, text, content_type=content_type)
                leaving = _Departing(text, previewed, prepare)
                data = yield from leaving.encode()
                saved = yield from save(data, content_type, describe=leaving.describe, starts=part.starts)
                item = replace(item, content=leaving.content, prepared=leaving.prepared)
            case MediaBlock():
                if not block.data:
                    return item
                saved = yield from save(block.data, block.media_type, describe=None, file_name=block.name)
                readable = _readable(block)
                if readable is not None:
                    item = replace(item, content=self._previewed(call, readable, content_type=block.media_type))
            case OpaqueBlock():
                return item
        if isinstance(saved, CoatcheckError):
            return saved
        path = saved.path if self._configuration.show_path else None
        return replace(item, reference=saved.reference, path=path)

    def _previewed(
        self, call: Call, text: str, *, content_type: str = "text/plain", lines: int | None = None
    ) -> Previewed:
        """Return a text as previews see it; a kind that fails is logged once, at however many budgets it does."""
        logged: set[str] = set()

        def log(kind: str, error: Exception) -> None:
            if kind not in logged:
                logged.add(kind)
                tried = f"{kind} failed on a result of {call.result.tool_name!r}, which is shown more simply"
                log_failure(logger, tried, error=error)

        if lines is None:
            lines = text.count("\n") + (not text.endswith("\n"))
        return Previewed(text=text, content_type=content_type, lines=lines, on_failure=log)

    def _save_index(self, call: Call, references: Sequence[Reference]) -> Steps[Reference | CoatcheckError]:
        """Store the list of all references of a result that has too many to be shown one by one."""
        listing = "".join(f"{index_entry(position, reference)}\n" for position, reference in enumerate(references, 1))
        leaving = _Departing(listing, partial(self._previewed, call, listing), lambda _: None)
        data = yield from leaving.encode()
        saved = yield from self._contents.save(
            data, "text/plain", scope=call.scope, tool_name=call.result.tool_name, describe=leaving.describe
        )
        return saved if isinstance(saved, CoatcheckError) else saved.reference

    # Reading back.

    def retrieve(
        self, reference: str, scope: Scope, *, native_media: bool, retrieval_tool: str, **selectors: object
    ) -> Steps[Retrieved]:
        """Answer what a model asks for, within the budget, and record how that ended; see ``reading.parse_request``."""
        request = parse_request(**selectors)
        budget = self._configuration.retrieval_tokens
        started = time.perf_counter()
        try:
            answered = yield from self._retrieve(
                reference, scope, request=request, native_media=native_media, retrieval_tool=retrieval_tool
            )
        except CoatcheckError as error:
            self._not_retrieved(error, reference, scope, milliseconds=milliseconds_since(started))
            if isinstance(error, InvalidRequest) and self._counter.exceeds(str(error), budget):
                raise InvalidRequest(self._counter.head(str(error), budget)) from error
            raise
        if self._counter.exceeds(answered.text, budget):
            # A header that quotes something foreign and long: the promise is kept at the cost of the end.
            text = self._counter.head(answered.text, budget)
            answered = replace(answered, text=text, blocks=(TextBlock(text),))
        self._recorder.count(retrieved=1)
        if self._recorder.listening:
            tokens = self._counter.count(answered.text)
            took = milliseconds_since(started)
            self._recorder.emit(
                Event(
                    kind="retrieved",
                    scope=scope,
                    references=(canonical_reference(reference),),
                    tokens=tokens,
                    milliseconds=took,
                )
            )
        return answered

    def _not_retrieved(self, error: CoatcheckError, reference: str, scope: Scope, *, milliseconds: float) -> None:
        asked = (canonical_reference(str(reference)),)
        event = partial(Event, scope=scope, references=asked, milliseconds=milliseconds)
        match error:
            case ReferenceExpired():
                self._recorder.count(expired=1)
                self._recorder.emit(event(kind="expired", reason="the content is gone"))
            case ReferenceNotFound():
                self._recorder.count(missed=1)
                # The message is for the model, and quotes what it wrote.
                self._recorder.emit(event(kind="missed", reason="the scope never had such a reference"))
            case StorageError():
                self._recorder.failure(event(kind="failed", reason=str(error), error_type=_class_of(error)), error)
            case _:
                pass  # the request itself was wrong, and the answer says so

    def _retrieve(
        self, reference: str, scope: Scope, *, request: Request, native_media: bool, retrieval_tool: str
    ) -> Steps[Retrieved]:
        found = yield from self._contents.find(reference, scope)
        if request.pattern is not None or request.query is not None:
            yield PAUSE  # a query of a second, or a pattern that is as slow, may meet the smallest content
        if native_media and request.selects_nothing and not is_text(found.stored.content_type):
            whole = yield from self._contents.load(reference, scope)
            medium = MediaBlock(whole.content, whole.content_type)
            return Retrieved(text=f"[{whole.content_type}, {whole.size:,} bytes]", blocks=(medium,))
        answer = yield from self._read(found, scope, request=request, retrieval_tool=retrieval_tool)
        return Retrieved(
            text=answer.text, blocks=(TextBlock(answer.text),), next_call=answer.next_call, matches=answer.matches
        )

    def _read(self, found: Found, scope: Scope, *, request: Request, retrieval_tool: str) -> Steps[ReadAnswer]:
        """Drive ``reading``: fetch the parts of the content that it asks for.

        Raises:
            InvalidRequest: the request does not fit the content, or takes too long on it.

        """
        reading = read(
            found.source,
            request,
            counter=self._counter,
            budget=self._configuration.retrieval_tokens,
            tool_name=retrieval_tool,
            max_query_bytes=self._configuration.max_query_bytes,
        )
        try:
            wanted, seconds, fetched = next(reading), 0.0, 0
            while seconds <= READING_SECONDS:
                match wanted:
                    case Part():
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
            return cast("ReadAnswer", stop.value)
        raise InvalidRequest(too_slow(READING_SECONDS))

    def load(self, reference: str, scope: Scope) -> Steps[Content]:
        """Return a stored content, whole and verified, for the host."""
        stored = yield from self._contents.load(reference, scope)
        items = yield from self._contents.items(stored, reference, scope)
        return Content(data=stored.content, content_type=content_type_of(stored), items=items)

    def expand(self, text: str, scope: Scope) -> Steps[str]:
        """Replace every reference of ``scope`` in ``text`` by the text that it stands for."""
        expanded: list[str] = []
        end = 0
        for match in self._contents.references_in(text, scope):
            replacement = yield from self._text_of(match.group(), scope)
            if replacement is not None:
                expanded += [text[end : match.start()], replacement]
                end = match.end()
        return "".join([*expanded, text[end:]])

    def _text_of(self, reference: str, scope: Scope) -> Steps[str | None]:
        try:
            content = yield from self.load(reference, scope)
        except ReferenceNotFound:
            return None
        return content.text if is_text(content.content_type) else None

    # Clean-up.

    def delete_scope(self, scope: Scope) -> Steps[int]:
        """Delete whatever a scope holds; see ``cleanup.delete_scope``."""
        return (yield from delete_scope(self._storage, scope, now=time.time()))

    def delete_scopes(self, under: tuple[str, ...]) -> Steps[int]:
        """Delete whatever the scopes hold that begin with these parts; see ``cleanup.delete_scopes``."""
        return (yield from delete_scopes(self._storage, under, now=time.time()))

    def sweep(self, **limits: float | None) -> Steps[int]:
        """Delete what is past a limit now; see ``cleanup.SweepLimits``."""
        return (yield from sweep(self._storage, SweepLimits(**limits), now=time.time()))

    # Telling the host.

    def _emit(self, call: Call, kind: EventKind, **details: Any) -> None:  # noqa: ANN401 - the fields of Event
        event = Event(
            kind=kind, scope=call.scope, tool_name=call.result.tool_name, milliseconds=call.milliseconds, **details
        )
        self._recorder.emit(event)

    def _failed(self, call: Call, error: CoatcheckError, reason: str, *, logged: str | None = None) -> None:
        event = Event(
            kind="failed",
            scope=call.scope,
            tool_name=call.result.tool_name,
            milliseconds=call.milliseconds,
            reason=reason,
            error_type=_class_of(error),
        )
        self._recorder.failure(event, error, logged=logged)


def _readable(block: MediaBlock) -> str | None:
    """Return the text of a document such as ``text/csv``; None for any other medium."""
    if not is_text(block.media_type):
        return None
    try:
        return block.data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _class_of(error: CoatcheckError) -> str:
    """Return the class of what went wrong: of the backend's or the policy's own error, where there is one."""
    return type(error.__cause__ or error).__name__


def cause_for_model(error: CoatcheckError) -> str:
    """Name a failure for the model, without paths, addresses or other tenants' data."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno is not None:
        return os.strerror(cause.errno)
    return "the request was refused" if isinstance(error, InvalidRequest) else "the storage failed"
