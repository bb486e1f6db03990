"""``Offloader``, the class that users and adapters call: it checks arguments, chooses the scope and runs the engine.

Each operation has a sync and an async method with the same arguments. Both run the same code in ``engine``; the
signatures are written out twice, because editors, type checkers and ``help`` read them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from coatcheck.core.arguments import DEFAULT_CONTEXT_LINES
from coatcheck.core.blocks import Kept, ToolResult, fits_bytes, require_result
from coatcheck.core.checks import is_count, require_tool
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import loading
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.plan import Keep, limit_of, policy_of
from coatcheck.core.policy import require_policy
from coatcheck.core.settings import Settings
from coatcheck.engine.events import About, Recorder, Stats
from coatcheck.engine.execution import SHORT_BYTES, StorageAccess, arun, run
from coatcheck.engine.options import check_options
from coatcheck.engine.request import OffloadRequest
from coatcheck.scopes import choose_scope, require_own_scope, require_scope, require_scope_parts
from coatcheck.storage.memory import InMemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import Unpack

    from coatcheck.core.blocks import Block, Offloaded, Outcome, Truncated
    from coatcheck.core.facts import Reference
    from coatcheck.core.policy import Policy
    from coatcheck.core.references import Scope
    from coatcheck.core.retrieved import Content, Listing, Retrieved
    from coatcheck.engine.options import OffloaderOptions
    from coatcheck.storage.protocol import MaybeAwaitable, NamesReferences, Storage

__all__ = ("Offloader",)

Item = TypeVar("Item")

_EXEMPT = Keep(reason="exempt")


class Offloader:
    """Takes oversized tool results out of a conversation, and reads them back. Safe for many threads and event loops.

    Every method that reaches the storage has an async form with the same arguments: ``aoffload``, ``aretrieve`` and so
    on. The sync methods return when the work is done; an async storage runs on an event loop of ours, and large content
    is hashed on a second thread. The async methods work on threads, so that the event loop stays free.

    A method raises ``InvalidRequest`` where it cannot run: an async method without a running asyncio event loop, a sync
    method that needs an async storage on a thread that runs an event loop. Sync ``offload``, ``offload_step`` and
    ``last_resort``, and ``alast_resort``, do not raise it, but treat it as a failure of the storage.
    """

    def __init__(self, storage: Storage | NamesReferences | None = None, **options: Unpack[OffloaderOptions]) -> None:
        """Configure. Nothing is read or written, and no vocabulary is loaded, until the first result that needs it.

        Args:
            storage: where content goes. None: a new ``InMemoryStorage``, lost when the process ends.
            **options: the fields of ``Settings``, ``settings`` and ``on_event``; see ``OffloaderOptions``.

        Raises:
            InvalidRequest: an argument is wrong.
            TypeError: an argument does not exist. The message lists those that do.

        """
        check_options(options, owner=type(self))
        self._settings = _settings_of(options)
        self._scope_required = self._settings.require_scope
        self._recorder = Recorder(options.get("on_event"))
        self._storage = StorageAccess(
            InMemoryStorage() if storage is None else storage,
            network_threads=self._settings.network_threads,
            queue_seconds=self._settings.queue_seconds,
        )
        with loading:
            from coatcheck.engine.engine import Engine  # noqa: PLC0415 - more than half of this package's load time
            from coatcheck.engine.last_resort import LastResort  # noqa: PLC0415 - see above

        self._engine = Engine(self._storage, self._settings, self._recorder)
        self._last_resort = LastResort(self._storage, self._settings, self._recorder)

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._settings

    def __deepcopy__(self, memo: object) -> Offloader:
        """Return the offloader itself: it never changes, and frameworks copy objects that hold one."""
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

    # From the tool into the conversation.

    def offload(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        tool_args: Mapping[str, object] | None = None,
        scope: Scope | None = None,
        identity: Scope | None = None,
        is_error: bool = False,
        measured_tokens: int | Callable[[], MaybeAwaitable[int | None]] | None = None,
        confirm: Callable[[int], MaybeAwaitable[bool]] | None = None,
        policy: Policy | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> Outcome:
        """Decide whether a tool result stays in the conversation; if not, store it and return its placeholder.

        A failing storage or policy never raises: the result stays, or is cut above ``max_inline_tokens``.

        Args:
            blocks: the content blocks, in order.
            tool_name: the tool's name in the framework.
            tool_args: the arguments of the call, for callable policies.
            scope: who may read it back. None: the ambient scope, else ``identity``, else ``"default"``.
            identity: the framework's stable id of the conversation, such as a thread id.
            is_error: whether the framework marked the result as an error.
            measured_tokens: the framework's own token count of the whole result; or a callable, sync or async, that
                returns it, or None for no count. The callable is not called if the number of bytes alone shows that
                the result is within a limit in tokens. Ignored if it fails.
            confirm: called, sync or async, with the token count of a result that is about to be offloaded. If it
                returns false, the result stays at any size. Ignored if it fails.
            policy: decides about this call instead of the configured policies.
            retrieval_tool: the name of the agent's retrieval tool, or None if it has none. Results of that tool always
                stay.

        Returns:
            ``Kept`` with the very same objects, ``Offloaded``, or ``Truncated``.

        Raises:
            InvalidRequest: an argument is wrong, or no scope was given and ``require_scope`` is set.

        """
        arrived = self._arrive(
            blocks,
            tool_name,
            tool_args=tool_args,
            scope=scope,
            identity=identity,
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
        measured_tokens: int | Callable[[], MaybeAwaitable[int | None]] | None = None,
        confirm: Callable[[int], MaybeAwaitable[bool]] | None = None,
        policy: Policy | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
    ) -> Outcome:
        """Do what ``offload`` does, without blocking the event loop, which must be asyncio's.

        A callable policy, ``measured_tokens`` and ``confirm`` have 30 seconds each; after that, they count as failed.

        Raises:
            InvalidRequest: as for ``offload``; or no asyncio event loop runs, and the result is not certainly small.

        """
        arrived = self._arrive(
            blocks,
            tool_name,
            tool_args=tool_args,
            scope=scope,
            identity=identity,
            is_error=is_error,
            measured_tokens=measured_tokens,
            confirm=confirm,
            policy=policy,
            retrieval_tool=retrieval_tool,
        )
        if isinstance(arrived, Kept):
            return arrived
        return await arun(self._engine.offload(arrived), short=fits_bytes(arrived.result.blocks, SHORT_BYTES))

    def keep_if_small(self, texts: Sequence[str], *, tool_name: str, is_error: bool = False) -> bool:
        """Return True if a result of only ``texts`` certainly stays. It is then counted, and nothing is left to do.

        This is a fast path for adapters, since most results are small. False means "not certain": call ``offload``. It
        needs neither a scope nor ``measured_tokens``. With a listener for events, it always returns False.
        """
        policy = policy_of(tool_name, self._settings)
        limit, _ = limit_of(policy, settings=self._settings, is_error=is_error)
        if not (self._settings.counter.bytewise and fits_bytes(texts, limit)) or self._recorder.listening:
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
        """Decide together about all results of one step of parallel calls; see ``offload`` for each of them.

        With ``max_step_tokens``, results within their own threshold are offloaded too, the largest first, until the
        step fits. If that is not enough, the previews of the step shrink. A step may still not fit: a result stays if
        an error mark or a policy keeps it, if it comes from the retrieval tool, or if it has at most 512 tokens.

        Args:
            results: the result of each call, in order.
            scope: as for ``offload``.
            identity: as for ``offload``.
            policies: for each result, a policy that replaces the configured ones, or None.
            retrieval_tool: as for ``offload``.

        Returns:
            One outcome for each result, in order.

        Raises:
            InvalidRequest: an argument is wrong, or no scope was given and ``require_scope`` is set.

        """
        return run(
            self._engine.offload_step(
                self._make_step(results, scope, identity=identity, policies=policies, retrieval_tool=retrieval_tool)
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
        calls = self._make_step(results, scope, identity=identity, policies=policies, retrieval_tool=retrieval_tool)
        short = fits_bytes((block for call in calls for block in call.result.blocks), SHORT_BYTES)
        return await arun(self._engine.offload_step(calls), short=short)

    def last_resort(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        scope: Scope | Callable[[], Scope | None] | None = None,
        identity: Scope | Callable[[], Scope | None] | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
        error: Exception | None = None,
    ) -> Offloaded | Truncated | None:
        """Enforce a hard limit after an adapter failed to offload a result: store it as it is, or cut it. Never raises.

        An adapter's guard calls it after its own code or ``offload`` raised. It makes no preview by kind, asks no
        policy, and counts bytes where the token counter fails, so what failed before does not fail here again.

        Args:
            blocks: the result, converted in the simplest way: text parts as ``TextBlock``, all else as ``OpaqueBlock``.
            tool_name: the tool's name, or ``""`` if it is unknown.
            scope: as for ``offload``, or a callable that returns it. If the callable raises, or no scope was given and
                ``require_scope`` is set, nothing is stored: the text is cut.
            identity: as for ``offload``, or a callable, like ``scope``.
            retrieval_tool: as for ``offload``.
            error: the error that led here, which the caller has logged. It is counted, and reported to ``on_event`` as
                ``failed``.

        Returns:
            None if the result may stay: it comes from the retrieval tool, or its text blocks together have at most
            ``max_inline_tokens`` tokens and 4 times as many UTF-8 bytes, and no other block has more bytes than that.
            ``Offloaded`` if everything above the limit was stored, so nothing is lost. ``Truncated`` if storing failed:
            the head and tail of the text stay, up to the limit, with a notice that the rest is lost, and why.

        """
        if tool_name == retrieval_tool:
            return None
        chosen = self._scope_or_error(scope, identity)
        settling = self._last_resort.settle(
            blocks, chosen, tool_name=tool_name, retrieval_tool=retrieval_tool, error=error
        )
        try:
            return run(settling)
        except Exception as failed:  # noqa: BLE001 - the result must not stay whole, whatever keeps it from being stored
            return self._last_resort.cut(blocks, failed, tool_name=tool_name)

    async def alast_resort(
        self,
        blocks: Sequence[Block],
        *,
        tool_name: str,
        scope: Scope | Callable[[], Scope | None] | None = None,
        identity: Scope | Callable[[], Scope | None] | None = None,
        retrieval_tool: str | None = RETRIEVAL_TOOL,
        error: Exception | None = None,
    ) -> Offloaded | Truncated | None:
        """Do what ``last_resort`` does, without blocking the event loop."""
        if tool_name == retrieval_tool:
            return None
        chosen = self._scope_or_error(scope, identity)
        settling = self._last_resort.settle(
            blocks, chosen, tool_name=tool_name, retrieval_tool=retrieval_tool, error=error
        )
        try:
            return await arun(settling)
        except Exception as failed:  # noqa: BLE001 - the result must not stay whole, whatever keeps it from being stored
            return self._last_resort.cut(blocks, failed, tool_name=tool_name)

    # Back from the storage.

    def retrieve(
        self,
        reference: str | Reference | None = None,
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
        """Answer a model's call to the retrieval tool, in at most ``max_retrieval_tokens``.

        Selectors may have the forms that models send: numbers as strings, and ``""`` for "not given". Without a
        selector, the content is read from its beginning.

        Without a reference, the answer is a list of what the scope holds, newest first, one line for each content, and
        selectors apply to that list. It has at most 1,000 lines: the newest, or any if the storage lists by key, as S3
        does. The shared scope ``"default"`` is not listed.

        Args:
            reference: as shown in the placeholder, or an item of ``Offloaded.references``. None, ``""`` or ``"*"``:
                the list.
            scope: the scope that the content was stored in; never take it from the model.
            identity: as for ``offload``.
            pattern: RE2 regular expression, searched line by line. If it is not valid, it is searched literally.
            line_range: first and last line: ``{"start": 10, "end": 20}``, a pair, or ``"10-20"``.
            context_lines: lines shown around each match.
            query: JMESPath expression, for JSON and JSON Lines.
            offset: character to start at, negative from the end; with a query, a character of its result.
            native_media: return an image, audio, video or document itself instead of a description.
            retrieval_tool: the name of the agent's retrieval tool, for the call that the answer suggests next.

        Raises:
            InvalidRequest: a selector is wrong or does not fit the content; the message is meant for the model. For the
                host: the scope or ``retrieval_tool`` is wrong, or no scope was given and ``require_scope`` is set.
            ReferenceNotFound: the scope never had such a reference.
            ReferenceExpired: the scope had it, and the content is gone.
            StorageError: the storage failed.

        """
        if not (isinstance(retrieval_tool, str) and retrieval_tool):
            require_tool(retrieval_tool)
        chosen = choose_scope(scope, identity, required=self._scope_required)
        return run(
            self._engine.retrieve(
                reference,
                chosen,
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
        reference: str | Reference | None = None,
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
        if not (isinstance(retrieval_tool, str) and retrieval_tool):
            require_tool(retrieval_tool)
        chosen = choose_scope(scope, identity, required=self._scope_required)
        return await arun(
            self._engine.retrieve(
                reference,
                chosen,
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

    def list(
        self,
        *,
        scope: Scope | None = None,
        identity: Scope | None = None,
        tool_name: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Listing:
        """Return a page of what a scope holds, newest first, for the host.

        A storage on this machine is asked once. A storage behind a network gets the requests of one page and, if its
        list has no metadata, as with S3, one for each content on the page. If the storage lists by key, as S3 does,
        only the entries within each 1,000 are in this order.

        Args:
            scope: as for ``retrieve``.
            identity: as for ``offload``.
            tool_name: return only results of this tool; the page then holds fewer contents than were looked at.
            limit: entries to look at, 1 to 1,000. The line indexes of large text count as well.
            after: ``Listing.after`` of the previous page. Content that is saved or read between two pages moves to the
                front, and may be on neither.

        Raises:
            InvalidRequest: no scope was given (the shared scope ``"default"`` is listed only if it is named), the
                storage cannot list, or an argument is wrong.
            StorageError: the storage failed.

        """
        chosen = require_own_scope(scope, identity)
        return run(self._engine.list_contents(chosen, tool_name=tool_name, limit=limit, after=after))

    async def alist(
        self,
        *,
        scope: Scope | None = None,
        identity: Scope | None = None,
        tool_name: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Listing:
        """Do what ``list`` does, without blocking the event loop."""
        chosen = require_own_scope(scope, identity)
        return await arun(self._engine.list_contents(chosen, tool_name=tool_name, limit=limit, after=after))

    def load(self, reference: str | Reference, *, scope: Scope | None = None, identity: Scope | None = None) -> Content:
        """Return the whole of a stored content for the host, whatever its size, checked against its digest.

        A storage that chooses its own references keeps no digest, so nothing is checked there.

        Raises:
            InvalidRequest: the reference is not a str, is empty or too long; ``scope`` is not a scope; or no scope was
                given and one is required.
            ReferenceNotFound: the scope never had such a reference.
            ReferenceExpired: the scope had it, and the content is gone.
            CorruptContent: the stored bytes are not what was saved.
            StorageError: the storage failed.

        """
        return run(self._engine.load(reference, choose_scope(scope, identity, required=self._scope_required)))

    async def aload(
        self, reference: str | Reference, *, scope: Scope | None = None, identity: Scope | None = None
    ) -> Content:
        """Do what ``load`` does, without blocking the event loop."""
        return await arun(self._engine.load(reference, choose_scope(scope, identity, required=self._scope_required)))

    def expand(self, text: str, *, scope: Scope | None = None, identity: Scope | None = None) -> str:
        """Return ``text`` with every reference of the scope replaced by the stored text, as in a final answer.

        References to other scopes, to expired content and to media stay as they are. The result may have any size.

        Raises:
            InvalidRequest: ``text`` is not a str; ``scope`` is not a scope; or no scope was given and one is required.
            StorageError: the storage failed, or stored bytes are not what was saved.

        """
        _require_text(text)
        return run(self._engine.expand(text, choose_scope(scope, identity, required=self._scope_required)))

    async def aexpand(self, text: str, *, scope: Scope | None = None, identity: Scope | None = None) -> str:
        """Do what ``expand`` does, without blocking the event loop."""
        _require_text(text)
        return await arun(self._engine.expand(text, choose_scope(scope, identity, required=self._scope_required)))

    # Clean-up and counts.

    def delete_scope(self, scope: Scope) -> int:
        """Delete everything that was stored in ``scope``; return the number of contents deleted.

        It lists the scope again, up to 5 times, until nothing saved before the call is left. Content saved meanwhile
        may or may not be deleted.

        Versions and copies that the storage itself keeps are not deleted: an S3 bucket with versioning keeps each
        object as a noncurrent version until a lifecycle rule expires it (see docs/storages.md), and replicas, backups
        and snapshots of any storage keep it too.

        Raises:
            InvalidRequest: ``scope`` is not a scope, or the storage cannot list or delete.
            StorageError: the storage failed, and what was not deleted yet is still there; or entries are left after
                5 passes, and the message says how many.

        """
        return run(self._engine.delete_scope(require_scope(scope)))

    async def adelete_scope(self, scope: Scope) -> int:
        """Do what ``delete_scope`` does, without blocking the event loop."""
        return await arun(self._engine.delete_scope(require_scope(scope)))

    def delete_scopes(self, *, under: tuple[str, ...]) -> int:
        """Delete everything that was stored in the tuple scopes that begin with the parts ``under``.

        ``under=("tenant-7",)`` deletes the scopes ``("tenant-7",)``, ``("tenant-7", "thread-3")`` and so on, but not
        the ``str`` scope ``"tenant-7"``. Otherwise it does what ``delete_scope`` does, and raises what that raises.

        Returns:
            The number of contents deleted.

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
        """Delete what is past a limit, the oldest first; return the number of entries deleted.

        Entries saved within the last hour always stay, even those saved while this runs. Saving an entry again
        refreshes it; in ``FileStorage`` and ``InMemoryStorage``, so does reading it.

        Args:
            max_age_seconds: delete entries last saved or refreshed longer ago than this.
            max_bytes: delete until at most this many bytes are stored.
            max_scope_bytes: delete until at most this many bytes are stored in each scope.

        Raises:
            InvalidRequest: no limit was given, one is not a number of at least 0, or the storage cannot list or delete.
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

    def _scope_or_error(
        self,
        scope: Scope | Callable[[], Scope | None] | None,
        identity: Scope | Callable[[], Scope | None] | None,
    ) -> Scope | Exception:
        """Return the scope for a last resort, or the error that an adapter's callable or ``choose_scope`` raised."""
        try:
            return choose_scope(
                scope() if callable(scope) else scope,
                identity() if callable(identity) else identity,
                required=self._scope_required,
            )
        except Exception as error:  # noqa: BLE001 - the result is cut then, and the notice says why
            return error

    def _make_step(
        self,
        results: Sequence[ToolResult],
        scope: Scope | None,
        *,
        identity: Scope | None,
        policies: Sequence[Policy | None] | None,
        retrieval_tool: str | None,
    ) -> Sequence[OffloadRequest]:
        chosen = choose_scope(scope, identity, required=self._scope_required)
        require_tool(retrieval_tool, or_none=True)
        given = _listed("results", results)
        overrides = (None,) * len(given) if policies is None else _listed("policies", policies)
        if len(overrides) != len(given):
            msg = f"policies must hold one policy or None for each of the {len(given)} results, not {len(overrides)}"
            raise InvalidRequest(msg)
        calls = []
        for result, override in zip(given, overrides, strict=True):
            if not isinstance(result, ToolResult):
                msg = f"each of results must be a coatcheck.ToolResult, not {type(result).__name__}"
                raise InvalidRequest(msg)
            name = result.tool_name
            blocks = require_result(result.blocks, name)
            policy = policy_of(name, self._settings) if override is None else require_policy(name, override)
            about = About(scope=chosen, tool_name=name, references=())
            checked = result if blocks is result.blocks else replace(result, blocks=blocks)
            calls.append(
                OffloadRequest(result=checked, scope=chosen, about=about, policy=policy, retrieval_tool=retrieval_tool)
            )
        return calls

    def _arrive(
        self,
        blocks: Sequence[Block],
        tool_name: str,
        *,
        tool_args: Mapping[str, object] | None,
        scope: Scope | None,
        identity: Scope | None,
        is_error: bool,
        measured_tokens: int | Callable[[], MaybeAwaitable[int | None]] | None,
        confirm: Callable[[int], MaybeAwaitable[bool]] | None,
        policy: Policy | None,
        retrieval_tool: str | None,
    ) -> OffloadRequest | Kept:
        """Return the outcome of a result that certainly stays, without counting a token; else the engine's input."""
        chosen = choose_scope(scope, identity, required=self._scope_required)
        content = require_result(blocks, tool_name)
        if not (measured_tokens is None or callable(measured_tokens) or is_count(measured_tokens)):
            msg = f"measured_tokens must be a whole number of at least 0, a callable or None, not {measured_tokens!r}"
            raise InvalidRequest(msg)
        if not (confirm is None or callable(confirm)):
            msg = f"confirm must be a callable or None, not {confirm!r}"
            raise InvalidRequest(msg)
        if not (isinstance(retrieval_tool, str) and retrieval_tool):
            require_tool(retrieval_tool, or_none=True)
        governing = policy_of(tool_name, self._settings) if policy is None else require_policy(tool_name, policy)
        limit, keep = limit_of(governing, settings=self._settings, is_error=is_error)
        if retrieval_tool is not None and tool_name == retrieval_tool:
            stays, keep = True, _EXEMPT
        else:
            counts_bytes = self._settings.counter.bytewise and not isinstance(measured_tokens, int)
            stays = counts_bytes and fits_bytes(content, limit)
        # Most results are small and end here. With a listener, which may block, the engine emits the event.
        if stays and not self._recorder.listening:
            self._recorder.count_kept()
            return Kept(blocks=content, reason=keep.reason)
        return OffloadRequest(
            result=ToolResult(blocks=content, tool_name=tool_name, tool_args=tool_args or {}, is_error=is_error),
            scope=chosen,
            about=About(scope=chosen, tool_name=tool_name, references=()),
            policy=governing,
            retrieval_tool=retrieval_tool,
            measured_tokens=measured_tokens,
            confirm=confirm,
            decided_on_arrival=keep if stays else None,
        )


def _settings_of(options: OffloaderOptions) -> Settings:
    given = options.get("settings")
    if given is not None and not isinstance(given, Settings):
        msg = f"settings must be a coatcheck.Settings, not {given!r}"
        raise InvalidRequest(msg)
    fields: dict[str, Any] = {name: value for name, value in options.items() if name not in {"settings", "on_event"}}
    return replace(Settings() if given is None else given, **fields)


def _require_text(text: object) -> None:
    if not isinstance(text, str):
        msg = f"text must be a str, not {text!r}"
        raise InvalidRequest(msg)


def _listed(name: str, values: Iterable[Item]) -> tuple[Item, ...]:
    try:
        return tuple(values)
    except TypeError:
        msg = f"{name} must be a sequence, such as a list, not {type(values).__name__}"
        raise InvalidRequest(msg) from None
