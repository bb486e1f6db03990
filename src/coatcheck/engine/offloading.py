"""The road of one tool result out of the conversation: measure, decide, encode, hash, preview, save, placeholder.

``Offloading.offload`` is where it begins, and the methods below it are in the order in which they run. Two rules hold
on it. The placeholder is handed out only after everything it refers to is saved. And whatever fails, the agent goes
on: a failed policy gives no verdict, a failed preview shows less, a failed storage keeps the raw result.

Generators of effects, which ``execution`` drives, sync or async; ARCHITECTURE.md shows how. What is decided, worded
or cut belongs to ``core``; what lies where in a storage belongs to ``contents``.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from coatcheck.core.blocks import MediaBlock
from coatcheck.core.errors import CoatcheckError, StorageError
from coatcheck.core.items import parts_of
from coatcheck.core.notice import index_entry, is_placeholder
from coatcheck.core.outcomes import Kept, Offloaded, Outcome, Truncated
from coatcheck.core.placeholder import MOST_LISTED, Item, ReadyPreview, build_placeholder, cut_to
from coatcheck.core.plan import Decision, Keep, Measure, Offload, decide, fit_step
from coatcheck.core.policy import Rule
from coatcheck.core.preview import LARGE_CHARACTERS, Previewed, preview, search_for_trouble
from coatcheck.core.reading import Encoded, encode_bytes, index_text, is_text
from coatcheck.engine.events import Event, EventKind, Recorder, cause_for_model, class_of, log_failure, logger
from coatcheck.engine.execution import Effect, Effects, in_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.core.facts import Estimate, Reference
    from coatcheck.core.items import Part
    from coatcheck.core.policy import Verdict
    from coatcheck.core.settings import Settings
    from coatcheck.engine.contents import Contents
    from coatcheck.engine.request import OffloadRequest

__all__ = ("PLACEHOLDER_ROOM", "Offloading")

PLACEHOLDER_ROOM = 1_500
"""Tokens that the notice, references and marks of a placeholder can take in addition to its preview. A longer result
that begins like a placeholder was written by a tool, and is offloaded like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Departure:
    """A result that is being offloaded."""

    request: OffloadRequest
    measure: Measure
    decision: Offload
    parts: Sequence[Part]

    @property
    def tokens(self) -> Estimate:
        """What the result would have cost; counted at the first call."""
        return self.measure.estimate(exact_up_to=self.decision.exact_up_to)


class Offloading:
    """Takes tool results out of the conversation."""

    def __init__(self, contents: Contents, settings: Settings, recorder: Recorder) -> None:
        self._contents = contents
        self._settings = settings
        self._recorder = recorder
        self._counter = settings.counter

    def offload(self, request: OffloadRequest) -> Effects[Outcome]:
        """Decide about one result and carry the decision out."""
        if request.certain is not None:
            return self._keep(request, request.certain)
        measure, decision = yield from self._decide(request)
        if isinstance(decision, Offload) and request.confirm is not None:
            ask = partial(request.confirm, measure.estimate(exact_up_to=decision.exact_up_to).tokens)
            answer = yield from self._ask_host(request, ask, what="confirm", instead="the result is offloaded")
            decision = decision if answer or isinstance(answer, CoatcheckError) else Keep(reason="policy")
        return (yield from self._carry_out(request, measure, decision))

    def offload_step(self, requests: Sequence[OffloadRequest]) -> Effects[tuple[Outcome, ...]]:
        """Decide about all results of one agent step together, then carry out each decision."""
        decided: list[tuple[Measure, Decision]] = []
        for request in requests:
            decided.append((yield from self._decide(request)))  # noqa: PERF401 - a comprehension cannot yield
        decisions = [decision for _, decision in decided]
        if self._settings.max_step_tokens is not None:
            decisions = fit_step(decided, self._settings.max_step_tokens, settings=self._settings)
        outcomes: list[Outcome] = []
        for request, (measure, _), decision in zip(requests, decided, decisions, strict=True):
            outcomes.append((yield from self._carry_out(request, measure, decision)))
        return tuple(outcomes)

    def _decide(self, request: OffloadRequest) -> Effects[tuple[Measure, Decision]]:
        """Measure a result and decide about it; ask the host's callables, if it gave any."""
        tokens, rule = request.measured_tokens, request.policy
        if callable(tokens):
            answer = yield from self._ask_host(
                request, tokens, what="measured_tokens", instead="the token counter decides"
            )
            tokens = answer if isinstance(answer, int) and not isinstance(answer, bool) else None
        measure = Measure(request.result.blocks, self._counter, measured_tokens=tokens)
        if not isinstance(rule, Rule):
            ask = partial(rule, request.result)
            answer = yield from self._ask_host(request, ask, what="the policy", instead="the default threshold decides")
            policies = self._settings.tool_policies
            rule = (
                policies.default if isinstance(answer, CoatcheckError) else policies.rule_for(cast("Verdict", answer))
            )
        if self._is_exempt(request, measure):
            return measure, Keep(reason="exempt")
        return measure, decide(measure, rule, settings=self._settings, is_error=request.result.is_error)

    def _is_exempt(self, request: OffloadRequest, measure: Measure) -> bool:
        """Return whether a result is a read-back, or a placeholder of this scope that came back.

        Content that merely begins like a placeholder is not one.
        """
        if request.retrieval_tool is not None and request.result.tool_name == request.retrieval_tool:
            return True
        first = measure.texts[0] if measure.texts else None
        if first is None or not is_placeholder(first):
            return False
        if measure.local_exceeds(self._settings.preview_limit + PLACEHOLDER_ROOM):
            return False
        found = self._contents.references_in(first, request.scope)
        return any(self._contents.belongs(match.group(), request.scope) for match in found)

    def _carry_out(self, request: OffloadRequest, measure: Measure, decision: Decision) -> Effects[Outcome]:
        """Keep the result, or save all parts of it and then hand out the placeholder."""
        if isinstance(decision, Keep):
            return self._keep(request, decision)
        parts = parts_of(request.result.blocks, measure.texts)
        departure = _Departure(request=request, measure=measure, decision=decision, parts=parts)
        items: list[Item] = []
        for part in parts:
            saved = yield from self._save_part(departure, part)
            if isinstance(saved, CoatcheckError):
                return self._give_up(departure, saved)
            items.append(saved)
        references = tuple(item.reference for item in items if item.reference is not None)
        build = partial(
            build_placeholder,
            items,
            decision,
            counter=self._counter,
            tokens=departure.tokens,
            retrieval_tool=request.retrieval_tool,
        )
        index: Reference | None = None
        placeholder = build(index=None) if len(references) <= MOST_LISTED else None
        if placeholder is None:
            listed = yield from self._save_list(request, references)
            if isinstance(listed, CoatcheckError):
                return self._give_up(departure, listed)
            index = listed
            references = (*references, index)
            placeholder = build(index=index)
        _log_failed_previews(request, items)
        if (yield from self._contents.missing(references, request.scope)):
            return self._give_up(departure, StorageError("the storage is too small for all of this result"))
        if placeholder is None or (decision.limit is not None and not measure.local_exceeds(placeholder.tokens)):
            return self._keep(request, Keep(reason="would not shrink"))
        outcome = Offloaded(blocks=placeholder.blocks, references=references, tokens=departure.tokens, index=index)
        self._record_offloaded(request, outcome, saved=max(0, outcome.tokens.tokens - placeholder.tokens))
        return outcome

    def _save_part(self, departure: _Departure, part: Part) -> Effects[Item | CoatcheckError]:
        """Save one part, if it is one that is stored; return what the placeholder needs to know about it."""
        block, request = part.block, departure.request
        content_type = part.content_type
        if isinstance(block, MediaBlock) and block.data:
            data = block.data
            digest = self._contents.start_hash(data, content_type)
            encoded, content, preview_made = None, _previewed(part), None
        elif part.text:
            data, chunks = yield from in_pieces(encode_bytes(part.text))
            digest = self._contents.start_hash(data, content_type, starts=part.starts)
            # Meanwhile; nothing fails here that would keep the content from being saved.
            encoded, content, preview_made = yield from self._describe(departure, part, data, chunks=chunks)
        else:
            return Item(block=block)
        saved = yield from self._contents.save(
            data,
            content_type,
            digest=digest.result(),
            scope=request.scope,
            tool_name=request.result.tool_name,
            encoded=encoded,
            starts=part.starts,
            file_name=block.name if isinstance(block, MediaBlock) else None,
        )
        if isinstance(saved, CoatcheckError):
            return saved
        path = saved.path if self._settings.show_path else None
        return Item(block=block, content=content, preview=preview_made, reference=saved.reference, path=path)

    def _describe(
        self, departure: _Departure, part: Part, data: bytes, *, chunks: Sequence[int]
    ) -> Effects[tuple[Encoded | None, Previewed | None, ReadyPreview | None]]:
        """Index the lines of a text, estimate its tokens and preview it; leave out what fails.

        Several texts share the budget of the previews, so theirs are made when all are saved.
        """
        encoded, content, ready = None, None, None
        try:
            encoded = yield from in_pieces(index_text(part.text or "", data, chunks))
            content = _previewed(part, lines=encoded.lines)
            _ = departure.tokens
            if content is not None and sum(1 for each in departure.parts if each.text) == 1:
                content = replace(content, exceeds=departure.measure.text_exceeds)
                if len(content.text) > LARGE_CHARACTERS:
                    content = yield from in_pieces(search_for_trouble(content))
                budget = departure.decision.preview_tokens
                ready = ReadyPreview(budget, preview(content, self._counter, budget=budget))
        except Exception as error:  # noqa: BLE001 - such as a MemoryError, or an error of a host's counter
            log_failure(logger, "a text is stored without its line index or its preview", error=error)
        return encoded, content or _previewed(part), ready

    def _save_list(
        self, request: OffloadRequest, references: Sequence[Reference]
    ) -> Effects[Reference | CoatcheckError]:
        """Save the list of all references of a result that has too many to be shown one by one."""
        listing = "".join(f"{index_entry(position, reference)}\n" for position, reference in enumerate(references, 1))
        data, chunks = yield from in_pieces(encode_bytes(listing))
        digest = self._contents.start_hash(data, "text/plain")
        encoded = yield from in_pieces(index_text(listing, data, chunks))
        saved = yield from self._contents.save(
            data,
            "text/plain",
            digest=digest.result(),
            scope=request.scope,
            tool_name=request.result.tool_name,
            encoded=encoded,
        )
        return saved if isinstance(saved, CoatcheckError) else saved.reference

    def _give_up(self, departure: _Departure, error: CoatcheckError) -> Outcome:
        """Keep a result that could not be stored; cut it only above ``max_inline_tokens``."""
        request, measure = departure.request, departure.measure
        event = self._event(request, "failed", reason=str(error), error_type=class_of(error))
        self._recorder.failure(event, error, logged=f"failed to offload: {error}")
        limit = self._settings.max_inline_tokens
        if not measure.exceeds(limit):
            return self._keep(request, Keep(reason="storage failed"))
        items = [Item(block=part.block, content=_previewed(part)) for part in departure.parts]
        tokens = departure.tokens
        blocks = cut_to(
            items,
            limit,
            counter=self._counter,
            tool_name=request.result.tool_name,
            tokens=tokens,
            reason=cause_for_model(error),
        )
        _log_failed_previews(request, items)
        self._recorder.count(results=1, truncated=1)
        self._recorder.emit(
            self._event(request, "truncated", tokens=tokens.tokens, reason=str(error), error_type=class_of(error))
        )
        return Truncated(blocks=blocks, error=error)

    def _keep(self, request: OffloadRequest, decision: Keep) -> Kept:
        """Record that a result stays."""
        self._recorder.count(results=1)
        if self._recorder.listening:
            self._recorder.emit(self._event(request, "kept", reason=decision.reason))
        return Kept(blocks=request.result.blocks, reason=decision.reason)

    def _record_offloaded(self, request: OffloadRequest, outcome: Offloaded, *, saved: int) -> None:
        """Record that a result was offloaded, and how many tokens that ``saved``."""
        size = sum(reference.size for reference in outcome.references)
        self._recorder.count(results=1, offloaded=1, bytes_stored=size, tokens_saved=saved)
        self._recorder.emit(
            self._event(
                request,
                "offloaded",
                references=tuple(reference.id for reference in outcome.references),
                size=size,
                tokens=outcome.tokens.tokens,
                tokens_saved=saved,
            )
        )

    def _ask_host(
        self, request: OffloadRequest, ask: Callable[[], object], *, what: str, instead: str
    ) -> Effects[object]:
        """Return what a callable of the host answers, sync or async; or its error, after telling the host."""
        answer = yield Effect(
            call=ask,
            local=False,
            is_async=inspect.iscoroutinefunction(ask),
            what=f"{what} of {request.result.tool_name!r}",
            failure=CoatcheckError,
        )
        if isinstance(answer, CoatcheckError):
            event = self._event(request, "failed", reason=f"{answer}; {instead}", error_type=class_of(answer))
            self._recorder.failure(event, answer)
        return answer

    def _event(self, request: OffloadRequest, kind: EventKind, **details: Any) -> Event:  # noqa: ANN401 - Event's fields
        took = (time.perf_counter() - request.started) * 1e3
        tool_name = request.result.tool_name
        return Event(kind=kind, scope=request.scope, tool_name=tool_name, milliseconds=took, **details)


def _previewed(part: Part, *, lines: int | None = None) -> Previewed | None:
    """Return a part as previews see it; None for media that are not text, and for unknown blocks."""
    text = part.text or _decoded(part.block)
    if not text:
        return None
    if lines is None:
        lines = text.count("\n") + (not text.endswith("\n"))
    return Previewed(text=text, content_type=part.content_type, lines=lines)


def _decoded(block: Block) -> str | None:
    """Return the text of a document such as ``text/csv``; None for any other block."""
    if not isinstance(block, MediaBlock) or not is_text(block.media_type):
        return None
    try:
        return block.data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _log_failed_previews(request: OffloadRequest, items: Sequence[Item]) -> None:
    """Log each kind of preview that failed, once, at however many budgets it was tried."""
    for item in items:
        for kind, error in item.content.failures.items() if item.content is not None else ():
            words = f"{kind} failed on a result of {request.result.tool_name!r}, which is shown more simply"
            log_failure(logger, words, error=error)
