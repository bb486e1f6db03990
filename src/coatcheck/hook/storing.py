"""Offloads the strings of one response. Loads the library, which a small result never needs, but no vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from coatcheck.core.blocks import Kept, TextBlock
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.policy import Always
from coatcheck.core.tokens import ByteCounter
from coatcheck.hook.command import get_command
from coatcheck.offloader import Offloader
from coatcheck.storage.file import FileStorage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.hook.options import Options

__all__ = ("HookStorage", "make_offloader", "offload")


class HookStorage(FileStorage):
    """A folder that is not tried again after a timeout: each try may wait ten seconds, and a client waits for them."""

    _late: TimeoutError | None = None

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save, unless an earlier save timed out."""
        if self._late is not None:
            raise self._late
        try:
            super().save(key, content, content_type=content_type, metadata=metadata)
        except TimeoutError as error:
            self._late = error
            raise


def make_offloader(options: Options) -> Offloader:
    """Return the offloader that stores the strings of one response."""
    storage = HookStorage(
        options.folder,
        max_age=options.max_age,
        max_bytes=options.max_bytes,
        max_scope_bytes=options.max_scope_bytes,
    )
    preview = options.preview_tokens
    return Offloader(
        storage,
        token_counter=ByteCounter(),  # the vocabulary would take longer to load than all the rest
        max_result_tokens=options.max_result_tokens,
        max_inline_tokens=max(options.max_inline_tokens, options.max_result_tokens),
        preview_tokens=preview if preview is None or preview < options.max_result_tokens else None,
    )


def offload(text: str, offloader: Offloader, *, tool: str, session: str, options: Options) -> str | None:
    """Store a string in the scope of a session; return its replacement, or None if it stays.

    If storing fails, or there is no session, a string within the hard limit stays, and a larger one is cut to head and
    tail.
    """
    blocks = [TextBlock(text)]
    outcome = (
        offloader.offload(
            blocks,
            tool_name=tool,
            scope=session,
            policy=Always(),
            retrieval_tool=options.retrieval_tool or get_command(options.folder, session),
        )
        if session
        else offloader.last_resort(blocks, tool_name=tool, scope=_no_scope)
    )
    if outcome is None or isinstance(outcome, Kept):
        return None
    new = "\n\n".join(block.text for block in outcome.blocks if isinstance(block, TextBlock))
    return new if len(new) < len(text) else None


def _no_scope() -> NoReturn:
    msg = "the event names no session, or no tool"
    raise InvalidRequest(msg, for_host=True)
