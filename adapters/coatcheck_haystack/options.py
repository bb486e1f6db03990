"""Check what users pass to the hook and to the retrieval tool, and apply the ``State`` of a run to it.

Only checking and choosing belong here. Scope and store come from the host: from an argument, or from the run's
``hook_context``, to which no model can write. State is read through ``data``, because ``State.get`` makes deep copies.
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
"""The key in ``hook_context`` for the scope of a run, such as a conversation's or a tenant's id."""


class HookOptions(OtherOptions, total=False):
    """The options of ``Offloader`` without ``preview_tokens``, which is a parameter of the hook."""

    max_result_tokens: int


StoreOrOffloader: TypeAlias = "ToolResultStore | Storage | NamesReferences | Offloader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where content is stored and read, and in which scope. A hook and its retrieval tool may share one."""

    given: StoreOrOffloader
    """The store that the user passed."""

    options: Mapping[str, Any]
    """The other arguments of the ``Offloader``; empty if a ready one was passed."""

    scope: ScopeOption
    """The scope argument; a callable gets the run's ``State``."""

    offloader: Offloader
    """Serves every run that does not bring its own store."""

    def offloader_of(self, state: State | None) -> Offloader:
        """Return the offloader of a run.

        Raises:
            InvalidRequest: the run brings something that is not a store, or a store without known options for it.

        """
        context = context_of(state)
        if RESULT_STORE_CONTEXT_KEY not in context:
            return self.offloader
        store = context[RESULT_STORE_CONTEXT_KEY]  # None is refused: this run was meant to have its own store
        if isinstance(store, Offloader):
            return store
        if isinstance(self.given, Offloader):
            msg = (
                f"a ready Offloader keeps its storage: put an Offloader into hook_context[{RESULT_STORE_CONTEXT_KEY!r}]"
            )
            raise InvalidRequest(msg, for_host=True)
        return Offloader(_storage_of(store), **self.options)

    def scope_of(self, state: State | None) -> Scope | None:
        """Return the scope that the user's argument gives a run; None if it gives none.

        Raises:
            InvalidRequest: the argument is a callable, and there is no run.

        """
        if state is None and callable(self.scope):
            msg = "the scope is a callable that takes a run's State, but this call is outside a run"
            raise InvalidRequest(msg, for_host=True)
        return resolve_scope(self.scope, state)

    def identity_of(self, state: State | None) -> Scope | None:
        """Return the scope that a run's context names. It is not checked, because the core refuses an invalid one."""
        identity = context_of(state).get(SCOPE_CONTEXT_KEY)
        return tuple(identity) if isinstance(identity, list) else identity  # JSON has no tuples


def source_of(store: StoreOrOffloader, options: Mapping[str, Any], *, scope: ScopeOption, owner: type) -> Source:
    """Return the source for a store, a storage or a ready offloader.

    Raises:
        InvalidRequest: an argument is wrong, or options came with a ready offloader.
        TypeError: ``Offloader`` has no such option. The message names ``owner``, which the user called.

    """
    storage = store if isinstance(store, Offloader) else _storage_of(store)
    offloader = make_offloader(storage, options, owner=owner)
    return Source(given=store, options=options, scope=check_scope(scope), offloader=offloader)


def context_of(state: State | None) -> Mapping[str, Any]:
    """Return the ``hook_context`` of a run; empty if it has none."""
    context = None if state is None else state.data.get("hook_context")
    return context if isinstance(context, Mapping) else {}


def _storage_of(store: Any) -> Any:  # noqa: ANN401 - the bridge or the Offloader says what is missing
    """Return a storage for the core: one of Haystack's stores behind a bridge, or a storage as it is.

    Raises:
        InvalidRequest: ``store`` is neither.

    """
    if hasattr(store, "load"):
        return store
    try:
        return ToolResultStoreBridge(store)
    except InvalidRequest as error:
        msg = f"{error}. A storage such as FileStorage('./artifacts') also works"
        raise InvalidRequest(msg, for_host=True) from None
