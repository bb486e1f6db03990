"""All settings of an offloader as one frozen value, checked when it is made.

A new setting gets a field, a default and a check here, and a line in ``engine.options.OffloaderOptions``. What it does
belongs where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coatcheck.core.checks import is_count, is_number, require_flag, require_positive
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.policy import OverTokens, require_policy
from coatcheck.core.tokens import TiktokenCounter, TokenCounter, for_any_text

if TYPE_CHECKING:
    from coatcheck.core.policy import Policy

__all__ = (
    "DEFAULT_PREVIEW_TOKENS",
    "MAX_INLINE_TOKENS",
    "MAX_QUERY_BYTES",
    "MAX_RESULT_TOKENS",
    "MIN_BUDGET",
    "NETWORK_THREADS",
    "QUEUE_SECONDS",
    "Settings",
)

MAX_RESULT_TOKENS = 2_500
MAX_INLINE_TOKENS = 50_000
DEFAULT_PREVIEW_TOKENS = 500
"""Tokens. With a prompt cache, a longer preview costs more in every later turn than the read-backs that it saves; see
docs/thresholds.md."""

MIN_BUDGET = 256
"""The smallest token limit of a read-back: header, next call and some content fit, with any pattern and any usual
reference."""

MAX_QUERY_BYTES = 8_000_000
"""Bytes. Parsing that much JSON takes 0.1 to 0.3 s for records, cannot be interrupted, and needs ten times the
memory."""

NETWORK_THREADS = 16
"""Threads that each offloader has of its own, so that a storage that hangs takes none from another. Threads that wait
for a network hold no lock; 16 keep a storage busy without flooding it."""

QUEUE_SECONDS = 300.0
"""Seconds that a call may wait for a thread: long enough for 2,400 saves of 2 s each on 16 threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of an ``Offloader``, except for its storage and its listeners.

    Pass it as ``Offloader(storage, settings=Settings(...))``, or pass each field as a keyword argument of its own.
    ``dataclasses.replace`` makes a changed copy and checks it again.

    Raises:
        InvalidRequest: a value is wrong; the message names the field.

    """

    max_result_tokens: int = MAX_RESULT_TOKENS
    """The threshold, in tokens: a larger result is offloaded, one of exactly this size stays."""

    preview_tokens: int | None = None
    """Tokens of the preview, at most 40% of the threshold that fired. 0: no preview. None: 500.

    The notice comes on top: about 85 tokens for one text block.
    """

    policies: Mapping[Any, Policy] | None = None
    """Policies per tool: by exact name, by a tuple of names, or ``"*"`` for all others.

    The keys are typed Any, since a ``dict[str, ...]`` would not fit otherwise.
    """

    token_counter: TokenCounter | None = None
    """Counts and cuts text. None: ``TiktokenCounter("o200k_base")``."""

    max_retrieval_tokens: int | None = None
    """Tokens of one read-back, at least 256. None: ``max_result_tokens``, or 256 if that is less."""

    max_inline_tokens: int = MAX_INLINE_TOKENS
    """Tokens. A larger result never stays, even if a policy, an error mark or a failure would keep it. Results of the
    retrieval tool, and those for which ``confirm`` returned false, are exempt."""

    max_step_tokens: int | None = None
    """The most tokens of all results of one step together, if the framework exposes the step. None: no limit."""

    max_query_bytes: int = MAX_QUERY_BYTES
    """Bytes. Larger JSON can be searched and read, but not queried."""

    offload_errors: bool = False
    """Whether results marked as errors are offloaded like others. By default they stay."""

    show_path: bool = False
    """Whether the placeholder names the local file, for agents that have a shell."""

    list_arguments: bool = False
    """Whether the list of what is stored shows the arguments of each call, which are then stored with the content."""

    require_scope: bool = False
    """Whether a call without a scope is refused instead of using the shared scope ``"default"``."""

    network_threads: int = NETWORK_THREADS
    """How many calls the async methods make at the same time to a storage that is neither async nor on this machine.
    The sync methods call it on the caller's thread."""

    queue_seconds: float = QUEUE_SECONDS
    """Seconds that such a call waits for one of these threads. It fails after only 30 seconds if no other call gets
    a thread either. Once it has a thread, it may take 30 seconds."""

    counter: TokenCounter = field(init=False, repr=False, compare=False)
    """The counter in use: ``token_counter`` or its default, made safe for any text."""

    default_rule: OverTokens = field(init=False, repr=False, compare=False)
    """The rule for a tool that no key of ``policies`` names: ``max_result_tokens``."""

    preview_limit: int = field(init=False, repr=False, compare=False)
    """Tokens of a preview, before the threshold that fired limits them: ``preview_tokens`` or its default."""

    retrieval_limit: int = field(init=False, repr=False, compare=False)
    """Tokens of one read-back: ``max_retrieval_tokens`` or its default."""

    def __post_init__(self) -> None:
        self._check_tokens()
        require_positive("max_query_bytes", self.max_query_bytes)
        for name in ("offload_errors", "show_path", "list_arguments", "require_scope"):
            require_flag(name, getattr(self, name))
        require_positive("network_threads", self.network_threads)
        if not (is_number(self.queue_seconds) and 0 < self.queue_seconds < math.inf):
            msg = f"queue_seconds must be a number of seconds above 0, not {self.queue_seconds!r}"
            raise InvalidRequest(msg)
        if self.token_counter is not None and not isinstance(self.token_counter, TokenCounter):
            msg = f"token_counter must be a coatcheck.TokenCounter, not {self.token_counter!r}"
            raise InvalidRequest(msg)
        counter = TiktokenCounter() if self.token_counter is None else for_any_text(self.token_counter)
        preview, retrieval = self.preview_tokens, self.max_retrieval_tokens
        derived = {
            "policies": None if self.policies is None else _checked_policies(self.policies),
            "counter": counter,
            "default_rule": OverTokens(self.max_result_tokens),
            "preview_limit": DEFAULT_PREVIEW_TOKENS if preview is None else preview,
            "retrieval_limit": max(self.max_result_tokens, MIN_BUDGET) if retrieval is None else retrieval,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _check_tokens(self) -> None:
        threshold = require_positive("max_result_tokens", self.max_result_tokens)
        if self.preview_tokens is not None and not is_count(self.preview_tokens):
            # "must be non-negative" is the wording of Strands' own offloader, whose tests expect it.
            msg = f"preview_tokens must be non-negative, a whole number of at least 0, not {self.preview_tokens!r}"
            raise InvalidRequest(msg)
        if self.preview_tokens is not None and self.preview_tokens >= threshold:
            msg = f"preview_tokens must be less than max_result_tokens ({threshold:,}), not {self.preview_tokens!r}"
            raise InvalidRequest(msg)
        if require_positive("max_inline_tokens", self.max_inline_tokens) < threshold:
            limit, is_default = self.max_inline_tokens, self.max_inline_tokens == MAX_INLINE_TOKENS
            msg = f"max_inline_tokens must be at least max_result_tokens ({threshold:,}), not {limit:,}"
            msg += ", its default: set both" if is_default else ""
            raise InvalidRequest(msg)
        if self.max_retrieval_tokens is not None and not is_count(self.max_retrieval_tokens, least=MIN_BUDGET):
            msg = (
                f"max_retrieval_tokens must be a whole number of at least {MIN_BUDGET}, which an answer with its"
                f" next call needs, not {self.max_retrieval_tokens!r}"
            )
            raise InvalidRequest(msg)
        if self.max_step_tokens is not None:
            require_positive("max_step_tokens", self.max_step_tokens)


def _checked_policies(policies: object) -> Mapping[str | tuple[str, ...], Policy]:
    """Check ``policies`` and return a copy, since the caller may change its mapping later."""
    if not isinstance(policies, Mapping):
        msg = f"policies must map tool names, tuples of names or '*' to policies, not {policies!r}"
        raise InvalidRequest(msg)
    for names, policy in policies.items():
        if not (isinstance(names, str) or (isinstance(names, tuple) and all(isinstance(name, str) for name in names))):
            msg = f"a key of policies must be a tool name, a tuple of tool names or '*', not {names!r}"
            raise InvalidRequest(msg)
        if names != "*" and any("*" in name for name in ((names,) if isinstance(names, str) else names)):
            msg = f"'*' works only alone, for all other tools, not in {names!r}: name each tool, or several in a tuple"
            raise InvalidRequest(msg)
        require_policy(names, policy)
    return dict(policies)
