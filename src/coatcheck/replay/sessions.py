"""The session files of coding agents: which lines were sent to the model, and where a summary began.

Claude Code (``~/.claude/projects``) wraps messages of Anthropic's API, Codex (``~/.codex/sessions``) items of OpenAI's
Responses API. Both also write lines for themselves, whose types change from version to version, so a line without a
message is skipped. After a compaction the model got the summary in place of everything before it, so a new conversation
begins there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("sessions_in",)

_KNOWN = re.compile("^(message|reasoning)$|_(call|output)$")
"""The types of items that Codex sent to the model and got from it. It also writes other items."""

_NOT_SENT = "<synthetic>"
"""The model name in messages that Claude Code wrote itself, such as an API error."""

_Line = tuple[str, bool, list[Any]]
"""The agent whose line it is, whether it replaces everything before it, and its messages."""


def sessions_in(lines: Iterable[object]) -> list[list[Any]]:
    """Return the conversations in the lines of a session, as lists of messages; none if it is not a session.

    The model's turns are in pieces: each line holds one block of a turn, as a message.
    """
    found: list[list[Any]] = []
    current: dict[str, list[Any]] = {}
    for agent, is_summary, messages in map(_read, lines):
        if messages and (is_summary or agent not in current):
            current[agent] = []
            found.append(current[agent])
        if messages:
            current[agent] += messages
    return found


def _read(line: object) -> _Line:
    match line:
        case {"type": "user" | "assistant", "sessionId": str(), "message": Mapping() as message, **more}:
            agent = str(more.get("agentId") or "subagents") if more.get("isSidechain") is True else ""
            is_sent = message.get("model") != _NOT_SENT
            return agent, more.get("isCompactSummary") is True, [message] if is_sent else []
        case {"type": "response_item", "payload": item} if _was_sent(item):
            return "", False, [item]
        case {"type": "compacted", "payload": Mapping() as summary}:
            return "", True, list(_after(summary))
        case _:
            return "", False, []


def _after(summary: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the messages that Codex continues with after a compaction."""
    history = summary.get("replacement_history")
    if isinstance(history, list) and history:
        yield from filter(_was_sent, history)
    elif isinstance(summary.get("message"), str):
        yield {"role": "user", "content": summary["message"]}


def _was_sent(item: object) -> bool:
    """Return whether an item belongs to the Responses API. A message may lack its type."""
    return isinstance(item, Mapping) and _KNOWN.search(str(item.get("type", "message"))) is not None
