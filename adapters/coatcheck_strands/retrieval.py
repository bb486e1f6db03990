"""The tool with which a model reads offloaded content back.

Only the tool belongs here: its schema, its scope, and how an answer or an error becomes what Strands expects. The
arguments go to the core as the model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from strands.tools import PythonAgentTool

from coatcheck import (
    RETRIEVAL_DESCRIPTION,
    RETRIEVAL_TOOL,
    JsonBlock,
    MediaBlock,
    ReferenceExpired,
    ReferenceNotFound,
    TextBlock,
    asks_for_list,
    choose_scope,
    failure_for_model,
    retrieval_arguments,
    retrieval_schema,
)
from coatcheck.adapting import Failure, ScopeOption, check_flags, resolve_scope
from coatcheck_strands.compat.calling import calling
from coatcheck_strands.compat.cycles import used_by
from coatcheck_strands.convert import content_of
from coatcheck_strands.options import Call, identity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strands import Agent
    from strands.types.tools import ToolResult, ToolResultContent, ToolSpec, ToolUse

    from coatcheck import Block, Content, Offloader
    from coatcheck_strands.offloaders import Offloaders

__all__ = ("RetrievalTool",)

_SHOWN = {
    "application": {"csv", "doc", "docx", "html", "md", "pdf", "txt", "xls", "xlsx"},
    "image": {"gif", "jpeg", "jpg", "png", "webp"},
    "video": {"flv", "mkv", "mov", "mp4", "mpeg", "mpg", "three_gp", "webm", "wmv"},
}
"""Media formats that Bedrock accepts in a tool result. A refused one would stay, and fail every later turn too."""


class Context(Protocol):
    """The members of Strands' ``ToolContext`` that are used here."""

    agent: Agent
    tool_use: ToolUse
    invocation_state: dict[str, Any]


class RetrievalTool(PythonAgentTool):
    """The retrieval tool of one plugin: a tool for the model, and an async callable for the host."""

    def __init__(self, offloaders: Offloaders, *, scope: ScopeOption, native_media: bool, whole: bool) -> None:
        """Read from ``offloaders``. With ``whole``, return the whole content if the call selects nothing."""
        check_flags(native_media=native_media)
        spec: ToolSpec = {
            "name": RETRIEVAL_TOOL,
            "description": RETRIEVAL_DESCRIPTION,
            "inputSchema": {"json": retrieval_schema()},
        }
        super().__init__(RETRIEVAL_TOOL, spec, self._answer)
        self._offloaders = offloaders
        self._scope = scope
        self._native_media = native_media
        self._whole = whole

    async def __call__(
        self,
        reference: str,
        tool_context: Context | None = None,
        *,
        pattern: str | None = None,
        line_range: Mapping[str, int] | None = None,
        context_lines: int | None = None,
        query: str | None = None,
        offset: int | None = None,
    ) -> str | dict[str, Any]:
        """Answer the host like the model: with a ``str``, or with a tool result if the content is not text.

        Without a context, the storage is the plugin's own, and the scope does not come from an agent.

        Raises:
            ValueError: there is no such content, or the selection is wrong or does not fit the content.

        """
        given = {
            "reference": reference,
            "pattern": pattern,
            "line_range": line_range,
            "context_lines": context_lines,
            "query": query,
            "offset": offset,
        }
        call = Call(agent=None)
        if tool_context is not None:
            state = tool_context.invocation_state
            call = Call(agent=tool_context.agent, tool_use=tool_context.tool_use, invocation_state=state)
        content = await self._try(call, given)
        if isinstance(content, Failure):
            raise ValueError(content.text) from content.error  # noqa: TRY004 - as Strands' own
        only = content[0].get("text") if len(content) == 1 else None
        return only if only is not None else {"status": "success", "content": content}

    async def _answer(self, tool_use: ToolUse, /, **state: Any) -> ToolResult:  # noqa: ANN401 - the invocation's state
        call = Call(agent=state.get("agent"), tool_use=tool_use, invocation_state=state)
        content = await self._try(call, tool_use.get("input"))
        if isinstance(content, Failure):
            said: list[ToolResultContent] = [{"text": f"Error: {content.text}"}]  # Strands' wording for every tool
            return {"toolUseId": tool_use["toolUseId"], "status": "error", "content": said}
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": content}

    async def _try(self, call: Call, arguments: object) -> list[ToolResultContent] | Failure:
        try:
            return await self._read(call, arguments)
        except Exception as error:  # noqa: BLE001 - the model is told about any error, and the agent continues
            return Failure(text=failure_for_model(error), error=error)

    async def _read(self, call: Call, arguments: object) -> list[ToolResultContent]:
        """Return what the arguments select, as the content of a tool result."""
        selected = retrieval_arguments(arguments)
        reference = selected.pop("reference")
        if selected.keys() == {"context_lines"}:  # Strands' way to ask for the first lines
            lines = selected["context_lines"]
            selected = {"line_range": {"start": 1, "end": max(1, lines) if isinstance(lines, int) else lines}}
        scope, identity = resolve_scope(self._scope, call), identity_of(call.agent)
        owner = {"scope": scope, "identity": identity}
        served = self._offloaders.of(call.agent)
        with used_by(call.agent), calling(call.agent, partial(choose_scope, scope, identity, required=False)):
            try:
                blocks = await self._blocks(served.offloader, reference, selected=selected, owner=owner)
            except ReferenceExpired:
                raise
            except ReferenceNotFound:
                if served.old is None:
                    raise
                blocks = await self._blocks(served.old, reference, selected=selected, owner=owner)
        return content_of(blocks, name=_document_name(str(reference), call.tool_use))

    async def _blocks(
        self,
        offloader: Offloader,
        reference: Any,  # noqa: ANN401 - whatever a model sends
        *,
        selected: dict[str, Any],
        owner: dict[str, Any],
    ) -> tuple[Block, ...]:
        is_list = asks_for_list(reference)
        if self._whole and not selected and not is_list:
            whole = _block_of(await offloader.aload(reference, **owner))
            if _can_be_shown(whole):
                return (whole,)
        found = await offloader.aretrieve(reference, **owner, **selected, native_media=self._native_media)
        if not _can_be_shown(found.blocks[0]):
            found = await offloader.aretrieve(reference, **owner)
        if is_list or selected or found.next_call is not None or isinstance(found.blocks[0], MediaBlock):
            return found.blocks
        block = _block_of(await offloader.aload(reference, **owner))  # small enough that the answer holds all of it
        return (block,) if isinstance(block, JsonBlock) else found.blocks


def _block_of(content: Content) -> Block:
    """Return whole content as a block of its original kind."""
    if content.content_type == "application/json":
        with suppress(ValueError):  # the host may have stored anything under this type
            value = json.loads(content.data)
            if isinstance(value, dict):  # Bedrock refuses any other JSON value
                return JsonBlock(value)
        return TextBlock(content.text)
    if content.content_type.startswith("text/"):
        return TextBlock(content.text)
    return MediaBlock(content.data, content.content_type)


def _can_be_shown(block: Block) -> bool:
    """Return whether a block may be part of a tool result."""
    if not isinstance(block, MediaBlock):
        return True
    kind, _, form = block.media_type.partition("/")
    return form in _SHOWN.get(kind, ())


def _document_name(reference: str, tool_use: Mapping[str, Any]) -> str:
    """Return a name for a document. Bedrock refuses most punctuation, and a name used twice in a conversation."""
    name = re.sub(r"[^a-zA-Z0-9]+", "-", reference)[:100].strip("-") or "document"
    call_id = tool_use.get("toolUseId")
    if not isinstance(call_id, str):  # a host's own call
        return name
    return f"{name} {sha256(call_id.encode(errors='replace')).hexdigest()[:8]}"
