"""Make a preview as the engine does, and check what holds for every preview."""

from __future__ import annotations

from coatcheck import TiktokenCounter
from coatcheck.core.preview import Previewed, preview

__all__ = ("TIKTOKEN", "checked_preview")

TIKTOKEN = TiktokenCounter()


def checked_preview(content: Previewed, budget: int) -> str:
    """Return the preview of ``content``, after checking that no kind raised and that it fits ``budget`` tokens."""
    shown = preview(content, TIKTOKEN, budget=budget)

    assert not content.failures
    assert TIKTOKEN.count(shown) <= budget
    return shown
