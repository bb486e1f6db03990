"""The hook for ``ClaudeAgentOptions``: after each tool, what is too large in its response becomes a placeholder."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from claude_agent_sdk import HookMatcher

from coatcheck import Kept, TextBlock, log_failure
from coatcheck.adapting import check_scope
from coatcheck.hook import answer_with, leaving, replaced
from coatcheck_claude.retrieval import READ_BACK

if TYPE_CHECKING:
    from claude_agent_sdk import HookContext, HookInput, HookJSONOutput
    from claude_agent_sdk.types import HookEvent

    from coatcheck import Offloader, Scope

__all__ = ("hooks",)

_log = logging.getLogger("coatcheck.claude")


def hooks(
    offloader: Offloader, *, scope: Scope | None = None, retrieval_tool: str = READ_BACK
) -> dict[HookEvent, list[HookMatcher]]:
    """Return the hooks for ``ClaudeAgentOptions``; put them next to your own: ``{**hooks(offloader), ...}``.

    The offloader's policies decide about each large text of a response by itself.

    Args:
        offloader: decides and stores.
        scope: who may read back. None: the id of the session. ``server`` cannot know that, so give both the same scope.
        retrieval_tool: what the placeholder names: the tool of ``server``; or, if the agent has a shell, a command such
            as ``"coatcheck get --storage=/a/folder --scope=user-7"``.

    Raises:
        InvalidRequest: ``scope`` is no scope.

    """
    check_scope(scope)
    return {"PostToolUse": [HookMatcher(hooks=[_Hook(offloader, scope, retrieval_tool)])]}


@dataclass(frozen=True, slots=True)
class _Hook:
    offloader: Offloader
    scope: Scope | None
    retrieval_tool: str

    async def __call__(self, said: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """Answer as ``coatcheck hook`` does. Never raises: without an answer the result stays as it is."""
        event = cast("dict[str, Any]", said)
        tool, response = str(event.get("tool_name")), event.get("tool_response")
        # A token has a byte or more, so what is within that stays for certain; the offloader decides about the rest.
        texts = leaving(tool, event.get("tool_input"), response, limit=self.offloader.settings.max_result_tokens)
        found = {path: await self._offload(text, event) for path, text in texts.items()}
        new = {path: text for path, text in found.items() if text is not None}
        return cast("HookJSONOutput", answer_with(replaced(response, new)) if new else {})

    async def _offload(self, text: str, event: dict[str, Any]) -> str | None:
        """Return what takes the place of a text; None if it stays."""
        blocks, tool = [TextBlock(text)], str(event.get("tool_name"))
        session = event.get("session_id")
        try:
            outcome = await self.offloader.aoffload(
                blocks,
                tool_name=tool,
                tool_args=event.get("tool_input"),
                scope=self.scope,
                identity=session,
                retrieval_tool=self.retrieval_tool,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the hard limit holds and the agent goes on
            log_failure(_log, f"a result of {tool!r} was not offloaded", error=error)
            last = await self.offloader.alast_resort(
                blocks, tool_name=tool, scope=self.scope, identity=session, retrieval_tool=self.retrieval_tool
            )
            if last is None:
                return None
            return _joined(last.blocks)
        return None if isinstance(outcome, Kept) else _joined(outcome.blocks)


def _joined(blocks: Any) -> str:  # noqa: ANN401 - of any outcome
    return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))
