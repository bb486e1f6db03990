"""What an offloader was told: its arguments, checked once, with their defaults filled in.

A knob belongs here with its check and its default; what it does belongs where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.plan import MINIMUM_BUDGET, Limits
from coatcheck.core.policy import OverTokens, Policies, require_flag, require_positive
from coatcheck.core.tokens import TiktokenCounter, TokenCounter, for_any_text

if TYPE_CHECKING:
    from coatcheck.core.policy import Policy

__all__ = ("Configuration", "configure")

NETWORK_THREADS = 16
"""For each offloader: one whose storage hangs takes no thread from another's. Threads that wait for a network hold no
lock; sixteen keep a storage busy without flooding it."""

DEFAULT_PREVIEW_TOKENS = 1_000
"""Tokens: enough for the shape of most results; the same as Strands' own offloader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that an offloader was told, apart from its storage and its callback."""

    counter: TokenCounter
    """Counts and slices all texts."""

    policies: Policies
    """Which results leave, by tool."""

    limits: Limits
    """The numbers that a decision about one result needs."""

    retrieval_tokens: int
    """Tokens of one read-back at most."""

    step_tokens: int | None
    """Tokens of all results of one step together, or None for no limit."""

    max_query_bytes: int
    """Bytes of JSON that may be queried."""

    show_path: bool
    """Whether the notice names the local file."""

    require_scope: bool
    """Whether the shared default scope is refused."""

    network_threads: int
    """How many calls to a storage that is neither async nor local run at once."""

    queue_seconds: float
    """How long such a call may wait for a thread."""


def configure(
    *,
    max_result_tokens: int,
    preview_tokens: int | None,
    policies: Mapping[str | tuple[str, ...], Policy] | None,
    token_counter: TokenCounter | None,
    max_retrieval_tokens: int | None,
    max_inline_tokens: int,
    max_step_tokens: int | None,
    max_query_bytes: int,
    offload_errors: bool,
    show_path: bool,
    require_scope: bool,
    network_threads: int,
    queue_seconds: float,
) -> Configuration:
    """Check the arguments of ``Offloader``, which says what they mean.

    Raises:
        InvalidRequest: one is wrong.

    """
    threshold = require_positive("max_result_tokens", max_result_tokens)
    if preview_tokens is not None and not _is_count(preview_tokens):
        msg = f"preview_tokens must be non-negative, a whole number of at least 0, not {preview_tokens!r}"
        raise InvalidRequest(msg)
    if preview_tokens is not None and preview_tokens >= threshold:
        msg = f"preview_tokens must be less than max_result_tokens ({threshold:,}), not {preview_tokens!r}"
        raise InvalidRequest(msg)
    if require_positive("max_inline_tokens", max_inline_tokens) < threshold:
        msg = f"max_inline_tokens must be at least max_result_tokens ({threshold:,}), not {max_inline_tokens!r}"
        raise InvalidRequest(msg)
    if max_retrieval_tokens is not None and not _is_count(max_retrieval_tokens, least=MINIMUM_BUDGET):
        msg = (
            f"max_retrieval_tokens must be a whole number of at least {MINIMUM_BUDGET}, which an answer with its"
            f" next call needs, not {max_retrieval_tokens!r}"
        )
        raise InvalidRequest(msg)
    if token_counter is not None and not isinstance(token_counter, TokenCounter):
        msg = f"token_counter must be a coatcheck.TokenCounter, not {token_counter!r}"
        raise InvalidRequest(msg)
    if policies is not None and not isinstance(policies, Mapping):
        msg = f"policies must map tool names, tuples of names or '*' to policies, not {policies!r}"
        raise InvalidRequest(msg)
    return Configuration(
        counter=TiktokenCounter() if token_counter is None else for_any_text(token_counter),
        policies=Policies({} if policies is None else dict(policies), OverTokens(threshold)),
        limits=Limits(
            preview_tokens=DEFAULT_PREVIEW_TOKENS if preview_tokens is None else preview_tokens,
            max_inline_tokens=max_inline_tokens,
            offload_errors=require_flag("offload_errors", offload_errors),
        ),
        retrieval_tokens=max(threshold, MINIMUM_BUDGET) if max_retrieval_tokens is None else max_retrieval_tokens,
        step_tokens=None if max_step_tokens is None else require_positive("max_step_tokens", max_step_tokens),
        max_query_bytes=require_positive("max_query_bytes", max_query_bytes),
        show_path=require_flag("show_path", show_path),
        require_scope=require_flag("require_scope", require_scope),
        network_threads=require_positive("network_threads", network_threads),
        queue_seconds=_seconds("queue_seconds", queue_seconds),
    )


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        msg = f"{name} must be a number of seconds above 0, not {value!r}"
        raise InvalidRequest(msg)
    return float(value)


def _is_count(value: object, *, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
