"""Limits and defaults that pages name are those of the code: a constant that changes takes its sentences along."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import signature

import pytest

from coatcheck import InMemoryStorage, Offloader, Settings, TextBlock, TiktokenCounter
from coatcheck.core.arguments import DEFAULT_CONTEXT_LINES
from coatcheck.core.forks import LOADING_SECONDS
from coatcheck.core.plan import PREVIEW_SHARE, SHRINK_FROM_TOKENS
from coatcheck.core.preview.json import MAX_PARSED_CHARACTERS
from coatcheck.core.preview.text import _SHARE_OF_NAMES
from coatcheck.core.reading.interpreter import MAX_UNITS
from coatcheck.core.reading.scan import MAX_HITS
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS, MAX_QUERY_BYTES
from coatcheck.engine.cleanup import GRACE_SECONDS
from coatcheck.engine.execution import SHORT_BYTES
from coatcheck.engine.loops import TIME_LIMIT_SECONDS
from coatcheck.replay.measure import definition_tokens
from coatcheck.storage.fsspec_bridge import HEAD_BYTES
from coatcheck.storage.langgraph_bridge import MAX_ENTRY_BYTES
from tests.meta.source_tree import ROOT

DEFAULT = {each.name: each.default for each in fields(Settings)}
MEMORY = f"{signature(InMemoryStorage).parameters['max_bytes'].default / 1e6:.0f} MB"
QUERY = f"{MAX_QUERY_BYTES / 1e6:.0f} MB"
PARSED = f"{MAX_PARSED_CHARACTERS / 1e6:.0f} MB"
IN_A_STORE = f"{MAX_ENTRY_BYTES * 3 / 4 / 1e6:.0f} MB"
"""Content is kept in a LangGraph store as base64."""
TOOL = definition_tokens(TiktokenCounter())
"""Tokens of the retrieval tool's definition in OpenAI's form, which every request of an agent has."""


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("docs/settings.md", f"max_result_tokens={DEFAULT['max_result_tokens']:_},"),
        ("docs/settings.md", f"preview_tokens={DEFAULT_PREVIEW_TOKENS:_},"),
        ("docs/settings.md", f"at most {PREVIEW_SHARE:.0%} of the threshold that fired"),
        ("docs/settings.md", f"max_inline_tokens={DEFAULT['max_inline_tokens']:_},"),
        ("docs/settings.md", f"{DEFAULT_CONTEXT_LINES} lines by default; all are counted, up to {MAX_HITS:,}"),
        ("docs/settings.md", f"on JSON and JSON Lines of at most {QUERY} (`max_query_bytes`)"),
        ("docs/guarantees.md", f"From a threshold of {SHRINK_FROM_TOKENS} tokens on"),
        ("docs/storages.md", f"in this process, at most {MEMORY}; evicts the least recently used first"),
        ("docs/storages.md", f"in a LangGraph store (Postgres, SQLite, ...), above {IN_A_STORE} in parts"),
        ("SECURITY.md", f"within a budget of {MAX_UNITS:,} steps and sizes, on at most {QUERY}"),
        ("docs/security.md", f"within a budget of {MAX_UNITS:,} steps and sizes, on at most {QUERY}"),
        ("docs/security.md", f"`InMemoryStorage` holds {MEMORY}"),
        ("docs/storages.md", f"{TIME_LIMIT_SECONDS:.0f} seconds, counted from when a thread takes the call"),
        ("docs/storages.md", f"`network_threads={DEFAULT['network_threads']}`"),
        ("docs/storages.md", f"`queue_seconds={DEFAULT['queue_seconds']:.0f}`"),
        ("docs/storages.md", f"A result of up to {SHORT_BYTES // 1024} KB of text"),
        ("docs/storages.md", f"at the first use, {LOADING_SECONDS:.0f} seconds at most"),
        ("docs/storages.md", f"one file: {HEAD_BYTES:,} bytes of type, time and metadata"),
        ("docs/storages.md", f"`tail -c +{HEAD_BYTES + 1}`"),
        ("docs/storages.md", f"What was saved within the last {'hour' if GRACE_SECONDS == 3_600 else '?'} stays"),
        ("docs/thresholds.md", f"Parsing JSON, at most {QUERY if QUERY == PARSED else '?'} for a preview or a query"),
        ("docs/quality.md", "{:.0%} of the budget, {:.0%} in numbered source code".format(*_SHARE_OF_NAMES)),
        ("README.md", f"the definition of the retrieval tool adds {TOOL} to each request"),
        ("docs/settings.md", f"The definition of the retrieval tool, {TOOL} tokens, goes with every request"),
        ("docs/thresholds.md", f"sent with every turn: {TOOL} tokens of `o200k_base` in OpenAI's form"),
        ("docs/switching/deepagents.md", f"counts up to {MAX_HITS:,} matches"),
    ],
)
def test_a_limit_on_a_page_is_that_of_the_code(page: str, sentence: str) -> None:
    says = sentence in " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert says, f"{page} must say: {sentence}"


def test_the_readme_counts_the_placeholder_that_it_shows() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"With coatcheck it is (\d+) tokens long .*?```text\n(.*?)\n```", readme, re.DOTALL)

    assert found is not None
    assert int(found[1]) == TiktokenCounter().count(found[2])


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("README.md", r"a placeholder about (\d+) on top of the preview"),
        ("docs/thresholds.md", r"A placeholder has about (\d+) tokens before its preview"),
    ],
)
def test_a_page_says_about_what_a_placeholder_takes_without_its_preview(page: str, sentence: str) -> None:
    offloader = Offloader(InMemoryStorage(), max_result_tokens=1_000)
    outcome = offloader.offload([TextBlock("a line of a log\n" * 10_000)], tool_name="read_log", scope="conversation-1")
    (block,) = outcome.blocks
    assert isinstance(block, TextBlock)

    tokens = TiktokenCounter().count(block.text.partition("\n\n")[0])

    found = re.search(sentence, " ".join((ROOT / page).read_text(encoding="utf-8").split()))
    assert found is not None
    assert abs(int(found[1]) - tokens) <= 5
