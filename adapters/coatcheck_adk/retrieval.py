"""The tool with which a model reads offloaded content back.

Only the tool belongs here: its declaration, and how an answer becomes a result. The arguments go to the core as the
model sent them, because the core validates them and words the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.genai.types import FunctionDeclaration

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, retrieval_schema
from coatcheck.adapting import Failure, ScopeOption, aanswer, check_flags, resolve_scope
from coatcheck_adk.convert import result_of
from coatcheck_adk.hook import identity_of

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext

    from coatcheck import Offloader

__all__ = ("RetrievalTool",)


class RetrievalTool(BaseTool):
    """Reads back what ``offloader`` stored. Its class tells it from a user's tool of the same name."""

    def __init__(self, offloader: Offloader, *, scope: ScopeOption, native_media: bool) -> None:
        check_flags(native_media=native_media)
        super().__init__(name=RETRIEVAL_TOOL, description=RETRIEVAL_DESCRIPTION)
        self.offloader = offloader
        self._scope = scope
        self._native_media = native_media

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=retrieval_schema()
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Answer a call from the model."""
        answered = await aanswer(
            lambda: (
                self.offloader,
                {"scope": resolve_scope(self._scope, tool_context), "identity": identity_of(tool_context)},
            ),
            args,
            convert_media=result_of,
            native_media=self._native_media,
            retrieval_tool=self.name,  # a copy may have another name
        )
        if isinstance(answered, Failure):
            return {"error": answered.text}
        return {"result": answered} if isinstance(answered, str) else answered
