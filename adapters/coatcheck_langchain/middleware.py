"""The middleware for ``langchain.agents.create_agent``: it offloads large tool results and adds the retrieval tool.

Only the agent's middleware interface belongs here. ``hook`` does the work around a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware

from coatcheck import RETRIEVAL_TOOL
from coatcheck.adapting import (
    OfferTool,
    ScopeOption,
    check_flags,
    check_name,
    is_offered_late,
    make_offloader,
)
from coatcheck_langchain.hook import NO_STEPS, CallWrapper, Hook
from coatcheck_langchain.offering import offering_late
from coatcheck_langchain.retrieval import find_tool, retrieval_tool

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_core.tools import BaseTool
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("OffloadMiddleware",)


class OffloadMiddleware(CallWrapper, AgentMiddleware[Any, Any, Any]):
    """Takes oversized tool results out of an agent's conversation; the model reads them back with one tool.

    Results of ``return_direct`` tools, of the retrieval tool itself and of calls made by code stay. A tool's own
    messages are never changed; copies take their place. If rewriting fails, a warning is logged. The result then stays
    as it is, or is stored or cut if it is above ``max_inline_tokens``. The first middleware in the list is the
    outermost, so the position of this one decides whether it sees results before or after others change them. Tracers
    and callbacks see a tool's raw result before any middleware does. ``offload_tool`` hides it from them too.
    """

    def __init__(
        self,
        storage: StorageOrOffloader | None = None,
        *,
        scope: ScopeOption = None,
        include_retrieval_tool: bool = True,
        offer_tool: OfferTool = "always",
        name: str | None = None,
        exempt: Collection[str] = (),
        native_media: bool = False,
        keep_artifact: bool = False,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure the middleware.

        Args:
            storage: a storage, or a ready ``Offloader``. None means a new ``InMemoryStorage``, which is lost when the
                process ends.
            scope: who may read back: a scope, or a callable that takes the ``ToolRuntime``. If None, the ambient scope,
                else the ``thread_id``, else ``"default"``.
            include_retrieval_tool: give the agent the tool to read back with.
            offer_tool: ``"when needed"`` hides the retrieval tool from the model until something was offloaded in the
                conversation, and offers it from then on. Use it with models that have no prompt cache.
            name: tells two instances in one agent apart. They should share one ``Offloader``, and one of them should
                not include the retrieval tool.
            exempt: names of tools whose results stay, up to ``max_inline_tokens``. ``"coatcheck": "keep"`` does the
                same in a tool's ``metadata``, in the ``additional_kwargs`` of a message that a tool returns, and in
                the ``metadata`` of a run's configuration.
            native_media: the retrieval tool returns images and files themselves instead of a description.
            keep_artifact: leave a message's ``artifact`` alone even if it is a copy of the stored text, as MCP adapters
                make it. Else a small mark replaces the copy, and ``restore_artifact`` restores it.
            **options: the options of ``Offloader``, except ``max_step_tokens``, because a middleware sees one call at a
                time. Only if ``storage`` is not an ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

        """
        check_flags(include_retrieval_tool=include_retrieval_tool, native_media=native_media)
        self.offloader: Offloader = make_offloader(
            storage, options, owner=OffloadMiddleware, no_steps=NO_STEPS, is_whole=True
        )
        read_back = [retrieval_tool(self.offloader, native_media=native_media)] if include_retrieval_tool else []
        self.tools: Sequence[BaseTool] = read_back
        self._name = check_name("name", name)
        super().__init__(
            Hook(offloader=self.offloader, scope=scope, exempt=exempt, keep_artifact=keep_artifact),
            find_tool(self.offloader, RETRIEVAL_TOOL if include_retrieval_tool else None, own=True),
        )
        if is_offered_late(offer_tool):
            self.__class__ = offering_late(type(self))

    @property
    def name(self) -> str:
        """The name by which LangChain tells instances apart."""
        return self._name if self._name is not None else super().name
