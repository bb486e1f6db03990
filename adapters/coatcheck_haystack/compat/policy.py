"""The policy that Haystack lacks: a threshold in tokens. The others are Haystack's own.

Only the policy belongs here. In our hook, its rule decides, and counts media by kind. Haystack's hooks ask it about a
``str``, like any other policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haystack.core.serialization import default_to_dict
from haystack.hooks.tool_result_offloading import OffloadPolicy

from coatcheck import OverTokens, TiktokenCounter

if TYPE_CHECKING:
    from haystack.components.agents.state import State

__all__ = ("OffloadOverTokens",)


class OffloadOverTokens(OffloadPolicy):
    """Offload a result of more than ``threshold`` tokens. Media count by kind, not by the length of their base64."""

    __module__ = "haystack_integrations.hooks.coatcheck"  # Haystack loads it from there without an allowlist

    def __init__(self, threshold: int) -> None:
        """Set the threshold. A result of exactly that many tokens stays.

        Raises:
            InvalidRequest: ``threshold`` is not a whole number above 0.

        """
        self.rule: OverTokens = OverTokens(threshold)

    @property
    def threshold(self) -> int:
        """The threshold, in tokens."""
        return self.rule.threshold

    def should_offload(self, tool_name: str, result: str, state: State) -> bool:  # noqa: ARG002 - as Haystack asks
        """Answer Haystack's own hooks. They pass only a ``str``, so base64 counts as text."""
        return TiktokenCounter().exceeds(result, self.threshold)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``from_dict`` needs."""
        return default_to_dict(self, threshold=self.threshold)
