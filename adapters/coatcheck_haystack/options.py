"""What users pass to the hook and to the retrieval tool, checked; and what a run's ``State`` makes of it.

Only checking and choosing belong here. Scope and store come from the host: an argument, or the ``hook_context`` of the
run, which no model can write to. State is read through ``data``, because ``State.get`` copies deeply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from haystack.hooks.tool_result_offloading import RESULT_STORE_CONTEXT_KEY

from coatcheck import InvalidRequest, Offloader, ToolResultStoreBridge
from coatcheck.adapting import OtherOptions, ScopeOption, check_scope, make_offloader, resolve_scope

if TYPE_CHECKING:
    from haystack.components.agents.state import State
    from haystack.hooks.tool_result_offloading import ToolResultStore

    from coatcheck import NamesReferences, Scope, Storage

__all__ = (
    "SCOPE_CONTEXT_KEY",
    "HookOptions",
    "Source",
    "StoreOrOffloader",
    "context_of",
    "source_of",
)

SCOPE_CONTEXT_KEY = "coatcheck_scope"
"""Where ``hook_context`` may carry the scope of a run, such as a conversation's or a tenant's id."""


class HookOptions(OtherOptions, total=False):
    """The options of ``Offloader`` without ``preview_tokens``, which the hook has as a parameter of its own."""

    max_result_tokens: int


StoreOrOffloader: TypeAlias = "ToolResultStore | Storage | NamesReferences | Offloader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where content goes and comes back from, and in which scope. A hook and its retrieval tool may share one."""

    given: StoreOrOffloader
    """What the user passed."""

    options: Mapping[str, Any]
    """What else the ``Offloader`` was made with; empty where a ready one was passed."""

    scope: ScopeOption
    """The scope argument; a callable gets the run's ``State``."""

    offloader: Offloader
    """Serves every run that does not bring a store of its own."""

    def offloader_of(self, state: State | None) -> Offloader:
        """Return the offloader of a run.

        Raises:
            InvalidRequest: the run brings something that is not a store, or no options to use with it are known.

        """
        context = context_of(state)
        if RESULT_STORE_CONTEXT_KEY not in context:
            return self.offloader
        store = context[RESULT_STORE_CONTEXT_KEY]  # refused if it is None: this run was to have a store of its own
        if isinstance(store, Offloader):
            return store
        if isinstance(self.given, Offloader):
            msg = (
                f"a ready Offloader keeps its storage: put an Offloader into hook_context[{RESULT_STORE_CONTEXT_KEY!r}]"
            )
            raise InvalidRequest(msg, for_host=True)
        return Offloader(_storage_of(store), **self.options)

    def scope_of(self, state: State | None) -> Scope | None:
        """Return the scope that the user's argument gives a run; None if it does not say.

        Raises:
            InvalidRequest: the argument is a callable, and there is no run.

        """
        if state is None and callable(self.scope):
            msg = "the scope is a callable on the State of a run, and this call is outside of any run"
            raise InvalidRequest(msg, for_host=True)
        return resolve_scope(self.scope, state)

    def identity_of(self, state: State | None) -> Scope | None:
        """Return the scope that the context of a run names, unchecked: the core refuses what is not a scope."""
        identity = context_of(state).get(SCOPE_CONTEXT_KEY)
        return tuple(identity) if isinstance(identity, list) else identity  # JSON has no tuples


def source_of(store: StoreOrOffloader, options: Mapping[str, Any], *, scope: ScopeOption, owner: type) -> Source:
    """Return the source for a store, a storage or a ready offloader.

    Raises:
        InvalidRequest: an argument is wrong, or options came with a ready offloader.
        TypeError: ``Offloader`` has no such option. ``owner`` is what the user called.

    """
    storage = store if isinstance(store, Offloader) else _storage_of(store)
    offloader = make_offloader(storage, options, owner=owner)
    return Source(given=store, options=options, scope=check_scope(scope), offloader=offloader)


def context_of(state: State | None) -> Mapping[str, Any]:
    """Return the ``hook_context`` of a run; empty if it has none."""
    context = None if state is None else state.data.get("hook_context")
    return context if isinstance(context, Mapping) else {}


def _storage_of(store: Any) -> Any:  # noqa: ANN401 - whatever it is, the bridge or the Offloader says what is missing
    """Return what the core can use: Haystack's stores behind a bridge, a storage as it is.

    Raises:
        InvalidRequest: it is neither.

    """
    if hasattr(store, "load"):
        return store
    try:
        return ToolResultStoreBridge(store)
    except InvalidRequest as error:
        msg = f"{error}. A storage such as FileStorage('./artifacts') will do too"
        raise InvalidRequest(msg, for_host=True) from None
