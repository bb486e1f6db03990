"""The tool with which a model reads offloaded content back.

Only the tool belongs here: its schema, its scope, and how an answer or an error becomes what Haystack expects. The
arguments go to the core as the model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from haystack.components.agents.state import State  # Haystack finds the parameter by its annotation
from haystack.tools.tool import Tool

from coatcheck import (
    RETRIEVAL_DESCRIPTION,
    RETRIEVAL_TOOL,
    InvalidRequest,
    MediaBlock,
    retrieval_schema,
)
from coatcheck.adapting import Failure, ScopeOption, aanswer, answer, check_flags
from coatcheck_haystack.compat.serialization import source_from_dict, source_to_dict
from coatcheck_haystack.convert import content_of
from coatcheck_haystack.options import Source, StoreOrOffloader, source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from coatcheck import Block, Offloader, OffloaderOptions
    from coatcheck_haystack.convert import Content
    from coatcheck_haystack.hook import ToolResultOffloadHook

__all__ = ("RetrievalTool",)


class RetrievalTool(Tool):
    """Reads offloaded content back, at most ``max_retrieval_tokens`` at a time. The same tool in every framework.

    If the model makes a mistake, it gets an answer that it can act on, never an exception, so
    ``raise_on_tool_invocation_failure`` does not end the run. The run's ``State``, which Haystack injects over whatever
    the model sent, or the host decides which content may be read; the model never does.
    """

    __module__ = "haystack_integrations.hooks.coatcheck"  # Haystack loads it from there without an allowlist

    def __init__(
        self,
        store: StoreOrOffloader | ToolResultOffloadHook,
        *,
        scope: ScopeOption = None,
        name: str = RETRIEVAL_TOOL,
        native_media: bool = False,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure the tool.

        Args:
            store: the hook whose results to read, with its scope and its options; or the store, storage or
                ``Offloader`` that the hook was made with.
            scope: as for the hook. Do not pass it together with a hook.
            name: the name under which the model calls the tool.
            native_media: return an image or a file itself instead of a description. Not every chat generator can send
                it: ``OpenAIChatGenerator`` raises on an image in a tool result.
            **options: those of ``Offloader`` that concern reading, such as ``max_retrieval_tokens``; only with a store.

        Raises:
            InvalidRequest: an argument is wrong, or a hook or an ``Offloader`` was passed together with options.

        """
        shared = getattr(store, "source", None)
        if isinstance(shared, Source) and (options or scope is not None):
            msg = f"the hook has its own {', '.join(options) or 'scope'}: pass its store instead, or set it on the hook"
            raise InvalidRequest(msg)
        if not isinstance(name, str) or not name:
            msg = f"name must be a non-empty str, not {name!r}"
            raise InvalidRequest(msg)
        self.source: Source
        if isinstance(shared, Source):
            self.source = shared
        else:
            given = cast("StoreOrOffloader", store)
            self.source = source_of(given, options, scope=scope, owner=RetrievalTool)
        check_flags(native_media=native_media)
        self.native_media = native_media
        super().__init__(
            name=name,
            description=RETRIEVAL_DESCRIPTION,
            parameters=retrieval_schema(),
            function=self._retrieve,
            async_function=self._aretrieve,
            outputs_to_string={"raw_result": True} if native_media else None,
        )

    def invoke(self, /, **arguments: Any) -> Any:  # noqa: ANN401 - as Tool's
        """Answer a call, even if the model sends an argument called ``self``, which makes other tools fail."""
        return self._retrieve(**arguments)

    async def invoke_async(self, /, **arguments: Any) -> Any:  # noqa: ANN401 - as Tool's
        """Do what ``invoke`` does, without blocking the event loop."""
        return await self._aretrieve(**arguments)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``from_dict`` needs.

        Raises:
            SerializationError: the store, the scope or an option cannot be serialized.

        """
        data = {"name": self.name, "native_media": self.native_media, **source_to_dict(self.source, "RetrievalTool")}
        return {"type": f"{self.__module__}.RetrievalTool", "data": data}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RetrievalTool:
        """Return the tool that ``to_dict`` serialized."""
        return cls(**source_from_dict(data["data"]))

    def __deepcopy__(self, memo: object) -> RetrievalTool:
        """Return the tool itself, because it never changes, and a copy would not share the storage's locks."""
        return self

    def _retrieve(self, /, state: State | None = None, **arguments: Any) -> Any:  # noqa: ANN401
        return _said(answer(partial(self._source_of, state), arguments, **self._options()))

    async def _aretrieve(self, /, state: State | None = None, **arguments: Any) -> Any:  # noqa: ANN401
        return _said(await aanswer(partial(self._source_of, state), arguments, **self._options()))

    def _source_of(self, state: object) -> tuple[Offloader, dict[str, Any]]:
        run = state if isinstance(state, State) else None  # a direct caller may pass anything
        owner = {"scope": self.source.scope_of(run), "identity": self.source.identity_of(run)}
        return self.source.offloader_of(run), owner

    def _options(self) -> dict[str, Any]:
        return {"convert_media": _media, "native_media": self.native_media, "retrieval_tool": self.name}


def _media(blocks: Sequence[Block]) -> Content:
    """Return an answer that holds media. Each file gets a unique name, because Bedrock refuses duplicates."""
    return content_of(
        [replace(block, name=f"file-{uuid4().hex}") if isinstance(block, MediaBlock) else block for block in blocks]
    )


def _said(answered: object) -> Any:  # noqa: ANN401 - what a Haystack tool returns
    return answered.text if isinstance(answered, Failure) else answered
