"""``offer_tool="when needed"``: the retrieval tool is in the model's requests from the first offloaded result on.

Only hiding the tool and the flag in the agent's state belong here. The agent can always run the tool, so a model that
knows it from elsewhere may call it while it is hidden.
"""

from __future__ import annotations

import logging
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_type_hints

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langgraph.types import Command

from coatcheck import InvalidRequest
from coatcheck.adapting import OFFERED, needs_retrieval_tool
from coatcheck_langchain.retrieval import RetrievalTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ModelCallResult

    from coatcheck import Offloader
    from coatcheck_langchain.middleware import OffloadMiddleware

__all__ = ("offering_late",)

logger: logging.Logger = logging.getLogger("coatcheck_langchain")


def offering_late(middleware: type[OffloadMiddleware]) -> type[OffloadMiddleware]:
    """Return a subclass of ``middleware`` that offers its retrieval tool late.

    It must be a class, because LangChain looks for hooks in a middleware's class. A hook around model calls adds a span
    per call to every trace, and an edge to the graph. A middleware that always offers the tool should not pay for that.

    Raises:
        InvalidRequest: ``middleware`` has its own hook of this kind, which ours would replace.

    """
    hooks = {"wrap_model_call": _wrap_model_call, "awrap_model_call": _awrap_model_call}
    if any(getattr(middleware, name) is not getattr(AgentMiddleware, name) for name in hooks):
        msg = (
            f"offer_tool='when needed' uses {' and '.join(hooks)}, which {middleware.__name__} has too:"
            " move them to a separate middleware"
        )
        raise InvalidRequest(msg)
    fields = {
        **get_type_hints(middleware.state_schema, include_extras=True),
        OFFERED: Annotated[bool, PrivateStateAttr, or_],  # a reducer, because two middlewares may set it in one step
    }
    state = TypedDict("OfferingState", fields, total=False)  # type: ignore[misc] # the fields of a user's own state
    # Only one base: with a second, Python would not let an instance change its class to this one.
    own = {**hooks, "state_schema": state, "__doc__": middleware.__doc__, "__module__": middleware.__module__}
    return type(middleware.__name__, (middleware,), own)


def _wrap_model_call(
    self: OffloadMiddleware, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
) -> ModelCallResult[Any]:
    """Call the model, without the retrieval tool if there is nothing to read back."""
    prepared, is_first = _prepare(request, self.offloader)
    response = handler(prepared)
    return _note(response) if is_first else response


async def _awrap_model_call(
    self: OffloadMiddleware,
    request: ModelRequest[Any],
    handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
) -> ModelCallResult[Any]:
    """Do what ``_wrap_model_call`` does, without blocking the event loop."""
    prepared, is_first = _prepare(request, self.offloader)
    response = await handler(prepared)
    return _note(response) if is_first else response


def _prepare(request: ModelRequest[Any], offloader: Offloader) -> tuple[ModelRequest[Any], bool]:
    """Return the request to send to the model, and whether it is the first that offers the tool."""
    state: Any = request.state
    if state.get(OFFERED):
        return request, False
    # Also the state's messages, because another middleware may have cleared the placeholder from the request.
    messages = {id(message): message for message in (*state.get("messages", ()), *request.messages)}
    if needs_retrieval_tool(messages.values(), logger=logger):
        return request, True
    kept = [tool for tool in request.tools if not (isinstance(tool, RetrievalTool) and tool.reads(offloader))]
    return request.override(tools=kept), False


def _note(response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
    """Return a response that also sets the flag."""
    return ExtendedModelResponse(response, Command(update={OFFERED: True}))
