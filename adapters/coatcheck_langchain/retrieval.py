"""The tool with which a model reads offloaded content back. Needs only langchain-core.

Only the tool belongs here: its schema, its scope, and how an answer or an error becomes what LangChain expects. The
arguments go to the core as the model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig  # noqa: TC002 - LangChain finds the parameter by its annotation
from langchain_core.tools import StructuredTool, ToolException

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, retrieval_schema
from coatcheck.adapting import (
    Failure,
    RetrievalName,
    ScopeOption,
    WarnOnce,
    aanswer,
    answer,
    check_flags,
    check_name,
    check_scope,
    make_offloader,
    resolve_scope,
)
from coatcheck_langchain.convert import content_of
from coatcheck_langchain.messages import identity_of

if TYPE_CHECKING:
    from coatcheck import Offloader
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("RetrievalTool", "find_tool", "retrieval_tool")

_KNOWN = frozenset(retrieval_schema()["properties"])
_UNKNOWN = "unknown_arguments"


class RetrievalTool(StructuredTool):
    """The retrieval tool. By its class, hooks tell it from a user's tool of the same name."""

    _offloader: Any = None

    def reading(self, offloader: Offloader) -> RetrievalTool:
        """Set the offloader that this tool reads from, and return the tool."""
        self._offloader = offloader
        return self

    def reads(self, offloader: Offloader) -> bool:
        """Return whether this tool reads from ``offloader``."""
        return self._offloader is offloader

    def run(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as LangChain's
        """Do what ``StructuredTool.run`` does, but let no unknown argument break the call."""
        return super().run(_with_unknown_apart(tool_input), *args, **kwargs)

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as LangChain's
        """Do what ``run`` does, without blocking the event loop."""
        return await super().arun(_with_unknown_apart(tool_input), *args, **kwargs)


def retrieval_tool(
    storage: StorageOrOffloader, *, scope: ScopeOption = None, native_media: bool = False, name: str = RETRIEVAL_TOOL
) -> StructuredTool:
    """Return the tool that reads offloaded content back, at most ``max_retrieval_tokens`` at a time.

    If the model makes a mistake, it gets an answer that it can act on, marked as an error.

    Args:
        storage: the ``Offloader`` that stored the results, or its storage.
        scope: which content may be read: a scope, or a callable that takes the ``RunnableConfig``. It must be the scope
            under which results are offloaded; the model never chooses it. If None, that of the ``OffloadMiddleware``,
            ``offload_tool_calls`` or ``offload_tool_node`` around the tool, else the ambient scope, else the
            ``thread_id``, else ``"default"``.
        native_media: return an image or a file itself, as a standard content block, instead of a description.
        name: the name under which the model calls the tool.

    Raises:
        InvalidRequest: an argument is wrong.

    """
    offloader = make_offloader(storage, {})
    check_scope(scope)
    check_flags(native_media=native_media)
    shown = check_name("name", name) or RETRIEVAL_TOOL
    options: dict[str, Any] = {"convert_media": content_of, "native_media": native_media, "retrieval_tool": shown}

    def find(config: RunnableConfig) -> tuple[Offloader, dict[str, Any]]:
        return offloader, {"scope": resolve_scope(scope, config), "identity": identity_of(config)}

    def retrieve(config: RunnableConfig, **arguments: Any) -> Any:  # noqa: ANN401 - content of a tool message
        return _return(answer(partial(find, config), _with_unknown(arguments), **options))

    async def aretrieve(config: RunnableConfig, **arguments: Any) -> Any:  # noqa: ANN401 - content of a tool message
        return _return(await aanswer(partial(find, config), _with_unknown(arguments), **options))

    return RetrievalTool(
        name=shown,
        description=RETRIEVAL_DESCRIPTION,
        args_schema=retrieval_schema(),
        func=retrieve,
        coroutine=aretrieve,
        handle_tool_error=True,
    ).reading(offloader)


def find_tool(offloader: Offloader, expected: str | None, *, own: bool = False) -> RetrievalName:
    """Return the finder of the retrieval tool's name. With ``own``, the tool must read from ``offloader``.

    Raises:
        InvalidRequest: ``expected`` is not a name.

    """
    without = "include_retrieval_tool=False" if own else "retrieval_tool=None"
    own = own or expected is None
    return RetrievalName(
        check_name("retrieval_tool", expected),
        warn=WarnOnce(logging.getLogger("coatcheck_langchain")),
        is_ours=lambda tool: isinstance(tool, RetrievalTool) and (not own or tool.reads(offloader)),
        how_to_add=f"Add retrieval_tool(offloader) of coatcheck_langchain to its tools, or pass {without}",
    )


def _with_unknown_apart(tool_input: str | dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, with unknown ones set apart. A bare ``str`` is the reference."""
    if isinstance(tool_input, str):
        return {"reference": tool_input}
    known = {name: value for name, value in tool_input.items() if name in _KNOWN}
    unknown = {name: value for name, value in tool_input.items() if name not in _KNOWN}
    return {**known, _UNKNOWN: unknown} if unknown else known


def _with_unknown(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as the model sent them, so that the core can name the unknown one."""
    unknown = arguments.pop(_UNKNOWN, {})
    return {**arguments, **unknown}


def _return(answered: object) -> Any:  # noqa: ANN401 - content of a tool message
    if isinstance(answered, Failure):
        raise ToolException(answered.text) from answered.error
    return answered
