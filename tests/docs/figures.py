"""The numbers that pages take from the code: each sentence with today's numbers, and how they get into a page.

The words around a sentence's numbers locate them, so a page may wrap the sentence anywhere. When a constant
changes, so do its sentences.
"""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any

from coatcheck import InMemoryStorage, Offloader, Settings, TextBlock, TiktokenCounter
from coatcheck.core.arguments import DEFAULT_CONTEXT_LINES
from coatcheck.core.forks import LOADING_SECONDS
from coatcheck.core.notice import _COMPLETE
from coatcheck.core.plan import PREVIEW_SHARE, SHRINK_FROM_TOKENS
from coatcheck.core.preview.json import MAX_PARSED_CHARACTERS
from coatcheck.core.preview.text import _SHARE_OF_NAMES
from coatcheck.core.reading.interpreter import MAX_UNITS
from coatcheck.core.reading.scan import MAX_HITS
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS, MAX_QUERY_BYTES
from coatcheck.engine.cleanup import GRACE_SECONDS
from coatcheck.engine.execution import IN_VAIN_SECONDS, PAUSE_SECONDS, SHORT_BYTES
from coatcheck.engine.loops import TIME_LIMIT_SECONDS
from coatcheck.replay.measure import definition_tokens
from coatcheck.storage.fsspec_bridge import HEAD_BYTES
from coatcheck.storage.langgraph_bridge import MAX_ENTRY_BYTES
from tests.contract.definition import MAX_TOKENS
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("FIGURES", "NUMBER", "of_demo", "of_strands", "shown_placeholder", "with_figure")

COUNTER = TiktokenCounter()
DEFAULT = {each.name: each.default for each in fields(Settings)}
MEMORY = f"{signature(InMemoryStorage).parameters['max_bytes'].default / 1e6:.0f} MB"
QUERY = f"{MAX_QUERY_BYTES / 1e6:.0f} MB"
PARSED = f"{MAX_PARSED_CHARACTERS / 1e6:.0f} MB"
IN_A_STORE = f"{MAX_ENTRY_BYTES * 3 / 4 / 1e6:.0f} MB"
"""The largest content in one entry of a LangGraph store, which keeps content as base64."""
TOOL = definition_tokens(COUNTER)
"""Tokens. The retrieval tool's definition in OpenAI's form, which every request of an agent carries."""

NUMBER = re.compile(r"(?<![\w.])\d(?:[\d,._]*\d)?")
_SHOWN = re.compile(r"With coatcheck it is .*?```text\n(.*?)\n```", re.DOTALL)


def _about_a_placeholder() -> int:
    """Return the tokens of a one-block placeholder without its preview, rounded to 5: references differ a little."""
    offloader = Offloader(InMemoryStorage(), max_result_tokens=1_000)
    outcome = offloader.offload([TextBlock("a line of a log\n" * 10_000)], tool_name="read_log", scope="conversation-1")
    (block,) = outcome.blocks
    assert isinstance(block, TextBlock)
    return 5 * round(COUNTER.count(block.text.partition("\n\n")[0]) / 5)


PLACEHOLDER = _about_a_placeholder()


def _kept_at_500(way: str) -> str:
    """Return the share that a method keeps in 500 tokens on the held-out half, from ``docs/quality.md``."""
    page = (ROOT / "docs/quality.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {way} \|(?:[^|]+\|){{2}} ([\d.]+) \[", page, re.MULTILINE)
    assert row is not None, f"docs/quality.md has no row for {way}"
    return f"{float(row[1]):.0f}%"


KEPT, OF_A_HEAD = _kept_at_500("coatcheck, whole placeholder"), _kept_at_500("head")

FIGURES = (
    ("docs/settings.md", f"max_result_tokens={DEFAULT['max_result_tokens']:_}, # a tool result above this"),
    ("docs/settings.md", f"preview_tokens={DEFAULT_PREVIEW_TOKENS:_}, # the longest preview"),
    ("docs/settings.md", f"at most {PREVIEW_SHARE:.0%} of the threshold that fired"),
    ("docs/settings.md", f"max_inline_tokens={DEFAULT['max_inline_tokens']:_}, # above this"),
    ("docs/settings.md", f"{DEFAULT_CONTEXT_LINES} lines by default; all are counted, up to {MAX_HITS:,}"),
    ("docs/settings.md", f"on JSON and JSON Lines of at most {QUERY} (`max_query_bytes`)"),
    ("docs/model.md", f"the placeholder says so instead: `{_COMPLETE}`"),
    ("docs/guarantees.md", f"From a threshold of {SHRINK_FROM_TOKENS} tokens on"),
    ("docs/storages.md", f"in this process, at most {MEMORY}; evicts the least recently used first"),
    ("docs/storages.md", f"in a LangGraph store (Postgres, SQLite, ...), above {IN_A_STORE} in parts"),
    ("SECURITY.md", f"within a budget of {MAX_UNITS:,} steps and sizes, on at most {QUERY}"),
    ("docs/security.md", f"within a budget of {MAX_UNITS:,} steps and sizes, on at most {QUERY}"),
    ("docs/security.md", f"`InMemoryStorage` holds {MEMORY}"),
    ("docs/storages.md", f"{TIME_LIMIT_SECONDS:.0f} seconds, counted from when a thread takes the call"),
    ("docs/storages.md", f"a save or a read fails after more than {IN_VAIN_SECONDS:.0f} seconds, in which"),
    ("docs/storages.md", f"asks it nothing for {'a minute' if PAUSE_SECONDS == 60 else '?'}: saves and reads"),
    ("docs/storages.md", f"waits some {TIME_LIMIT_SECONDS:.0f} seconds in all"),
    ("docs/storages.md", f"`network_threads={DEFAULT['network_threads']}`"),
    ("docs/storages.md", f"`queue_seconds={DEFAULT['queue_seconds']:.0f}`"),
    ("docs/storages.md", f"A result of up to {SHORT_BYTES // 1024} KB of text"),
    ("docs/storages.md", f"at the first use, {LOADING_SECONDS:.0f} seconds at most"),
    ("docs/bridges.md", f"one file: {HEAD_BYTES:,} bytes of type, time and metadata"),
    ("docs/bridges.md", f"`tail -c +{HEAD_BYTES + 1}`"),
    ("docs/storages.md", f"What was saved within the last {'hour' if GRACE_SECONDS == 3_600 else '?'} stays"),
    ("docs/thresholds.md", f"Parsing JSON, at most {QUERY if QUERY == PARSED else '?'} for a preview or a query"),
    ("docs/quality.md", "{:.0%} of the budget, {:.0%} in numbered source code".format(*_SHARE_OF_NAMES)),
    (
        "README.md",
        f"placeholder of 500 tokens held {KEPT} of what agents later needed, a head of 500 tokens {OF_A_HEAD}",
    ),
    ("docs/guarantees.md", f"{KEPT} on held-out conversations; a head of 500 tokens: {OF_A_HEAD}"),
    ("README.md", f"the definition of the retrieval tool adds {TOOL} to each request"),
    ("README.md", f"a placeholder about {PLACEHOLDER} on top of the preview"),
    ("docs/settings.md", f"The definition of the retrieval tool, {TOOL} tokens, goes with every request"),
    ("docs/thresholds.md", f"sent with every turn: {TOOL} tokens of `o200k_base` in OpenAI's form"),
    ("docs/thresholds.md", f"A placeholder has about {PLACEHOLDER} tokens before its preview"),
    ("docs/switching/deepagents.md", f"counts up to {MAX_HITS:,} matches"),
)
"""Pages, and the sentence about a limit, default or count of the code that each must hold. A sentence has enough words
to match only one place. Words, such as a line that the model reads, are compared but never written."""


def shown_placeholder(readme: str) -> str:
    """Return the README's sentence about the placeholder that it shows.

    Raises:
        ValueError: the README shows none.

    """
    found = _SHOWN.search(readme)
    if found is None:
        msg = "README.md must show a placeholder below: With coatcheck it is … tokens long"
        raise ValueError(msg)
    return f"With coatcheck it is {COUNTER.count(found[1])} tokens long"


def of_strands(tokens: int) -> tuple[tuple[str, str], ...]:
    """Return pages with their sentences about the ``tokens`` of the tool's definition that Strands' client sends."""
    return (
        ("docs/thresholds.md", f"in OpenAI's form, {tokens} with what Strands adds"),
        ("CONTRIBUTING.md", f"the longest, that of Strands, has {tokens} of the {MAX_TOKENS}"),
    )


def of_demo(said: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return pages with their sentences about the tokens that ``coatcheck demo --json`` reports as sent."""
    sent, without = (sum(part[name] for part in said["parts"]) for name in ("tokens_sent", "tokens_sent_without"))
    about, million = f"{round(sent, -2):,}", f"{without / 1e6:.1f} million tokens"
    return (
        ("README.md", f"it would send {million}; with it, all eight calls send about {about}"),
        ("docs/guarantees.md", f"{million} without coatcheck, about {about} with it"),
    )


def with_figure(markdown: str, sentence: str) -> str:
    """Return a page with the numbers of ``sentence`` wherever its words occur."""
    numbers = [*NUMBER.findall(sentence), ""]
    words = (f"({re.escape(part)})".replace(r"\ ", r"\s+") for part in NUMBER.split(sentence))

    def renewed(found: re.Match[str]) -> str:
        return "".join(part for pair in zip(found.groups(), numbers, strict=True) for part in pair)

    return re.sub(NUMBER.pattern.join(words), renewed, markdown)
