"""Whether the model is offered the retrieval tool in every request, or only once there is something to read back.

Only the decision belongs here. The adapter knows where its framework shows the tools of a request, and where it keeps a
flag with the conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from coatcheck.adapting.compaction import find_references_in
from coatcheck.core.errors import InvalidRequest
from coatcheck.engine.failures import log_failure

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable

__all__ = ("OFFERED", "OfferTool", "is_offered_late", "needs_retrieval_tool")

OfferTool: TypeAlias = Literal["always", "when needed"]
"""When the model is offered the retrieval tool: in every request, or from the first offloaded result on."""

OFFERED = "coatcheck_offered"
"""The key of the flag, in the framework's own state of a conversation, that says that the tool was offered. It is
never cleared: compaction may remove every placeholder, but the model may still know their references."""


def is_offered_late(offer_tool: OfferTool) -> bool:
    """Return whether the tool is offered only when it is needed.

    Raises:
        InvalidRequest: it is neither of the two values.

    """
    values = get_args(OfferTool)
    if offer_tool in values:
        return offer_tool != "always"
    msg = f"offer_tool must be {' or '.join(map(repr, values))}, not {offer_tool!r}"
    raise InvalidRequest(msg)


def needs_retrieval_tool(messages: Iterable[object], *, logger: logging.Logger) -> bool:
    """Return whether messages name a reference, so that the model needs the retrieval tool. Never raises.

    Args:
        messages: those of a framework, or JSON values, as for ``keep_references``.
        logger: gets a warning if a message cannot be read; the tool is then offered.

    """
    try:
        return any(find_references_in(messages))
    except Exception as error:  # noqa: BLE001 - the host's message must not end the agent
        log_failure(logger, "coatcheck failed to look for references, so the retrieval tool is offered", error=error)
        return True
