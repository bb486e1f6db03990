"""The hard limit after everything else failed: a result is stored as it is, or cut. Nothing raises or stays whole."""

# ruff: noqa: ANN401 - frameworks and users pass values of any type

from __future__ import annotations

import asyncio
import errno
import json
import logging
import threading
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

import coatcheck
from coatcheck import (
    ByteCounter,
    InMemoryStorage,
    InvalidRequest,
    JsonBlock,
    MediaBlock,
    Offloaded,
    Offloader,
    OpaqueBlock,
    TextBlock,
    TiktokenCounter,
    TokenCounter,
    Truncated,
)
from coatcheck.engine import last_resort as module
from tests.core.storages import AsyncDictStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck import Block

LIMIT = 4 * 5_000
HUGE = "".join(f"line {number:,} is one of many\n" for number in range(2_000))
WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def settle(offloader: Offloader, blocks: Sequence[Block], way: str, **more: Any) -> Offloaded | Truncated | None:
    arguments = {"tool_name": "fetch", "scope": "mine", **more}
    if way == "sync":
        return offloader.last_resort(blocks, **arguments)
    return asyncio.run(offloader.alast_resort(blocks, **arguments))


def offloader_on(storage: Any = None, **knobs: Any) -> Offloader:
    return Offloader(storage, max_inline_tokens=5_000, **knobs)


def text_of(outcome: Offloaded | Truncated | None) -> str:
    assert outcome is not None
    first = outcome.blocks[0]
    assert isinstance(first, TextBlock)
    return first.text


class Raising:
    """A storage whose every method raises the given error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def save(self, *_: object, **__: object) -> None:
        raise self.error

    def load(self, key: str) -> None:
        raise self.error


@WAYS
@pytest.mark.parametrize("storage", [InMemoryStorage, AsyncDictStorage])
def test_a_result_above_the_limit_is_stored_as_it_is_and_can_be_read_back(way: str, storage: Callable[[], Any]) -> None:
    offloader = offloader_on(storage())

    outcome = settle(offloader, [TextBlock(HUGE)], way)

    assert isinstance(outcome, Offloaded)
    assert not outcome.tokens.exact
    assert outcome.references[0].id in text_of(outcome)
    assert "line 0 is" in text_of(outcome)
    assert "line 1,999 is" in text_of(outcome)
    assert len(text_of(outcome)) < 5_000
    assert offloader.load(outcome.references[0], scope="mine").text == HUGE
    assert "> 1501| line 1,500 is" in offloader.retrieve(outcome.references[0], scope="mine", pattern="line 1,500").text
    with pytest.raises(coatcheck.ReferenceNotFound):
        offloader.load(outcome.references[0], scope="yours")


def test_a_single_entry_cannot_push_itself_out_so_nothing_looks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = InMemoryStorage(max_bytes=3_000_000)
    monkeypatch.setattr(storage, "load_range", lambda *_, **__: pytest.fail("looked for what was just saved"))

    for number in range(2):
        outcome = settle(offloader_on(storage), [TextBlock(f"{number}\n" * 1_000_000)], "sync")
        assert isinstance(outcome, Offloaded)


@WAYS
@pytest.mark.parametrize("text", ["x" * LIMIT, "é" * (LIMIT // 2), "漢" * (LIMIT // 3), "\ud800" * (LIMIT // 3)])
def test_a_result_within_the_limit_stays(way: str, text: str) -> None:
    offloader = offloader_on(token_counter=ByteCounter())

    assert settle(offloader, [TextBlock(text)], way) is None
    assert settle(offloader, [TextBlock(text), TextBlock("漢")], way) is not None
    assert offloader.stats().offloaded == 1


@WAYS
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "no room in /secret/place"), "No space left on device"),
        (MemoryError(), "the storage failed"),
        (RecursionError(), "the storage failed"),
        (KeyError("secret"), "the storage failed"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("character", ["x", "é", "漢", "👍", "\ud800"])
def test_when_the_storage_fails_head_and_tail_are_kept_and_the_notice_says_what_is_lost(
    way: str, error: Exception, said: str, character: str
) -> None:
    text = f"BEGIN {character * 30_000} END"

    outcome = settle(offloader_on(Raising(error), token_counter=ByteCounter()), [TextBlock(text)], way)

    assert isinstance(outcome, Truncated)
    shown = text_of(outcome)
    assert shown.startswith("Tool result cut. [Of ~")
    assert f"could not be stored ({said})" in shown
    assert "secret" not in shown
    assert "\n\nBEGIN " in shown
    assert shown.endswith(" END")
    assert LIMIT - 20 < len(shown.encode()) <= LIMIT  # encode() raises if a character was cut in half


DENSE = "".join(f"job {number}: ok\n" for number in range(14_000))
"""More than one token per four bytes: 97,001 tokens in 184,889 bytes."""


@WAYS
@pytest.mark.parametrize("texts", [[DENSE], DENSE.splitlines(), [DENSE * 8]], ids=["one", "many", "huge"])
def test_the_limit_counts_tokens_where_few_bytes_are_many_tokens(way: str, texts: list[str]) -> None:
    offloader = Offloader(require_scope=True)

    outcome = settle(offloader, list(map(TextBlock, texts)), way, scope=None)

    assert isinstance(outcome, Truncated)
    shown = text_of(outcome)
    assert "job 0: ok" in shown
    assert shown.rstrip().endswith("job 13999: ok")
    assert 25_000 < TiktokenCounter().count(shown) <= offloader.settings.max_inline_tokens


@WAYS
def test_many_bytes_of_few_tokens_stay(way: str) -> None:
    assert settle(offloader_on(), [TextBlock("x" * LIMIT)], way) is None


class FailingCounter(TokenCounter):
    """Always raises, and records the threads that call it."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()

    def count(self, text: str) -> int:
        self.threads.add(threading.current_thread())
        raise RuntimeError(text)


@WAYS
def test_bytes_decide_and_limit_the_cut_when_the_token_counter_fails(way: str) -> None:
    offloader = offloader_on(Raising(OSError(5, "no")), token_counter=FailingCounter())

    assert settle(offloader, [TextBlock("x" * LIMIT)], way) is None
    assert len(text_of(settle(offloader, [TextBlock("x" * (LIMIT + 1))], way))) <= LIMIT


@pytest.mark.parametrize("text", ["x" * LIMIT, HUGE], ids=["to decide", "to cut"])
def test_no_token_is_counted_on_the_event_loop(text: str) -> None:
    counter = FailingCounter()

    settle(offloader_on(Raising(OSError(5, "no")), token_counter=counter), [TextBlock(text)], "async")

    assert counter.threads
    assert threading.current_thread() not in counter.threads


def test_nothing_is_stored_when_a_required_scope_is_missing() -> None:
    storage, events = InMemoryStorage(), list[coatcheck.Event]()
    offloader = offloader_on(storage, require_scope=True, on_event=events.append)

    outcome = settle(offloader, [TextBlock(HUGE)], "sync", scope=None)

    assert isinstance(outcome, Truncated)
    assert events[-1].scope is None
    assert isinstance(outcome.error, InvalidRequest)
    assert "could not be stored (no scope could be chosen for it)" in text_of(outcome)
    assert list(storage.entries("")) == []


@WAYS
@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), FileNotFoundError(errno.ENOENT, "secret")])
def test_a_failure_to_choose_a_scope_is_named(way: str, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str:
        raise error

    outcome = settle(offloader_on(), [TextBlock(HUGE)], way, scope=broken)

    assert "could not be stored (no scope could be chosen for it)" in text_of(outcome)
    (said,) = caplog.messages
    assert f"choosing its scope failed: {type(error).__name__}" in said


@WAYS
@pytest.mark.parametrize("which", ["scope", "identity"])
def test_a_failing_scope_or_identity_callable_stores_nothing(way: str, which: str) -> None:
    def broken() -> str:
        msg = "no such tenant"
        raise LookupError(msg)

    storage = InMemoryStorage()

    outcome = settle(offloader_on(storage), [TextBlock(HUGE)], way, **{"scope": None, which: broken})

    assert isinstance(outcome, Truncated)
    assert list(storage.entries("")) == []


def test_scope_and_identity_may_be_callables() -> None:
    offloader = offloader_on()

    given = settle(offloader, [TextBlock(HUGE)], "sync", scope=lambda: "given", identity=lambda: "thread")
    identified = settle(offloader, [TextBlock(HUGE)], "sync", scope=lambda: None, identity=lambda: "thread")

    assert given is not None
    assert identified is not None
    assert offloader.load(given.references[0], scope="given").text == HUGE
    assert offloader.load(identified.references[0], scope="thread").text == HUGE


@WAYS
def test_text_blocks_count_together_and_are_stored_joined_by_line_ends(way: str) -> None:
    offloader = offloader_on()
    texts = [f"part {number} {'x' * 100}" for number in range(300)]

    outcome = settle(offloader, list(map(TextBlock, texts)), way)

    assert outcome is not None
    assert "part 0 " in text_of(outcome)
    assert "part 299 " in text_of(outcome)
    assert offloader.load(outcome.references[0], scope="mine").text == "\n".join(texts)


@dataclass
class Picture:
    base64_image: str


class Open:
    """Keeps unknown fields where pydantic's models keep them."""

    __slots__ = ("__dict__", "__pydantic_extra__")

    def __init__(self, **unknown: object) -> None:
        self.__pydantic_extra__ = unknown


@WAYS
@pytest.mark.parametrize(
    "heavy",
    [
        OpaqueBlock({"type": "image", "source": {"data": "q" * LIMIT}}),
        OpaqueBlock({"image": {"format": "png", "source": {"bytes": b"q" * LIMIT}}}),
        OpaqueBlock(Picture("q" * LIMIT)),
        OpaqueBlock("q" * LIMIT),
        OpaqueBlock(Open(data="q" * LIMIT)),
        MediaBlock(b"q" * LIMIT, "image/png"),
        MediaBlock(memoryview(b"q" * LIMIT), "image/png"),  # type: ignore[arg-type]  # accepted nonetheless
        JsonBlock({"rows": ["q" * 10] * (LIMIT // 10)}),
    ],
    ids=["mapping of text", "mapping of bytes", "dataclass", "text", "unknown field", "medium", "view", "JSON"],
)
def test_a_block_other_than_text_leaves_only_if_it_is_too_large_by_itself(way: str, heavy: Block) -> None:
    offloader = offloader_on()
    small = OpaqueBlock({"type": "image", "source": {"data": "q" * (LIMIT // 2)}})

    outcome = settle(offloader, [TextBlock("a caption"), small, heavy, small], way)

    assert isinstance(outcome, Offloaded)
    assert outcome.blocks[1:] == (small, small)
    assert outcome.blocks[1] is small
    assert "a caption" in text_of(outcome)
    assert "bytes is not shown]" in text_of(outcome)
    assert "qqqqqqqqqq" in offloader.load(outcome.references[0], scope="mine").text
    assert settle(offloader, [TextBlock("a caption"), small, small, small], way) is None


def test_a_block_that_holds_any_object_or_contains_itself_passes_unchanged() -> None:
    circle: list[object] = [1]
    circle.append(circle)

    assert settle(offloader_on(), [OpaqueBlock(circle), OpaqueBlock(object()), OpaqueBlock(pytest)], "sync") is None


@WAYS
def test_an_object_that_cannot_be_inspected_does_not_keep_the_rest_whole(way: str) -> None:
    class Unbound:
        """Proxies an object that is not available now, as web frameworks do."""

        def __getattr__(self, name: str) -> object:
            message = "working outside of a request"
            raise RuntimeError(message)

    unbound = OpaqueBlock({"request": Unbound()})
    outcome = settle(offloader_on(), [TextBlock(HUGE), unbound], way)

    assert isinstance(outcome, Offloaded)
    assert outcome.blocks[1:] == (unbound,)
    assert settle(offloader_on(), [unbound], way) is None


class Shy:
    def __repr__(self) -> str:
        message = "not here"
        raise RuntimeError(message)


def _circle() -> list[object]:
    circle: list[object] = ["q" * LIMIT]
    circle.append(circle)
    return circle


@WAYS
@pytest.mark.parametrize(
    "held",
    [_circle(), {date(2026, 1, 1): "q" * LIMIT}, {"by": Shy(), "q": "q" * LIMIT}],
    ids=["itself", "keys that are no text", "an object without a text"],
)
def test_a_large_block_that_is_not_json_is_stored_with_the_text_next_to_it(way: str, held: object) -> None:
    offloader = offloader_on()
    outcome = settle(offloader, [TextBlock(HUGE), OpaqueBlock(held)], way)

    assert isinstance(outcome, Offloaded)
    stored = offloader.load(outcome.references[0], scope="mine").text
    assert stored is not None
    assert stored.startswith(HUGE)
    assert "q" * LIMIT in stored


def test_a_large_block_that_cannot_be_serialized_is_cut() -> None:
    outcome = settle(offloader_on(), [OpaqueBlock({(1, 2): [Shy(), "q" * LIMIT]})], "sync")

    assert isinstance(outcome, Truncated)
    assert "bytes is not shown]" in text_of(outcome)


@WAYS
def test_the_retrieval_tools_own_results_stay(way: str) -> None:
    blocks = [TextBlock(HUGE)]

    assert settle(offloader_on(), blocks, way, tool_name="retrieve_offloaded_content") is None
    assert settle(offloader_on(), blocks, way, tool_name="retrieve_offloaded_content", retrieval_tool=None) is not None


@WAYS
@pytest.mark.parametrize("error", [RuntimeError("anything"), MemoryError(), RecursionError()])
def test_nothing_stays_whole_even_if_cutting_fails(monkeypatch: pytest.MonkeyPatch, way: str, error: Exception) -> None:
    def broken(*_: object, **__: object) -> object:
        raise error

    for name in ("notice", "truncation_notice"):
        monkeypatch.setattr(module, name, broken)
    small = OpaqueBlock({"type": "image"})

    outcome = settle(offloader_on(), [TextBlock(HUGE), small], way)

    assert isinstance(outcome, Truncated)
    assert "the result is lost" in text_of(outcome)
    assert outcome.blocks[1] is small


@WAYS
def test_a_result_that_no_thread_can_store_is_cut_and_its_scope_is_not_blamed(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    def broken(*_: object, **__: object) -> object:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr("coatcheck.offloader.arun", broken)
    monkeypatch.setattr("coatcheck.offloader.run", broken)

    outcome = settle(offloader_on(), [TextBlock(HUGE)], way)

    assert isinstance(outcome, Truncated)
    assert "line 0 is" in text_of(outcome)
    assert "because it could not be stored (the storage failed)" in text_of(outcome)


def test_the_last_resort_needs_no_preview_no_vocabulary_and_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise AssertionError

    monkeypatch.setattr("coatcheck.core.preview.preview", broken)
    monkeypatch.setattr("coatcheck.core.tokens.load_vocabulary", broken)

    outcome = settle(offloader_on(policies={"*": broken}), [TextBlock(HUGE)], "sync")

    assert isinstance(outcome, Offloaded)


@pytest.mark.parametrize(("storage", "kind"), [(None, "offloaded"), (Raising(OSError(5, "no")), "truncated")])
def test_an_outcome_of_the_last_resort_is_counted_and_reported(
    storage: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[coatcheck.Event] = []
    offloader = offloader_on(storage, on_event=events.append)

    settle(offloader, [TextBlock(HUGE)], "sync")

    assert [(event.kind, event.scope, event.tool_name) for event in events] == [(kind, "mine", "fetch")]
    stats = offloader.stats()
    assert (stats.results, stats.offloaded, stats.truncated) == (1, kind == "offloaded", kind == "truncated")
    assert any(record.levelno == logging.ERROR for record in caplog.records) is (kind == "truncated")


def test_a_limit_smaller_than_the_notice_leaves_the_notice() -> None:
    offloader = Offloader(Raising(OSError(5, "no")), max_result_tokens=1, preview_tokens=0, max_inline_tokens=1)

    outcome = settle(offloader, [TextBlock("12345")], "sync")

    assert text_of(outcome).endswith("so that it returns less.")


TEXTS = ["Long. " * 5_000]


@dataclass
class Part:
    text: object


class Model:
    """A type that a framework may use for its parts."""

    def __init__(self, **held: object) -> None:
        self.__dict__.update(held)


@pytest.mark.parametrize(
    ("native", "held"),
    [
        ({"kind": "a", "texts": TEXTS}, {"kind": "a", "texts": TEXTS}),
        (TEXTS, TEXTS),
        (Part(TEXTS), {"text": TEXTS}),
        (Model(text=TEXTS, name=None), {"text": TEXTS}),
    ],
    ids=["dict", "list", "dataclass", "object"],
)
def test_an_unknown_block_with_too_much_text_becomes_its_json(native: object, held: object) -> None:
    (block,) = module.with_opaque_as_json([OpaqueBlock(native)], max_inline_tokens=5_000)

    assert isinstance(block, TextBlock)
    assert json.loads(block.text) == held


def test_text_in_an_unknown_block_counts_by_its_bytes() -> None:
    """A Chinese character has three bytes, and may take a token of its own."""
    text = {"text": "\u6f22\u5b57 " * (LIMIT // 6)}
    assert len(text["text"]) < LIMIT < len(text["text"].encode())

    (block,) = module.with_opaque_as_json([OpaqueBlock(text)], max_inline_tokens=5_000)

    assert isinstance(block, TextBlock)
    assert isinstance(offloader_on().last_resort([OpaqueBlock(text)], tool_name="fetch", scope="mine"), Offloaded)


def test_text_of_an_unknown_block_is_stored_in_its_own_letters() -> None:
    """A search for a word would not find its escapes."""
    (block,) = module.with_opaque_as_json([OpaqueBlock({"text": "\u6f22\u5b57 " * LIMIT})], max_inline_tokens=5_000)

    assert isinstance(block, TextBlock)
    assert "\u6f22\u5b57" in block.text


@pytest.mark.parametrize(
    "held",
    ["Short. " * 2_000, "iVBORw0K" * 5_000, "data:image/png;base64," + "iVBORw0K\r\n" * 5_000, b"Long. " * 5_000],
    ids=["little text", "base64", "data URL", "bytes"],
)
def test_an_unknown_block_with_little_text_or_media_of_any_size_passes(held: object) -> None:
    block = OpaqueBlock({"kind": "a", "held": held})

    assert module.with_opaque_as_json([block], max_inline_tokens=5_000) == (block,)


def test_unknown_blocks_with_too_much_text_in_total_become_json_except_media() -> None:
    links = [
        OpaqueBlock({"type": "link", "uri": f"https://example.com/{n}", "about": "Short. " * 9}) for n in range(300)
    ]
    image = OpaqueBlock({"type": "image", "data": "iVBORw0K" * 5_000})

    *known, last = module.with_opaque_as_json([*links, image], max_inline_tokens=5_000)

    assert [json.loads(block.text) for block in known if isinstance(block, TextBlock)] == [
        link.native for link in links
    ]
    assert last is image
    assert module.with_opaque_as_json(links[:100], max_inline_tokens=5_000) == tuple(links[:100])


def test_blocks_of_other_kinds_stay_as_they_are() -> None:
    blocks = TextBlock(TEXTS[0]), JsonBlock(TEXTS), MediaBlock(TEXTS[0].encode(), "text/plain")
    assert module.with_opaque_as_json(blocks, max_inline_tokens=5_000) == blocks
