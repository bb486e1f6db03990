"""What users pass to the hook and to the retrieval tool, checked; and what a run's ``State`` makes of it.

Only checking and choosing belong here. Scope and store come from the host: an argument, or the ``hook_context`` of the
run, which no model can write to. State is read through ``data``, because ``State.get`` copies deeply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from haystack.hooks.tool_result_offloading import RESULT_STORE_CONTEXT_KEY

from coatcheck import InvalidRequest, Offloader, ToolResultStoreBridge

if TYPE_CHECKING:
    from haystack.components.agents.state import State
    from haystack.hooks.tool_result_offloading import ToolResultStore

    from coatcheck import NamesReferences, Storage

__all__ = (
    "SCOPE_CONTEXT_KEY",
    "Scope",
    "Source",
    "StoreOrOffloader",
    "chosen_preview",
    "context_of",
    "is_short",
    "settings_of",
    "source_of",
)

SCOPE_CONTEXT_KEY = "coatcheck_scope"
"""Where ``hook_context`` may carry the scope of a run, such as a conversation's or a tenant's id."""

CHARACTERS_PER_TOKEN = 4

MAX_RESULT_TOKENS = 2_500
"""The core's default threshold; a preview must stay below it."""

MAX_INLINE_TOKENS = 50_000
"""The core's default. A threshold above it, which a long preview asks for, raises it."""

Scope: TypeAlias = "str | Callable[[State], str | None] | None"
"""A text, or a callable on the run's ``State``; None, also from the callable, leaves it to the next in line."""

StoreOrOffloader: TypeAlias = "ToolResultStore | Storage | NamesReferences | Offloader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where content goes and comes back from, and whose it is. A hook and its retrieval tool may share one."""

    given: StoreOrOffloader
    """What the user passed."""

    knobs: Mapping[str, Any]
    """What the ``Offloader`` was made with beside the store; empty where a ready one was passed."""

    scope: Scope
    """The scope argument."""

    offloader: Offloader
    """Serves every run that does not bring a store of its own."""

    def offloader_of(self, state: State | None) -> Offloader:
        """Return the offloader of a run.

        Raises:
            InvalidRequest: the run brings something that is no store, or nobody knows the knobs to use with it.

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
            raise InvalidRequest(msg)
        return Offloader(_storage_of(store), **self.knobs)

    def whose(self, state: State | None) -> dict[str, str | None]:
        """Return the scope arguments of the core: ours first, then what the run's context says."""
        identity = context_of(state).get(SCOPE_CONTEXT_KEY)
        given = self.scope
        chosen = given if given is None or isinstance(given, str) else given(_required(state))
        return {"scope": chosen, "identity": None if identity is None or identity == "" else str(identity)}


def source_of(store: StoreOrOffloader, knobs: Mapping[str, Any], *, scope: Scope) -> Source:
    """Return the source around a store, a storage or a ready offloader.

    Raises:
        InvalidRequest: an argument is wrong, or a ready offloader was passed together with knobs.

    """
    if not (scope is None or callable(scope) or (isinstance(scope, str) and scope)):
        msg = f"scope must be a non-empty text, a callable on the State, or None, not {scope!r}"
        raise InvalidRequest(msg)
    if not isinstance(store, Offloader):
        return Source(given=store, knobs=knobs, scope=scope, offloader=Offloader(_storage_of(store), **knobs))
    if knobs:
        msg = f"a ready Offloader has its own {', '.join(knobs)}; pass a store with these, or set them on the Offloader"
        raise InvalidRequest(msg)
    return Source(given=store, knobs={}, scope=scope, offloader=store)


def chosen_preview(
    store: object, chars: int | None, *, tokens: int | None, default: int | None
) -> tuple[int | None, int | None]:
    """Return the size of the preview in characters or in tokens; neither where the offloader has its own.

    Raises:
        InvalidRequest: both were given, or one beside a ready offloader, or the characters are no whole number from 0.

    """
    if chars is not None and tokens is not None:
        msg = "preview_chars and preview_tokens are two ways to say one thing: pass one of them"
        raise InvalidRequest(msg)
    if chars is not None and (isinstance(chars, bool) or not isinstance(chars, int) or chars < 0):
        msg = f"preview_chars must be a whole number of at least 0, not {chars!r}"
        raise InvalidRequest(msg)
    if not isinstance(store, Offloader):
        return (default if chars is None and tokens is None else chars), tokens
    if chars is not None or tokens is not None:
        msg = "a ready Offloader has its own preview_tokens: set them on the Offloader, or pass its storage"
        raise InvalidRequest(msg)
    return None, None


def settings_of(knobs: Mapping[str, Any], *, chars: int | None, tokens: int | None) -> dict[str, Any]:
    """Return the knobs with the preview among them, and with a threshold that a long preview stays below."""
    preview = tokens if chars is None else -(-chars // CHARACTERS_PER_TOKEN)
    if chars is None or preview is None:
        return {"preview_tokens": preview, **knobs}
    threshold = max(MAX_RESULT_TOKENS, preview + 1)
    limits = {"max_result_tokens": threshold, "max_inline_tokens": max(MAX_INLINE_TOKENS, threshold)}
    return {"preview_tokens": preview, **limits, **knobs}


def is_short(content: object) -> bool:
    """Return whether a result is a text that cannot have ``MAX_INLINE_TOKENS``: a character has at most 4 bytes."""
    return isinstance(content, str) and len(content) <= MAX_INLINE_TOKENS // 4


def context_of(state: State | None) -> Mapping[str, Any]:
    """Return the ``hook_context`` of a run; empty where there is none."""
    context = None if state is None else state.data.get("hook_context")
    return context if isinstance(context, Mapping) else {}


def _storage_of(store: Any) -> Any:  # noqa: ANN401 - whatever it is, the bridge or the Offloader says what is missing
    """Return what the core can use: Haystack's stores behind a bridge, everything else as it is."""
    return ToolResultStoreBridge(store) if not hasattr(store, "load") else store


def _required(state: State | None) -> State:
    if state is None:
        msg = "the scope is a callable on the State of a run, and this call is outside of any run"
        raise InvalidRequest(msg)
    return state
