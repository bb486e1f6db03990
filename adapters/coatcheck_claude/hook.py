"""The hook for ``ClaudeAgentOptions``: after each tool call, it replaces oversized text with placeholders."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from claude_agent_sdk import HookMatcher

from coatcheck import TextBlock, log_failure
from coatcheck.adapting import Arrival, Batch, Delivery, asettle, call_off_loop, enter_scope, is_light, plain_blocks
from coatcheck.hook import BYTES_PER_TOKEN, answer_with, replaced, texts_to_offload, without_copy
from coatcheck_claude.retrieval import READ_BACK, require_offloader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_agent_sdk import HookContext, HookInput, HookJSONOutput
    from claude_agent_sdk.types import HookEvent

    from coatcheck import Offloaded, Offloader, Scope, Truncated
    from coatcheck.hook import Path

__all__ = ("hooks",)

logger: logging.Logger = logging.getLogger("coatcheck_claude")


def hooks(
    offloader: Offloader, *, scope: Scope | None = None, retrieval_tool: str = READ_BACK
) -> dict[HookEvent, list[HookMatcher]]:
    """Return the hooks for ``ClaudeAgentOptions``. Merge them with your own: ``{**hooks(offloader), ...}``.

    The offloader's policies decide on each large text in a response separately.

    Args:
        offloader: decides what leaves, and stores it.
        scope: who may read back. None: the session id. ``server`` cannot know that, so pass the same scope to both.
        retrieval_tool: what the placeholder tells the model to use: the tool of ``server`` or, if the agent has a
            shell, a command such as ``"coatcheck get --storage=/a/folder --scope=user-7"``.

    Raises:
        InvalidRequest: ``offloader`` is not an ``Offloader``, or ``scope`` is not a scope.

    """
    require_offloader(offloader, owner="hooks")
    with enter_scope(scope):  # rejects anything but a scope; also a callable, which nothing would call for ``server``
        pass
    return {"PostToolUse": [HookMatcher(hooks=[_Hook(offloader, scope, retrieval_tool)])]}


@dataclass(frozen=True, slots=True)
class _Hook:
    offloader: Offloader
    scope: Scope | None
    retrieval_tool: str

    async def __call__(self, said: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """Answer as ``coatcheck hook`` does. Never raises: an empty answer leaves the result as it is."""
        event = cast("dict[str, Any]", said)
        try:
            response, texts = await call_off_loop(not is_light(event.get("tool_response")), self._look, event)
        except Exception as error:  # noqa: BLE001 - Python can read JSON a few levels deeper than it can write
            tool = event.get("tool_name")
            log_failure(logger, f"cannot tell what is large in a result of {tool}; it stays as it is", error=error)
            return {}
        if not texts:
            return {}
        new = await asettle(_Response(raw=response, texts=texts, event=event, hook=self), logger=logger)
        return cast("HookJSONOutput", {} if new is response else answer_with(new))

    def _look(self, event: Mapping[str, Any]) -> tuple[Any, Mapping[Path, str]]:
        """Return the response without structured content that repeats it, and its texts that may have to leave."""
        response = without_copy(event.get("tool_response"))
        # A token has at least one byte, so a response of no more bytes than the limit has tokens certainly stays. The
        # offloader decides on the rest.
        settings = self.offloader.settings
        limits = {"limit": settings.max_result_tokens, "hard_limit": BYTES_PER_TOKEN * settings.max_inline_tokens}
        return response, texts_to_offload(str(event.get("tool_name")), event.get("tool_input"), response, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response(Delivery[Any]):
    """One tool's response, and its large texts by path."""

    raw: Any
    texts: Mapping[Path, str]
    event: Mapping[str, Any]
    hook: _Hook

    def look(self) -> Sequence[Batch]:
        """Return each text as an arrival of its own."""
        arrivals = [
            Arrival(
                content=text,
                convert=plain_blocks,
                is_heavy=True,  # putting text back rebuilds the whole response
                tool_name=str(self.event.get("tool_name")),
                native=path,
                tool_args=self.event.get("tool_input") or {},
            )
            for path, text in self.texts.items()
        ]
        batch = Batch(
            arrivals=arrivals,
            offloader=self.hook.offloader,
            scope=self.hook.scope,
            identity=self.event.get("session_id"),
            retrieval_tool=self.hook.retrieval_tool,
        )
        return (batch,)

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> Any:  # noqa: ANN401 - any response
        """Return the response in its own shape, with the text that the model gets instead."""
        return replaced(self.raw, {arrival.native: _joined(outcome) for arrival, outcome in changed})


def _joined(outcome: Offloaded | Truncated) -> str:
    return "\n\n".join(block.text for block in outcome.blocks if isinstance(block, TextBlock))
