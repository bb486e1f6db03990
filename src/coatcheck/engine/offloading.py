"""The path of one tool result out of the conversation: measure, decide, encode, hash, preview, save, placeholder.

It begins at ``Offloading.offload``; the methods below that are in the order in which they run. Two rules hold. A
placeholder is returned only after everything that it refers to is saved. And whatever fails, the agent goes on: if a
policy fails, the default decides; if a host's token counter fails, bytes are counted instead; if a preview fails, the
placeholder shows less; and if the storage fails, the raw result stays.

All of these are generators of effects, which ``execution`` drives, sync or async; ARCHITECTURE.md shows how. Decisions,
wording and cuts belong to ``core``, places in a storage to ``contents``.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from coatcheck.core import preview
from coatcheck.core.blocks import Kept, MediaBlock, Offloaded, Outcome, Truncated, is_text
from coatcheck.core.checks import is_count
from coatcheck.core.errors import CoatcheckError, StorageError
from coatcheck.core.items import MAX_APART, join_texts
from coatcheck.core.notice import MAX_LISTED, OPENINGS, list_row
from coatcheck.core.placeholder import ReadyPreview, Slot, build_placeholder, cut_to
from coatcheck.core.plan import Decision, Keep, Measure, Offload, decide, fit_step, rule_of
from coatcheck.core.policy import Rule
from coatcheck.core.preview import Previewed
from coatcheck.core.reading import encode_bytes, index_text
from coatcheck.engine.contents import HASHED_ON_THREAD_BYTES, Contents
from coatcheck.engine.counting import blame_counter, without_counter
from coatcheck.engine.execution import Effect, Effects
from coatcheck.engine.failures import cause_for_model, log_failure, logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.core.facts import Estimate, Reference
    from coatcheck.core.items import Part
    from coatcheck.core.policy import Verdict
    from coatcheck.core.references import Scope
    from coatcheck.core.settings import Settings
    from coatcheck.engine.events import About, Recorder
    from coatcheck.engine.execution import StorageAccess
    from coatcheck.engine.request import OffloadRequest

__all__ = ("PLACEHOLDER_ROOM", "Offloading")

PLACEHOLDER_ROOM = 1_500
"""Tokens that the notice, references and marks of a placeholder may take on top of its preview. A longer result that
begins like a placeholder was written by a tool, and is offloaded like any other."""


class Offloading:
    """Takes tool results out of the conversation."""

    def __init__(self, storage: StorageAccess, settings: Settings, recorder: Recorder) -> None:
        self._contents = Contents(storage)
        self._settings = settings
        self._recorder = recorder
        self._counter = settings.counter
        by_bytes = without_counter(settings)
        self._by_bytes = None if by_bytes is None else Offloading(storage, by_bytes, recorder)
        """Does the same without the host's token counter, if there is one."""

    def offload(self, request: OffloadRequest, decided: tuple[Measure, Decision] | None = None) -> Effects[Outcome]:
        """Decide about one result, unless ``offload_step`` has ``decided``, and carry out the decision."""
        try:
            measure, decision = decided or (yield from self._decide(request, request.confirm))
            return (yield from self._carry_out(request, measure, decision))
        except CoatcheckError:
            raise
        except Exception as error:
            if self._by_bytes is None:
                raise
            self._blame_counter(error, request.about)
            return (yield from self._by_bytes.offload(request))

    def _decide(
        self, request: OffloadRequest, confirm: Callable[[int], object] | None
    ) -> Effects[tuple[Measure, Decision]]:
        """Measure a result and decide about it; ask the host's callables, if it gave any."""
        if request.decided_on_arrival is not None:
            return Measure((), self._counter), request.decided_on_arrival
        result, tokens, rule = request.result, request.measured_tokens, request.policy
        if callable(tokens):
            answer = yield from self._ask_host(
                request, tokens, what="measured_tokens", instead="the token counter decides"
            )
            tokens = answer if is_count(answer) else None
        measure = Measure(result.blocks, self._counter, measured_tokens=tokens)
        if not isinstance(rule, Rule):
            ask, what = partial(rule, result), "the policy"
            answer = yield from self._ask_host(request, ask, what=what, instead="the default threshold decides")
            rule = rule_of(cast("Verdict", answer), self._settings)
            if not isinstance(answer, Rule | bool | CoatcheckError | None):
                self._record_nonsense(request, answer)
                request.answers[what] = None  # the host is told once, even if the counter fails and this runs again
        first = (measure.parts[0].text if measure.parts else None) or ""
        if result.tool_name == request.retrieval_tool or (
            first.startswith(OPENINGS) and self._is_of_scope(first, measure, scope=request.scope)
        ):
            return measure, Keep(reason="exempt")
        decision = decide(measure, rule, settings=self._settings, is_error=result.is_error)
        if isinstance(decision, Offload) and confirm is not None:
            last = partial(confirm, measure.estimate(exact_up_to=decision.exact_up_to).tokens)
            answer = yield from self._ask_host(request, last, what="confirm", instead="the result is offloaded")
            if not answer:
                return measure, Keep(reason="policy")
        return measure, decision

    def _is_of_scope(self, placeholder: str, measure: Measure, *, scope: Scope) -> bool:
        """Return whether a result is a placeholder of this scope, and not text that only begins like one."""
        if measure.exceeds(self._settings.preview_limit + PLACEHOLDER_ROOM, as_measured=False):
            return False
        found = self._contents.references_in(placeholder, scope)
        return any(self._contents.belongs(match.group(), scope) for match in found)

    def _carry_out(self, request: OffloadRequest, measure: Measure, decision: Decision) -> Effects[Outcome]:
        """Keep a result, or save all of it and then replace it by the placeholder."""
        if isinstance(decision, Keep):
            return self._keep(request, decision)
        parts = join_texts(measure.parts) if len(measure.texts) > MAX_APART else measure.parts
        tokens = measure.estimate(exact_up_to=decision.exact_up_to)
        give_up = partial(self._give_up, request, measure=measure, parts=parts, tokens=tokens)
        is_only_text = sum(1 for part in parts if part.text) == 1
        slots: list[Slot] = []
        for part in parts:
            saved = yield from self._save(part, request, decision=decision, measure=measure, is_only_text=is_only_text)
            if isinstance(saved, CoatcheckError):
                return give_up(saved)
            slots.append(saved)
        references = tuple(slot.reference for slot in slots if slot.reference is not None)
        build = partial(
            build_placeholder,
            slots,
            decision,
            counter=measure.counter,
            tokens=tokens,
            retrieval_tool=request.retrieval_tool,
            max_query_bytes=self._settings.max_query_bytes,
        )
        full_list: Reference | None = None
        placeholder = build(full_list=None) if len(references) <= MAX_LISTED else None
        if placeholder is None:  # too many references to name each, or too long ones
            listed = yield from self._save_list(request, references)
            if isinstance(listed, CoatcheckError):
                return give_up(listed)
            full_list, references = listed, (*references, listed)
            placeholder = build(full_list=full_list)
        for slot in slots:
            if slot.content is not None and slot.content.failures:
                _log_failures(request, slot.content.failures)
        if self._contents.evicts and (yield from self._contents.missing(references, request.scope)):
            return give_up(StorageError("the storage is too small for all of this result"))
        if placeholder is None or (
            decision.limit is not None and not measure.exceeds(placeholder.tokens, as_measured=False)
        ):
            return self._keep(request, Keep(reason="would not shrink"))
        outcome = Offloaded(blocks=placeholder.blocks, references=references, tokens=tokens, index=full_list)
        saved_tokens = max(0, tokens.tokens - placeholder.tokens)
        self._recorder.record_outcome(outcome, request.about, tokens=tokens.tokens, tokens_saved=saved_tokens)
        return outcome

    def _save(
        self, part: Part, request: OffloadRequest, *, decision: Offload, measure: Measure, is_only_text: bool
    ) -> Effects[Slot | CoatcheckError]:
        """Encode, hash, index, preview and save one part, if its kind is stored; return its slot.

        Several text parts share one preview budget, so their previews are made after all of them are saved.
        """
        block = part.block
        encoded = content = ready = digest = None
        chunks: Sequence[int] = ()
        if isinstance(block, MediaBlock) and block.data:
            data = bytes(block.data)  # copies only a view or a mutable buffer
        elif part.text:
            data, chunks = yield from encode_bytes(part.text)
        else:
            return Slot(block=block)
        if len(data) >= HASHED_ON_THREAD_BYTES:  # on another core, while this one makes index and preview
            digest = self._contents.start_hash(data, part.content_type, starts=part.starts)
        if part.text:
            try:  # what fails here is left out, and the content is saved without it
                encoded = yield from index_text(part.text, data, chunks)
                content = Previewed(text=part.text, content_type=part.content_type, lines=encoded.lines)
                if is_only_text:
                    content = replace(content, more_than=measure.exceeded - measure.media)
                    if len(content.text) > preview.LARGE_CHARACTERS:
                        content = yield from preview.search_for_odd(content)
                    budget = decision.preview_tokens
                    ready = ReadyPreview(budget, preview.preview(content, measure.counter, budget=budget))
            except Exception as error:  # noqa: BLE001 - such as a MemoryError, or an error of a host's counter
                log_failure(logger, "a text is stored without its line index or its preview", error=error)
        reference = yield from self._contents.save(
            data,
            part.content_type,
            digest=digest,
            scope=request.scope,
            tool_name=request.result.tool_name,
            arguments=request.result.tool_args if self._settings.list_arguments else None,
            encoded=encoded,
            starts=part.starts,
            file_name=block.name if isinstance(block, MediaBlock) else None,
            # A result that cannot stay whole would be lost, so it is worth the wait.
            anyway=partial(measure.exceeds, self._settings.max_inline_tokens),
        )
        if isinstance(reference, CoatcheckError):
            return reference
        path = self._contents.path_of(reference, request.scope) if self._settings.show_path else None
        return Slot(block=block, content=content or _previewed(part), preview=ready, reference=reference, path=path)

    def _save_list(
        self, request: OffloadRequest, references: Sequence[Reference]
    ) -> Effects[Reference | CoatcheckError]:
        """Save the list of all references of a result whose placeholder cannot name them one by one."""
        listing = "".join(f"{list_row(position, reference)}\n" for position, reference in enumerate(references, 1))
        data, chunks = yield from encode_bytes(listing)
        encoded = yield from index_text(listing, data, chunks)
        tool_name = request.result.tool_name
        saving = self._contents.save(data, "text/plain", scope=request.scope, tool_name=tool_name, encoded=encoded)
        return (yield from saving)

    def _give_up(
        self,
        request: OffloadRequest,
        error: CoatcheckError,
        *,
        measure: Measure,
        parts: Sequence[Part],
        tokens: Estimate,
    ) -> Outcome:
        """Keep a result that could not be stored; cut it only if it exceeds ``max_inline_tokens``."""
        tool_name = request.result.tool_name
        self._recorder.record_failure(error, request.about, logged=f"failed to offload: {error}")
        limit = self._settings.max_inline_tokens
        if not measure.exceeds(limit):
            return self._keep(request, Keep(reason="storage failed"))
        slots = [Slot(block=part.block, content=_previewed(part)) for part in parts]
        reason = cause_for_model(error)
        blocks = cut_to(slots, limit, counter=measure.counter, tool_name=tool_name, tokens=tokens, reason=reason)
        for slot in slots:
            if slot.content is not None and slot.content.failures:
                _log_failures(request, slot.content.failures)
        outcome = Truncated(blocks=blocks, error=error)
        self._recorder.record_outcome(outcome, request.about, tokens=tokens.tokens)
        return outcome

    def _keep(self, request: OffloadRequest, decision: Keep) -> Kept:
        """Record that a result stays."""
        outcome = Kept(blocks=request.result.blocks, reason=decision.reason)
        self._recorder.record_outcome(outcome, request.about, tokens=None)
        return outcome

    def offload_step(self, requests: Sequence[OffloadRequest]) -> Effects[tuple[Outcome, ...]]:
        """Decide about all results of one agent step together, then carry out each decision."""
        decided: list[tuple[Measure, Decision]] = []
        tool_name = ""
        try:
            for request in requests:
                tool_name = request.result.tool_name
                decided.append((yield from self._decide(request, None)))
            tool_name = ""  # from here on, a failure is about all of them
            decisions = [decision for _, decision in decided]
            if self._settings.max_step_tokens is not None:
                decisions = fit_step(decided, self._settings.max_step_tokens, settings=self._settings)
        except CoatcheckError:
            raise
        except Exception as error:
            if self._by_bytes is None:
                raise
            self._blame_counter(error, replace(requests[0].about, tool_name=tool_name))
            return (yield from self._by_bytes.offload_step(requests))
        outcomes: list[Outcome] = []
        for request, (measure, _), decision in zip(requests, decided, decisions, strict=True):
            outcomes.append((yield from self.offload(request, (measure, decision))))
        return tuple(outcomes)

    def _blame_counter(self, error: Exception, about: About) -> None:
        blame_counter(error, about, settings=self._settings, recorder=self._recorder, what="a result")

    def _record_nonsense(self, request: OffloadRequest, answer: object) -> None:
        """Tell the host that its policy returned neither a policy nor a verdict."""
        kind = f"the class {answer.__name__}" if isinstance(answer, type) else type(answer).__name__
        failure = CoatcheckError(
            f"the policy of {request.result.tool_name!r} returned {kind}, not a rule, True, False or None; the default"
            " threshold decides"
        )
        self._recorder.record_failure(failure, request.about, logged=str(failure))

    def _ask_host(
        self, request: OffloadRequest, ask: Callable[[], object], *, what: str, instead: str
    ) -> Effects[object]:
        """Return the answer of a host's callable, sync or async; or its error, after telling the host.

        Each callable is asked only once about a result.
        """
        if what in request.answers:
            return request.answers[what]
        answer = yield Effect(
            call=ask,
            local=False,
            is_async=inspect.iscoroutinefunction(ask),
            what=f"{what} of {request.result.tool_name!r}",
            failure=CoatcheckError,
        )
        request.answers[what] = answer
        if isinstance(answer, CoatcheckError):
            reason = f"{answer}; {instead}"
            self._recorder.record_failure(answer, request.about, logged=reason, reason=reason)
        return answer


def _previewed(part: Part) -> Previewed | None:
    """Return a part as previews see it; None for media other than text, and for opaque blocks."""
    text = part.text or _decoded(part.block)
    return Previewed.of(text, part.content_type) if text else None


def _decoded(block: Block) -> str | None:
    """Return the text of a document such as ``text/csv``; None for any other block."""
    if not isinstance(block, MediaBlock) or not is_text(block.media_type):
        return None
    try:
        return bytes(block.data).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _log_failures(request: OffloadRequest, failures: Mapping[str, Exception]) -> None:
    """Log each kind of preview that failed, once, no matter how many budgets it was tried with."""
    for kind, error in failures.items():
        words = f"{kind} failed on a result of {request.result.tool_name!r}, which is shown more simply"
        log_failure(logger, words, error=error)
