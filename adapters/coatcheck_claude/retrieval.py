"""The retrieval tool, in an MCP server that the SDK runs inside this process. ``hook`` decides what is offloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, create_sdk_mcp_server

from coatcheck import (
    RETRIEVAL_DESCRIPTION,
    RETRIEVAL_TOOL,
    InvalidRequest,
    MediaBlock,
    Offloader,
    TextBlock,
    retrieval_schema,
)
from coatcheck import scope as ambient_scope
from coatcheck.adapting import Failure, aanswer, encode_base64

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck import Block, Scope

__all__ = ("READ_BACK", "SERVER", "require_offloader", "server")

SERVER = "coatcheck"
"""The key of ``server`` in ``mcp_servers``."""

READ_BACK = f"mcp__{SERVER}__{RETRIEVAL_TOOL}"
"""The tool's name as the model knows it, for ``allowed_tools``."""


def server(offloader: Offloader, *, scope: Scope) -> McpSdkServerConfig:
    """Return the server, for ``mcp_servers={SERVER: ...}``. Its one tool reads back what ``hooks`` stored.

    Args:
        offloader: the same as for ``hooks``.
        scope: the same as for ``hooks``, because the SDK does not tell a tool which session calls it.

    Raises:
        InvalidRequest: ``offloader`` is not an ``Offloader``, or ``scope`` is not a scope.

    """
    require_offloader(offloader, owner="server")
    with ambient_scope(scope):  # rejects anything but a scope; also None, for which ``hooks`` would use the session id
        pass

    async def read(arguments: Mapping[str, Any]) -> dict[str, Any]:
        found = await aanswer(
            lambda: (offloader, {"scope": scope}),
            arguments,
            convert_media=_content_of,
            native_media=True,
            retrieval_tool=READ_BACK,
        )
        if isinstance(found, Failure):
            return {"content": [{"type": "text", "text": found.text}], "is_error": True}
        return {"content": [{"type": "text", "text": found}] if isinstance(found, str) else found}

    tool = SdkMcpTool(RETRIEVAL_TOOL, RETRIEVAL_DESCRIPTION, retrieval_schema(), read)
    return _Loaded(**create_sdk_mcp_server(SERVER, tools=[tool]), alwaysLoad=True)


def require_offloader(offloader: object, *, owner: str) -> None:
    """Check that the user passed an offloader. A storage, which the other adapters also take, is not enough.

    Raises:
        InvalidRequest: ``offloader`` is not an ``Offloader``.

    """
    if not isinstance(offloader, Offloader):
        msg = f"{owner} needs an Offloader, such as Offloader(FileStorage('./artifacts')), not {offloader!r}"
        raise InvalidRequest(msg)


class _Loaded(McpSdkServerConfig):
    """A server whose tool definitions are in every request.

    Otherwise, Claude Code shows the model only their names, so it has to search for the definition before it can read.
    """

    alwaysLoad: bool  # noqa: N815 - the client's own key, which the SDK passes on


def _content_of(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return MCP content. Media other than images are only described, since the SDK passes only text and images."""
    return [_item_of(block) for block in blocks if isinstance(block, TextBlock | MediaBlock)]


def _item_of(block: TextBlock | MediaBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if not block.media_type.startswith("image/"):
        return {"type": "text", "text": f"[{block.media_type}, {len(block.data):,} bytes]"}
    return {"type": "image", "data": encode_base64(block.data), "mimeType": block.media_type}
