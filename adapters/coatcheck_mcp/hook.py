"""The hook: it looks at the result of a tool call on its way from an MCP server to the client.

Both the middleware for FastMCP servers and the proxy call it. The guard is in ``coatcheck.adapting``; no server runs
inside it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coatcheck import Never, Offloaded, Offloader, OverChars, asks_to_keep, policy_of
from coatcheck.adapting import Arrival, Batch, Delivery, asettle
from coatcheck_mcp.convert import (
    Result,
    blocks_of,
    file_size,
    is_large,
    kept_of,
    plain_blocks_of,
    rewrite,
    side_size,
    texts_of,
    whole_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck import Policy, Scope, Truncated

__all__ = ("Call", "exceeds_hard_limit", "is_too_large_beside", "logger", "may_leave", "offload_result")

logger: logging.Logger = logging.getLogger("coatcheck_mcp")

DECLARED_SIZE = "anthropic/maxResultSizeChars"
"""The key in the ``_meta`` of a tool or a result by which a server's author declares how large a result may be, in
characters, and still stay."""

APPS = "io.modelcontextprotocol/ui"
"""The extension of clients that show the user interfaces of servers (MCP Apps)."""

MAX_DECLARED = 500_000
"""Characters. The largest declared size that counts. Claude Code respects it up to this; more would let a server undo
the user's limit."""

CHARACTERS_PER_TOKEN = 4
"""The usual estimate, for what is in no block. That is not counted exactly, because there is usually next to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is known about the call that a result answers."""

    tool_name: str

    arguments: Mapping[str, Any] = field(default_factory=dict)

    meta: Mapping[str, Any] = field(default_factory=dict)
    """The ``_meta`` of the request. A client that sends ``{"coatcheck": "keep"}`` gets the result as it is."""

    tool_meta: Mapping[str, Any] = field(default_factory=dict)
    """The ``_meta`` of the tool's definition."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """What the client can do."""

    scope: Scope | Exception | None = None
    """The scope that the user chose; an error if nobody can know whom a result is for."""

    identity: Scope | None = None
    """The client's scope, as the transport knows it, for when the user chose none."""

    policy: Policy | None = None
    """The user's policy for this tool, if it is not one of the offloader's policies."""

    retrieval_tool: str
    """The name by which the client knows the retrieval tool."""


@dataclass(frozen=True, kw_only=True)
class _Delivery(Delivery[Result]):
    raw: Result
    call: Call
    offloader: Offloader

    @property
    def is_heavy(self) -> bool:
        return is_large(self.raw)

    def look(self) -> Sequence[Batch]:
        call, error = self.call, bool(self.raw.get("isError"))
        if _is_for_app(call):
            return ()
        policy, texts = _policy_of(self.offloader, call, self.raw), texts_of(self.raw)
        # Links and annotations are for the client, which may show them to the model, so the hard limit applies to them.
        whole = is_too_large_beside(self.raw, self.offloader)
        keep = self.offloader.keep_if_small
        if not whole and policy is None and texts and keep(texts, tool_name=call.tool_name, is_error=error):
            return ()
        files = 0 if texts is not None else file_size(self.raw)
        arrival = Arrival(
            content=self.raw,
            convert=whole_of if whole else blocks_of,
            convert_plainly=whole_of if whole else plain_blocks_of,
            native=kept_of(self.raw, whole=whole),
            tool_name=call.tool_name,
            tool_args=call.arguments,
            is_error=error,
            is_heavy=texts is None or self.raw.get("structuredContent") is not None,
            policy=policy,
            # The core prices a file as one page. Above the hard limit, its base64 counts, whether or not it can be
            # stored.
            measured_tokens=(lambda: files // CHARACTERS_PER_TOKEN)
            if exceeds_hard_limit(files, self.offloader)
            else None,
        )
        return (
            Batch(
                arrivals=[arrival],
                offloader=self.offloader,
                scope=call.scope,
                identity=call.identity,
                retrieval_tool=call.retrieval_tool,
            ),
        )

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> Result:
        ((arrival, outcome),) = changed
        if isinstance(outcome, Offloaded):
            stored = ", ".join(reference.id for reference in outcome.references)
            words = "a result of %s, about %s tokens, is stored as %s"
            logger.info(words, self.call.tool_name, f"{outcome.tokens.tokens:,}", stored)
        sent = rewrite(arrival.native, outcome)
        was_structured = self.raw.get("structuredContent") is not None
        if was_structured and not may_leave(self.call.tool_name, self.offloader, self.call.policy):
            # The tool's schema is advertised, and clients refuse a result that breaks it, but an error need not match.
            sent["isError"] = True
        return sent


async def offload_result(result: Result, call: Call, offloader: Offloader) -> Result:
    """Return what the client gets: the same object if the result stays. Never raises."""
    return await asettle(_Delivery(raw=result, call=call, offloader=offloader), logger=logger)


def _hard_limit(offloader: Offloader) -> int:
    """Return the hard limit in characters, for what is not counted in tokens."""
    return CHARACTERS_PER_TOKEN * offloader.settings.max_inline_tokens


def exceeds_hard_limit(characters: int, offloader: Offloader) -> bool:
    """Return whether this many characters, not counted in tokens, are too many for any conversation."""
    return characters > _hard_limit(offloader)


def is_too_large_beside(result: Result, offloader: Offloader) -> bool:
    """Return whether the rest of a result, next to its content, is too much for any conversation."""
    return exceeds_hard_limit(side_size(result, up_to=_hard_limit(offloader)), offloader)


def may_leave(tool_name: str, offloader: Offloader, policy: Policy | None = None) -> bool:
    """Return whether results of a tool may leave, in which case it must not advertise an output schema.

    A client that validates against the schema would refuse a result without structured content.
    """
    return not isinstance(policy or policy_of(tool_name, offloader.settings), Never)


def _is_for_app(call: Call) -> bool:
    """Return whether the result is only for a user interface of the server: models are not offered such tools.

    A client that shows no such interfaces offers its model every tool.
    """
    extensions, ui = call.capabilities.get("extensions"), call.tool_meta.get("ui")
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    return isinstance(extensions, Mapping) and APPS in extensions and visibility == ["app"]


def _policy_of(offloader: Offloader, call: Call, result: Result) -> Policy | None:
    """Return the policy of this call; None: the configured one."""
    if asks_to_keep(call.meta):
        return Never()
    if call.policy is not None:
        return call.policy
    declared = (result.get("_meta") or {}).get(DECLARED_SIZE) or call.tool_meta.get(DECLARED_SIZE)
    if not isinstance(declared, int) or isinstance(declared, bool) or declared <= 0:
        return None
    settings = offloader.settings
    # What the user says about a tool counts more than what its author says.
    is_unnamed = policy_of(call.tool_name, settings) is settings.default_rule
    return OverChars(min(declared, MAX_DECLARED)) if is_unnamed else None
