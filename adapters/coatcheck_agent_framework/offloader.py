"""What users add to an agent: a context provider that adds the retrieval tool, and the middleware that offloads.

Only the public class belongs here. ``hook`` does the work around a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import ContextProvider, RawAgent

from coatcheck import RETRIEVAL_TOOL
from coatcheck.adapting import RetrievalName, ScopeOption, WarnOnce, check_scope, make_offloader
from coatcheck_agent_framework.hook import Hook, OffloadMiddleware, SessionMiddleware, Sessions, logger
from coatcheck_agent_framework.retrieval import RetrievalTool

if TYPE_CHECKING:
    from agent_framework import AgentMiddleware, FunctionMiddleware, FunctionTool, SessionContext, SupportsAgentRun
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("ToolOffloader",)

_NO_STEPS = "the framework passes on one call at a time, so omit it"


class ToolOffloader(ContextProvider):
    """Takes oversized tool results out of a conversation; the model reads them back with one tool.

    One serves any number of agents: ``Agent(middleware=offload.middleware, context_providers=[offload])``. That covers
    the tools of MCP servers. The result of a call that ends the run (``MiddlewareTermination``) stays, and so does what
    the framework asks the user. If rewriting fails, a warning is logged. The result then stays as it is, or is stored
    or cut if it is above ``max_inline_tokens``.
    """

    def __init__(
        self,
        storage: StorageOrOffloader | None = None,
        *,
        scope: ScopeOption = None,
        native_media: bool = False,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure the offloader.

        Args:
            storage: a storage, or a ready ``Offloader``. None means a new ``InMemoryStorage``, which is lost when the
                process ends.
            scope: who may read back: a scope, or a callable that takes the ``FunctionInvocationContext``. If None, the
                ambient scope, else the ``session_id`` of the session given to the run, else ``"default"``.
            native_media: the retrieval tool returns images and files themselves instead of a description.
            **options: the options of ``Offloader``, except ``max_step_tokens``, because the framework shows one call at
                a time. Only if ``storage`` is not an ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

        """
        super().__init__("coatcheck")
        self.offloader: Offloader = make_offloader(
            storage, options, owner=ToolOffloader, no_steps=_NO_STEPS, is_whole=True
        )
        self._sessions = sessions = Sessions()
        self._warn = WarnOnce(logger)
        self.retrieval_tool: FunctionTool = RetrievalTool(
            self.offloader, scope=check_scope(scope), sessions=sessions, native_media=native_media
        )
        retrieval = RetrievalName(
            RETRIEVAL_TOOL,
            warn=WarnOnce(logger),
            is_ours=lambda tool: isinstance(tool, RetrievalTool) and tool.offloader is self.offloader,
            how_to_add="Pass context_providers=[offload] to the agent",
        )
        hook = Hook(offloader=self.offloader, scope=scope, retrieval=retrieval, sessions=sessions)
        self._middleware = (SessionMiddleware(sessions), OffloadMiddleware(hook))

    @property
    def middleware(self) -> list[AgentMiddleware | FunctionMiddleware]:
        """The middleware that offloads, to combine with your own in the agent's ``middleware``.

        Middleware after it in the list sees whole results, and what it returns is offloaded. Middleware before it sees
        placeholders, and what it returns stays.
        """
        return list(self._middleware)

    async def before_run(self, *, agent: SupportsAgentRun, context: SessionContext, **_: Any) -> None:  # noqa: ANN401 - unused arguments
        """Add the retrieval tool to a run's tools. The framework calls this after our middleware recorded the run."""
        if isinstance(agent, RawAgent) and not self._sessions.has_agent(agent):  # a workflow takes no middleware
            self._warn(
                "The agent %r has the ToolOffloader among its context_providers, but has not run with all of its"
                " middleware, so large results may stay. Pass middleware=offload.middleware, without brackets",
                agent.name or agent.id,
            )
        context.extend_tools(self.source_id, [self.retrieval_tool])
