"""The public face of the engine: checks arguments, chooses the scope, and runs each operation sync or async.

Every operation is a pair of methods of a few lines with equal arguments. What they do is written once, in ``engine``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.blocks import JsonBlock, MediaBlock, OpaqueBlock, TextBlock, ToolResult
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.facts import Reference
from coatcheck.core.forks import loading
from coatcheck.core.notice import DEFAULT_CONTEXT_LINES, RETRIEVAL_TOOL
from coatcheck.core.outcomes import Kept
from coatcheck.core.plan import Keep, certainly_within
from coatcheck.core.policy import Never, OverShare, OverTokens, require_policy
from coatcheck.core.settings import NETWORK_THREADS, configure
from coatcheck.core.tokens import utf8_length
from coatcheck.engine.access import StorageAccess
from coatcheck.engine.events import Recorder, Stats
from coatcheck.engine.execution import QUEUE_SECONDS, SHORT_BYTES, arun, run
from coatcheck.engine.request import OffloadRequest
from coatcheck.scopes import choose_scope, require_scope_parts
from coatcheck.storage.memory import InMemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.core.outcomes import Content, Offloaded, Outcome, Retrieved, Truncated
    from coatcheck.core.policy import MaybeAwaitable, Policy
    from coatcheck.core.references import Scope
    from coatcheck.core.tokens import TokenCounter
    from coatcheck.engine.events import Listener
    from coatcheck.storage.protocol import NamesReferences, Storage

__all__ = ("Offloader",)

_WITHIN = Keep(reason="within the threshold")
_POLICY = Keep(reason="policy")
_ERROR = Keep(reason="error")
_EXEMPT = Keep(reason="exempt")

_BLOCKS = (TextBlock, JsonBlock, MediaBlock, OpaqueBlock)
_BYTES = (bytes, bytearray, memoryview)


class Offloader:
    """Takes oversized tool results out of a conversation, and reads them back. Safe for many threads and event loops.

    Every operation has an async form with the same arguments: ``aoffload``, ``aretrieve`` and so on. The sync forms
    make every call where they stand; the async ones never block the loop.
    """

    def __init__(
        self,
        storage: Storage | NamesReferences | None = None,
        *,
        max_result_tokens: int = 2_500,
        preview_tokens: int | None = None,
        policies: Mapping[str | tuple[str, ...], Policy] | None = None,
        token_counter: TokenCounter | None = None,
        max_retrieval_tokens: int | None = None,
        max_inline_tokens: int = 50_000,
        max_step_tokens: int | None = None,
        max_query_bytes: int = 8_000_000,
        offload_errors: bool = False,
        show_path: bool = False,
        require_scope: bool = False,
        network_threads: int = NETWORK_THREADS,
        queue_seconds: float = QUEUE_SECONDS,
        on_event: Listener | Sequence[Listener] | None = None,
    ) -> None:
        """Configure; nothing is read or written, and no vocabulary loaded, before the first result that needs it.

        Args:
            storage: where content goes; None means a new ``InMemoryStorage``, gone with the process.
            max_result_tokens: the threshold, in tokens; a result above it leaves the conversation, one at it stays.
            preview_tokens: tokens that stay in view, effectively at most 40% of the threshold that fired; 0 for no
                preview; None: 1,000.
            policies: what governs single tools: by exact name, by a tuple of names, or ``"*"`` for all others.
            token_counter: counts and cuts; None means ``TiktokenCounter("o200k_base")``.
            max_retrieval_tokens: tokens of one read-back at most; None means ``max_result_tokens``, at least 256.
            max_inline_tokens: whatever a policy, an error mark or a failure would keep leaves above this.
            max_step_tokens: tokens that all results of one step may take together, where the framework shows the step.
            max_query_bytes: JSON larger than this is not queried, only searched and read.
            offload_errors: whether results marked as errors leave like others; by default they stay.
            show_path: name the local file in the notice, for agents that have a shell.
            require_scope: refuse to work in the shared default scope.
            network_threads: how many calls the async methods make at once to a storage that is neither async nor on
                this machine; the sync methods make theirs on the caller's thread.
            queue_seconds: how long such a call waits for one of these threads at most. It is given up earlier, after
                30 seconds, where no other call gets one either. Then it has 30 seconds for itself.
            on_event: called with each ``Event``, or several that are called in turn; none async. What one raises is
                logged and counted. One that blocks delays the call that it is told of; from the async methods, never
                the loop.

        Raises:
            InvalidRequest: an argument is wrong.

        """
        self._configuration = configure(
            max_result_tokens=max_result_tokens,
            preview_tokens=preview_tokens,
            policies=policies,
            token_counter=token_counter,
            max_retrieval_tokens=max_retrieval_tokens,
            max_inline_tokens=max_inline_tokens,
            max_step_tokens=max_step_tokens,
            max_query_bytes=max_query_bytes,
            offload_errors=offload_errors,
            show_path=show_path,
            require_scope=require_scope,
            network_threads=network_threads,
            queue_seconds=queue_seconds,
        )
        self._recorder = Recorder(on_event)
        self._storage = StorageAccess(
            InMemoryStorage() if storage is None else storage,
            network_threads=self._configuration.network_threads,
            queue_seconds=self._configuration.queue_seconds,
        )
        with loading:
            from coatcheck.engine.engine import Engine  # noqa: PLC0415 - more than half of what this package takes to load
            from coatcheck.engine.last_resort import LastResort  # noqa: PLC0415 - see above

        self._engine = Engine(self._storage, self._configuration, self._recorder)
        self._last_resort = LastResort(self._storage, self._configuration, self._recorder)

    def __deepcopy__(self, memo: object) -> Offloader:
        """Return the offloader itself: it never changes, and frameworks copy what holds one without being asked."""
        return self

    def __copy__(self) -> Offloader:
        """Return the offloader itself, as ``__deepcopy__`` does."""
        return self

    def __getstate__(self) -> object:
        """Refuse to be pickled.

        Raises:
            TypeError: always; the message says what to do instead.

        """
        msg = (
            "an Offloader cannot be pickled, since it holds the threads and counts of its process: make one in each"
            " process, Offloader(storage, ...), and pass it the settings and a storage that pickles, such as"
            " FileStorage"
        )
        raise TypeError(msg)

    # Tool results on their way into the conversation.

    def offload(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        tool_args: Mapping[str, object] | None = None,
        scope: Scope | None = None,
        identity: Scope | None = None,
        is_error: bool = False,
        measured_tokens: int | Callable[[], MaybeAwaitable[int]] | None = None,
        confirm: Callable[[int], MaybeAwaitable[bool]] | None = None,
        policy: Policy | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> Outcome:
        """Decide what becomes of a tool result; store it first if it leaves.

        A failing storage or policy never raises: the result stays, or is cut above ``max_inline_tokens``.

        Args:
            blocks: the content blocks, in order.
            tool_name: the tool's name, as the framework has it.
            tool_args: the arguments of the call, for callable policies.
            scope: who may read it back; else the ambient scope, else ``identity``, else ``"default"``.
            identity: the framework's own stable identity of the conversation, such as a thread id.
            is_error: whether the framework marked the result as an error.
            measured_tokens: the framework's own count of the whole result, if it has one; or what gives it, sync or
                async, asked only where the result is not certainly within the threshold.
            confirm: asked, sync or async, with the tokens of a result that is about to leave; if it answers false the
                result stays, whatever its size. Where it or ``measured_tokens`` fails, it is as if not given.
            policy: governs this one call instead of the configured policies.
            retrieval_tool: the name under which the agent has the retrieval tool, or None if it has none. The results
                of that tool itself always stay.

        Returns:
            ``Kept`` with the very same objects, ``Offloaded``, or ``Truncated``.

        Raises:
            InvalidRequest: an argument is wrong, or no scope was given and ``require_scope`` is set.

        """
        arrived = self._arrived(
            blocks,
            tool_name,
            tool_args=tool_args,
            scope=self._scope(scope, identity),
            is_error=is_error,
            measured_tokens=measured_tokens,
            confirm=confirm,
            policy=policy,
            retrieval_tool=retrieval_tool,
        )
        return arrived if isinstance(arrived, Kept) else run(self._engine.offload(arrived))

    async def aoffload(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        tool_args: Mapping[str, object] | None = None,
        scope: Scope | None = None,
        identity: Scope | None = None,
        is_error: bool = False,
        measured_tokens: int | Callable[[], MaybeAwaitable[int]] | None = None,
        confirm: Callable[[int], MaybeAwaitable[bool]] | None = None,
        policy: Policy | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> Outcome:
        """Do what ``offload`` does, without blocking the event loop."""
        arrived = self._arrived(
            blocks,
            tool_name,
            tool_args=tool_args,
            scope=self._scope(scope, identity),
            is_error=is_error,
            measured_tokens=measured_tokens,
            confirm=confirm,
            policy=policy,
            retrieval_tool=retrieval_tool,
        )
        if isinstance(arrived, Kept):
            return arrived
        return await arun(self._engine.offload(arrived), short=certainly_within(arrived.result.blocks, SHORT_BYTES))

    def keeps(self, texts: Sequence[str], *, tool_name: str, is_error: bool = False) -> bool:
        """Return whether a result that is nothing but ``texts`` certainly stays; then it is counted, and all is done.

        For adapters: most results are small, and this costs next to nothing. False says nothing: pass the result on to
        ``offload``. Neither a scope nor ``measured_tokens`` is asked for, and where somebody listens to events, nothing
        is certain.
        """
        if self._recorder.listening:
            return False
        left, _ = self._certain_limit(self._configuration.policies.of(tool_name), is_error=is_error)
        for text in texts:
            if len(text) > left:
                return False
            left -= utf8_length(text)
        if left < 0:
            return False
        self._recorder.count_kept()
        return True

    def offload_step(
        self,
        results: Sequence[ToolResult],
        *,
        scope: Scope | None = None,
        identity: Scope | None = None,
        policies: Sequence[Policy | None] | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> tuple[Outcome, ...]:
        """Decide about all results of one step of parallel calls together; see ``offload`` for each of them.

        With ``max_step_tokens``, results that are small alone and too much together leave too, the largest first,
        until the step fits; if that is not enough, all previews of the step become smaller. Errors, exempt tools and
        results of at most 512 tokens stay, whatever they take.

        Args:
            results: what each call returned, in order.
            scope: as for ``offload``.
            identity: as for ``offload``.
            policies: for each result the one that governs it instead of the configured policies, or None.
            retrieval_tool: as for ``offload``.

        Returns:
            One outcome for each result, in order.

        Raises:
            InvalidRequest: an argument is wrong, or no scope was given and ``require_scope`` is set.

        """
        return run(
            self._engine.offload_step(
                self._step(results, scope, identity=identity, policies=policies, retrieval_tool=retrieval_tool)
            )
        )

    async def aoffload_step(
        self,
        results: Sequence[ToolResult],
        *,
        scope: Scope | None = None,
        identity: Scope | None = None,
        policies: Sequence[Policy | None] | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> tuple[Outcome, ...]:
        """Do what ``offload_step`` does, without blocking the event loop."""
        calls = self._step(results, scope, identity=identity, policies=policies, retrieval_tool=retrieval_tool)
        short = certainly_within((block for call in calls for block in call.result.blocks), SHORT_BYTES)
        return await arun(self._engine.offload_step(calls), short=short)

    def last_resort(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        scope: Scope | Callable[[], Scope | None] | None = None,
        identity: Scope | Callable[[], Scope | None] | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> Offloaded | Truncated | None:
        """Hold a hard limit where an adapter failed to offload a result: store it as it is, or cut it. Never raises.

        For the guard of an adapter, after whatever was raised in its own code or in ``offload``. It makes no preview by
        kind, counts no tokens and asks no policy, so that what failed there does not fail here too.

        Args:
            blocks: the result, converted in the simplest way: text parts as ``TextBlock``, all else as ``OpaqueBlock``.
            tool_name: the tool's name, or ``""`` where it is not known.
            scope: as for ``offload``; or a callable that returns it. Where a callable raises, or no scope was given and
                ``require_scope`` is set, nothing is stored: the text is cut.
            identity: as for ``offload``; or a callable, like ``scope``.
            retrieval_tool: as for ``offload``.

        Returns:
            None where the texts together have at most 4 times ``max_inline_tokens`` UTF-8 bytes, and no other block has
            more alone: the result stays, as do results of the retrieval tool. ``Offloaded`` where what leaves could be
            stored; nothing is lost then. ``Truncated`` where not: head and tail of the texts are kept, up to that
            limit, with a notice that the rest is lost, and why.

        """
        if tool_name == retrieval_tool or not self._last_resort.is_needed(blocks):
            return None
        chosen = self._scope_or_error(scope, identity)
        try:
            stored: Reference | Exception = run(self._last_resort.store(blocks, chosen, tool_name=tool_name))
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being stored, it must not stay whole
            stored = error
        return self._last_resort.outcome(
            blocks, stored, scope=chosen, tool_name=tool_name, retrieval_tool=retrieval_tool
        )

    async def alast_resort(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        scope: Scope | Callable[[], Scope | None] | None = None,
        identity: Scope | Callable[[], Scope | None] | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> Offloaded | Truncated | None:
        """Do what ``last_resort`` does, without blocking the event loop."""
        if tool_name == retrieval_tool or not self._last_resort.is_needed(blocks):
            return None
        chosen = self._scope_or_error(scope, identity)
        try:
            stored: Reference | Exception = await arun(self._last_resort.store(blocks, chosen, tool_name=tool_name))
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being stored, it must not stay whole
            stored = error
        return self._last_resort.outcome(
            blocks, stored, scope=chosen, tool_name=tool_name, retrieval_tool=retrieval_tool
        )

    # Stored content on its way back.

    def retrieve(
        self,
        reference: str | Reference,
        *,
        scope: Scope | None = None,
        identity: Scope | None = None,
        pattern: object = None,
        line_range: object = None,
        context_lines: object = DEFAULT_CONTEXT_LINES,
        query: object = None,
        offset: object = None,
        native_media: bool = False,
        retrieval_tool: str = RETRIEVAL_TOOL,
    ) -> Retrieved:
        """Answer what a model asks for, in at most ``max_retrieval_tokens``.

        The selectors are taken as models send them: numbers may come as text, and ``""`` means not given. Without any,
        the content is read from its beginning.

        Args:
            reference: as the placeholder shows it, or as ``Offloaded.references`` has it.
            scope: whose content; never take it from the model.
            identity: as for ``offload``.
            pattern: RE2 regular expression, searched line by line; what is no regular expression is searched literally.
            line_range: first and last line, ``{"start": 10, "end": 20}``, a pair, or ``"10-20"``.
            context_lines: lines shown around each match.
            query: JMESPath expression, for JSON and JSON Lines.
            offset: character to start at, negative from the end; with a query, in its result.
            native_media: return an image, audio, video or document itself instead of a description.
            retrieval_tool: the name under which the agent has the tool, for the call that reads on.

        Raises:
            InvalidRequest: a selector is wrong or does not fit the content; the message is meant for the model.
            ReferenceNotFound: the scope never had such a reference.
            ReferenceExpired: it had, and the content is gone.
            StorageError: the storage failed.

        """
        return run(
            self._engine.retrieve(
                _id(reference),
                self._scope(scope, identity),
                native_media=native_media,
                retrieval_tool=retrieval_tool,
                pattern=pattern,
                line_range=line_range,
                context_lines=context_lines,
                query=query,
                offset=offset,
            )
        )

    async def aretrieve(
        self,
        reference: str | Reference,
        *,
        scope: Scope | None = None,
        identity: Scope | None = None,
        pattern: object = None,
        line_range: object = None,
        context_lines: object = DEFAULT_CONTEXT_LINES,
        query: object = None,
        offset: object = None,
        native_media: bool = False,
        retrieval_tool: str = RETRIEVAL_TOOL,
    ) -> Retrieved:
        """Do what ``retrieve`` does, without blocking the event loop."""
        return await arun(
            self._engine.retrieve(
                _id(reference),
                self._scope(scope, identity),
                native_media=native_media,
                retrieval_tool=retrieval_tool,
                pattern=pattern,
                line_range=line_range,
                context_lines=context_lines,
                query=query,
                offset=offset,
            ),
            short=True,
        )

    def load(self, reference: str | Reference, *, scope: Scope | None = None, identity: Scope | None = None) -> Content:
        """Return a stored content whole, for the host: unbounded, and checked against its digest.

        Raises:
            InvalidRequest: the reference is no text, empty or too long, or no scope was given and one is required.
            ReferenceNotFound: the scope never had such a reference.
            ReferenceExpired: it had, and the content is gone.
            CorruptContent: the stored bytes are not what was saved.
            StorageError: the storage failed.

        """
        return run(self._engine.load(_id(reference), self._scope(scope, identity)))

    async def aload(
        self, reference: str | Reference, *, scope: Scope | None = None, identity: Scope | None = None
    ) -> Content:
        """Do what ``load`` does, without blocking the event loop."""
        return await arun(self._engine.load(_id(reference), self._scope(scope, identity)))

    def expand(self, text: str, *, scope: Scope | None = None, identity: Scope | None = None) -> str:
        """Return ``text`` with every reference of the scope replaced by the stored text: for a final answer.

        References of other scopes, expired ones and those of media stay as they are. The result is unbounded.

        Raises:
            InvalidRequest: no scope was given and one is required.
            StorageError: the storage failed, or stored bytes are not what was saved.

        """
        return run(self._engine.expand(_text(text), self._scope(scope, identity)))

    async def aexpand(self, text: str, *, scope: Scope | None = None, identity: Scope | None = None) -> str:
        """Do what ``expand`` does, without blocking the event loop."""
        return await arun(self._engine.expand(_text(text), self._scope(scope, identity)))

    # Clean-up and counts.

    def delete_scope(self, scope: Scope) -> int:
        """Delete everything that was stored in ``scope``; return how many entries that were.

        It lists the scope again until nothing is left that was saved before the call, at most 5 times. What is saved
        meanwhile may go or stay.

        A storage with versions or copies of its own keeps what was deleted there: an S3 bucket with versioning keeps
        each object as a noncurrent version until a lifecycle rule expires it (see docs/storages.md), and so do
        replicas, backups and snapshots of any storage.

        Raises:
            InvalidRequest: the storage cannot list or delete.
            StorageError: the storage failed, and what was not deleted yet is still there; or entries are left after
                5 passes, and the message says how many.

        """
        return run(self._engine.delete_scope(choose_scope(scope, None, required=True)))

    async def adelete_scope(self, scope: Scope) -> int:
        """Do what ``delete_scope`` does, without blocking the event loop."""
        return await arun(self._engine.delete_scope(choose_scope(scope, None, required=True)))

    def delete_scopes(self, *, under: tuple[str, ...]) -> int:
        """Delete everything that was stored in the tuple scopes that begin with the parts ``under``.

        ``under=("tenant-7",)`` deletes the scopes ``("tenant-7",)``, ``("tenant-7", "thread-3")`` and so on, but not
        the ``str`` scope ``"tenant-7"``. Otherwise it does what ``delete_scope`` does, and raises what that raises.

        Returns:
            The number of entries deleted.

        Raises:
            InvalidRequest: ``under`` is not a tuple of 1 to 8 ``str``.

        """
        return run(self._engine.delete_scopes(require_scope_parts("under", under)))

    async def adelete_scopes(self, *, under: tuple[str, ...]) -> int:
        """Do what ``delete_scopes`` does, without blocking the event loop."""
        return await arun(self._engine.delete_scopes(require_scope_parts("under", under)))

    def sweep(
        self,
        *,
        max_age_seconds: float | None = None,
        max_bytes: int | None = None,
        max_scope_bytes: int | None = None,
    ) -> int:
        """Delete what is past a limit, the oldest first; return how many entries that were.

        What was saved within the last hour always stays, also what is saved while this runs. Saving again refreshes an
        entry, and in ``FileStorage`` and ``InMemoryStorage`` reading it does too.

        Args:
            max_age_seconds: delete what was last saved or refreshed longer ago.
            max_bytes: delete until at most so many bytes are stored.
            max_scope_bytes: delete until at most so many bytes are stored in each scope.

        Raises:
            InvalidRequest: no limit was given, or the storage cannot list or delete.
            StorageError: the storage failed; what was not deleted yet is still there.

        """
        return run(
            self._engine.sweep(max_age_seconds=max_age_seconds, max_bytes=max_bytes, max_scope_bytes=max_scope_bytes)
        )

    async def asweep(
        self,
        *,
        max_age_seconds: float | None = None,
        max_bytes: int | None = None,
        max_scope_bytes: int | None = None,
    ) -> int:
        """Do what ``sweep`` does, without blocking the event loop."""
        return await arun(
            self._engine.sweep(max_age_seconds=max_age_seconds, max_bytes=max_bytes, max_scope_bytes=max_scope_bytes)
        )

    def stats(self) -> Stats:
        """Return the counts since this offloader was made."""
        return self._recorder.stats

    def _policy(self, tool_name: str, override: Policy | None) -> Policy:
        if override is None:
            return self._configuration.policies.of(tool_name)
        require_policy(tool_name, override)
        return override

    def _scope(self, argument: Scope | None, identity: Scope | None) -> Scope:
        return choose_scope(argument, identity, required=self._configuration.require_scope)

    def _scope_or_error(
        self,
        scope: Scope | Callable[[], Scope | None] | None,
        identity: Scope | Callable[[], Scope | None] | None,
    ) -> Scope | Exception:
        """Return the scope of a last resort, or whatever a callable of the adapter, or the choice, raised."""
        try:
            return self._scope(scope() if callable(scope) else scope, identity() if callable(identity) else identity)
        except Exception as error:  # noqa: BLE001 - the result is cut then, and the notice says why
            return error

    def _step(
        self,
        results: Sequence[ToolResult],
        scope: Scope | None,
        *,
        identity: Scope | None,
        policies: Sequence[Policy | None] | None,
        retrieval_tool: str | None,
    ) -> list[OffloadRequest]:
        chosen = self._scope(scope, identity)
        overrides = [None] * len(results) if policies is None else policies
        if len(overrides) != len(results):
            msg = f"policies must hold one policy or None for each of the {len(results)} results, not {len(overrides)}"
            raise InvalidRequest(msg)
        calls = []
        for result, override in zip(results, overrides, strict=True):
            _checked(result.blocks, result.tool_name)
            policy = self._policy(result.tool_name, override)
            calls.append(OffloadRequest(result=result, scope=chosen, policy=policy, retrieval_tool=retrieval_tool))
        return calls

    def _arrived(
        self,
        blocks: Sequence[Block],
        tool_name: str,
        *,
        tool_args: Mapping[str, object] | None,
        scope: Scope,
        is_error: bool,
        measured_tokens: int | Callable[[], MaybeAwaitable[int]] | None,
        confirm: Callable[[int], MaybeAwaitable[bool]] | None,
        policy: Policy | None,
        retrieval_tool: str | None,
    ) -> OffloadRequest | Kept:
        """Return the outcome of a result that certainly stays, without counting a token; else what the engine needs."""
        content = _checked(blocks, tool_name)
        governing = self._policy(tool_name, policy)
        limit, keep = self._certain_limit(governing, is_error=is_error)
        if retrieval_tool is not None and tool_name == retrieval_tool:
            stays, keep = True, _EXEMPT
        else:
            stays = not isinstance(measured_tokens, int) and certainly_within(content, limit)
        # Most results are small, and need no more than this. Who listens may block, so the engine tells them.
        if stays and not self._recorder.listening:
            self._recorder.count_kept()
            return Kept(blocks=content, reason=keep.reason)
        return OffloadRequest(
            result=ToolResult(blocks=content, tool_name=tool_name, tool_args=tool_args or {}, is_error=is_error),
            scope=scope,
            policy=governing,
            retrieval_tool=retrieval_tool,
            measured_tokens=measured_tokens,
            confirm=confirm,
            certain=keep if stays else None,
        )

    def _certain_limit(self, policy: Policy, *, is_error: bool) -> tuple[int, Keep]:
        """Return up to how many UTF-8 bytes a text certainly stays, and why; below zero where that takes a look."""
        limits = self._configuration.limits
        if not self._configuration.counter.bytewise:
            return -1, _WITHIN
        if is_error and not limits.offload_errors:
            return limits.max_inline_tokens, _ERROR
        if isinstance(policy, OverTokens | OverShare):
            return min(policy.threshold, limits.max_inline_tokens), _WITHIN
        if isinstance(policy, Never):
            return limits.max_inline_tokens, _POLICY
        return -1, _WITHIN


def _checked(blocks: Sequence[Block], tool_name: str) -> tuple[Block, ...]:
    """Return the content blocks of a result, if an adapter gave what it should.

    Raises:
        InvalidRequest: the tool's name is no text, or something among the blocks is no content block.

    """
    if isinstance(blocks, _BLOCKS):
        msg = f"blocks must be a sequence of content blocks, not one {type(blocks).__name__}: put it into a list"
        raise InvalidRequest(msg)
    if not isinstance(tool_name, str):
        msg = f"tool_name must be a text, not {tool_name!r}"
        raise InvalidRequest(msg)
    try:
        content = tuple(blocks)
    except TypeError:
        msg = f"blocks must be a sequence of content blocks, not {type(blocks).__name__}"
        raise InvalidRequest(msg) from None
    for block in content:
        if not isinstance(block, _BLOCKS):
            msg = (
                f"a content block must be a TextBlock, JsonBlock, MediaBlock or OpaqueBlock, not {type(block).__name__}"
            )
            raise InvalidRequest(msg)
        if isinstance(block, TextBlock) and not isinstance(block.text, str):
            msg = f"a TextBlock holds a text, not {type(block.text).__name__}; bytes with a type make a MediaBlock"
            raise InvalidRequest(msg)
        if isinstance(block, MediaBlock):
            _check_medium(block)
    return content


def _check_medium(block: MediaBlock) -> None:
    data, media_type, name = block.data, block.media_type, block.name
    if not (isinstance(data, _BYTES) and isinstance(media_type, str) and isinstance(name, str | None)):
        held = ", ".join(type(one).__name__ for one in (data, media_type, name))
        msg = f"a MediaBlock holds bytes, a MIME type and a name or None, not {held}"
        raise InvalidRequest(msg)


def _id(reference: str | Reference) -> str:
    return reference.id if isinstance(reference, Reference) else reference


def _text(value: object) -> str:
    if not isinstance(value, str):
        msg = f"text must be a text, not {value!r}"
        raise InvalidRequest(msg)
    return value
