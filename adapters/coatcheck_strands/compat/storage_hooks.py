"""What the plugin does for the storages of this package while an agent runs: tell them who is reading, and evict.

Storages of ``coatcheck`` itself need neither.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from strands.hooks import (  # Strands finds a hook's event by the annotation
    AfterInvocationEvent,  # noqa: TC002
    AfterToolCallEvent,  # noqa: TC002
    BeforeModelCallEvent,  # noqa: TC002
    BeforeToolCallEvent,  # noqa: TC002
)
from strands.plugins import Plugin
from strands.plugins import hook as strands_hook

from coatcheck import choose_scope, log_failure
from coatcheck.adapting import ScopeOption, check_scope, resolve_scope
from coatcheck_strands.compat.calling import begin_call, calling, end_calls, scope_at_hand
from coatcheck_strands.compat.cycles import used_by
from coatcheck_strands.options import Call, identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coatcheck import Scope
    from coatcheck_strands.offloaders import Offloaders

__all__ = ("StorageHooks", "hook")

logger: logging.Logger = logging.getLogger("coatcheck_strands")

MethodT = TypeVar("MethodT", bound="Callable[..., Any]")


def hook(method: MethodT) -> MethodT:
    """Mark a plugin method as a hook. Strands' own decorator does this, but its types allow only functions."""
    marked: Any = strands_hook(cast("Any", method))
    return cast("MethodT", marked)


class StorageHooks(Plugin):
    """The part of the plugin that serves its storages."""

    name = "context_offloader"

    def __init__(self, offloaders: Offloaders, *, scope: ScopeOption) -> None:
        """Serve ``offloaders``.

        Raises:
            InvalidRequest: ``scope`` is not a valid scope.

        """
        super().__init__()
        self.offloaders: Offloaders = offloaders
        self.scope: ScopeOption = check_scope(scope)

    @hook
    def begin_call(self, event: BeforeToolCallEvent) -> None:
        """Tell the storages on whose behalf the tool that is about to run will read."""
        begin_call(event.agent, partial(self._choose_scope, call_of(event)))

    @hook
    def end_calls(self, event: AfterInvocationEvent) -> None:
        """Forget calls that were interrupted."""
        end_calls(event.agent)

    @hook
    async def evict_unused(self, event: BeforeModelCallEvent) -> None:
        """Delete entries that the agent has not used for too long."""
        end_calls(event.agent)
        try:
            await self.offloaders.of(event.agent).evict(event.agent)
        except Exception as error:  # noqa: BLE001 - the entries stay a little longer
            log_failure(logger, "coatcheck failed to evict what is no longer used", error=error)

    def note_scope(self, event: AfterToolCallEvent) -> None:
        """Tell the storage under which scope something was stored. Call this inside ``storing``."""
        known_scopes = self.offloaders.of(event.agent).known_scopes
        if known_scopes is not None and (scope := scope_at_hand()) is not None:
            known_scopes.note(scope)

    @contextmanager
    def storing(self, event: AfterToolCallEvent) -> Iterator[Callable[[], Scope | None]]:
        """Tell the storages for whom the block stores. Yield a function that resolves the scope, at most once."""
        scope = cache(partial(resolve_scope, self.scope, call_of(event)))

        def choose() -> Scope:
            return choose_scope(scope(), identity_of(event.agent), required=False)

        with used_by(event.agent), calling(event.agent, choose):
            yield scope

    def _choose_scope(self, call: Call) -> Scope:
        return choose_scope(resolve_scope(self.scope, call), identity_of(call.agent), required=False)


def call_of(event: Any) -> Call:  # noqa: ANN401 - a tool event, before or after the call
    """Return the argument of a ``scope`` callable."""
    return Call(agent=event.agent, tool_use=event.tool_use, invocation_state=event.invocation_state)
