"""The ten invariants, one section each, over random blocks, text, budgets and policies.

Each test is named for what users lose if it fails. The promises of a single module have their own test file.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import assume, example, given
from hypothesis import strategies as st

from coatcheck import (
    RETRIEVAL_TOOL,
    Always,
    Block,
    ByteCounter,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    JsonBlock,
    Kept,
    MediaBlock,
    Never,
    Offloaded,
    Offloader,
    OpaqueBlock,
    Outcome,
    OverChars,
    OverTokens,
    Reference,
    ReferenceExpired,
    ReferenceNotFound,
    Retrieved,
    TextBlock,
    TiktokenCounter,
    Truncated,
)
from coatcheck.core.blocks import json_text
from coatcheck.core.settings import MIN_BUDGET
from tests.core.storages import AsyncDictStorage, DictStorage, FailingStorage, RangeStorage
from tests.core.strategies import blocks, long_texts, texts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from coatcheck.core.policy import Policy

COUNTER = ByteCounter()
THRESHOLDS = st.integers(1, 3_000)
RESULTS = st.lists(blocks(), max_size=12)


def policies() -> st.SearchStrategy[Policy]:
    return st.one_of(
        st.builds(Always),
        st.builds(Never),
        st.builds(OverTokens, THRESHOLDS),
        st.builds(OverChars, st.integers(1, 12_000)),
    )


def _offload(content: Sequence[Block], *, policy: Policy | None = None, **knobs: Any) -> Outcome:  # noqa: ANN401
    knobs.setdefault("token_counter", COUNTER)
    return Offloader(**knobs).offload(content, tool_name="search", scope="s", policy=policy)


def _cost(content: Sequence[Block]) -> int:
    return sum(COUNTER.count(block.text) for block in content if isinstance(block, TextBlock))


def _stored_bytes(block: Block) -> bytes:
    match block:
        case TextBlock():
            return block.text.encode("utf-8", "surrogatepass")
        case JsonBlock():
            return json_text(block.value).encode()
        case MediaBlock():
            return block.data
        case OpaqueBlock():
            return b""


def _stored(content: Sequence[Block]) -> list[bytes]:
    """Return what is stored for a result, in order. More than eight strings become one, in the place of the first."""
    texts = [_stored_bytes(block) for block in content if isinstance(block, TextBlock | JsonBlock)]
    if sum(map(bool, texts)) <= 8:
        return [stored for stored in map(_stored_bytes, content) if stored]
    joined = iter([b"\n".join(texts)])
    stored = [
        next(joined, b"") if isinstance(block, TextBlock | JsonBlock) else _stored_bytes(block) for block in content
    ]
    return [data for data in stored if data]


# 1. Nothing is lost.


@given(content=RESULTS, policy=policies())
@example(content=[MediaBlock(b"x", "image/png"), *map(TextBlock, "abcdefghij")], policy=Always())
def test_everything_that_leaves_the_conversation_is_stored_whole(content: list[Block], policy: Policy) -> None:
    offloader = Offloader(token_counter=COUNTER)
    outcome = offloader.offload(content, tool_name="search", scope="s", policy=policy)

    if isinstance(outcome, Kept):
        assert all(after is before for after, before in zip(outcome.blocks, content, strict=True))
    else:
        assert isinstance(outcome, Offloaded)
        loaded = [offloader.load(str(reference), scope="s").data for reference in outcome.references]
        assert loaded[: len(_stored(content))] == _stored(content)


@given(content=RESULTS, policy=policies())
def test_every_reference_in_a_placeholder_can_be_read(content: list[Block], policy: Policy) -> None:
    offloader = Offloader(token_counter=COUNTER)
    outcome = offloader.offload(content, tool_name="search", scope="s", policy=policy)
    assume(isinstance(outcome, Offloaded))
    notice = outcome.blocks[0]
    assert isinstance(notice, TextBlock)
    named = re.findall(r"^  (\S+) \(", notice.text.partition("\n\n")[0], flags=re.MULTILINE)

    assert named
    for reference in named:
        assert offloader.retrieve(reference, scope="s").text


@given(content=RESULTS, policy=policies(), fail_at=st.integers(0, 3))
def test_a_result_stays_when_it_cannot_be_stored(content: list[Block], policy: Policy, fail_at: int) -> None:
    storage = FailingStorage(after=fail_at)
    outcome = _offload(content, policy=policy, storage=storage, max_inline_tokens=1_000_000)

    if storage.failures:
        assert isinstance(outcome, Kept)
        assert outcome.reason == "storage failed"
        assert all(after is before for after, before in zip(outcome.blocks, content, strict=True))


def test_a_result_that_cannot_be_stored_is_cut_only_above_max_inline_tokens_and_says_so() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    outcome = _offload([TextBlock(text)], storage=FailingStorage(after=0), max_inline_tokens=5_000)

    assert isinstance(outcome, Truncated)
    notice = outcome.blocks[0]
    assert isinstance(notice, TextBlock)
    assert "the rest is lost" in notice.text
    assert "No space left on device" in notice.text
    assert "line 0\n" in notice.text
    assert notice.text.endswith("line 99999\n")
    assert 4_000 < _cost(outcome.blocks) <= 5_000


# 2. It shrinks or it stays.


@given(content=RESULTS, threshold=st.integers(512, 3_000), preview=st.integers(0, 500))
def test_a_placeholder_costs_less_than_the_result_and_at_most_the_threshold(
    content: list[Block], threshold: int, preview: int
) -> None:
    outcome = _offload(content, max_result_tokens=threshold, preview_tokens=preview)

    if isinstance(outcome, Offloaded):
        before = _cost(
            [TextBlock(_stored_bytes(b).decode("utf-8", "replace")) for b in content if not isinstance(b, MediaBlock)]
        )
        media = sum(1_600 for block in content if isinstance(block, MediaBlock))
        assert _cost(outcome.blocks) <= threshold
        assert _cost(outcome.blocks) < before + media * 10


@given(text=long_texts(), characters=st.integers(2_048, 9_000))
def test_a_placeholder_costs_less_than_a_result_over_a_character_threshold(text: str, characters: int) -> None:
    outcome = _offload([TextBlock(text)], policy=OverChars(characters), token_counter=TiktokenCounter())

    if isinstance(outcome, Offloaded):
        notice = outcome.blocks[0]
        assert isinstance(notice, TextBlock)
        assert TiktokenCounter().count(notice.text) < TiktokenCounter().count(text)


# 3. Byte-exact.


@given(content=RESULTS)
@example(content=[TextBlock("a"), JsonBlock([1]), *map(TextBlock, "bcdefghi")])
def test_load_returns_what_the_tool_returned_from_every_kind_of_storage(content: list[Block]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for storage in (InMemoryStorage(), DictStorage(), AsyncDictStorage(), FileStorage(folder)):
            offloader = Offloader(storage, token_counter=COUNTER)
            outcome = offloader.offload(content, tool_name="search", scope="s", policy=Always())
            loaded = [offloader.load(str(reference), scope="s").data for reference in outcome.references]
            assert loaded[: len(_stored(content))] == _stored(content)


@given(text=texts())
def test_text_loads_as_the_same_text(text: str) -> None:
    assume(text)
    offloader = Offloader(token_counter=COUNTER)
    outcome = offloader.offload([TextBlock(text)], tool_name="search", policy=Always())

    assert offloader.load(str(_only_reference(outcome))).text == text


@given(content=RESULTS, policy=policies())
def test_unknown_blocks_pass_untouched_and_in_order(content: list[Block], policy: Policy) -> None:
    outcome = _offload(content, policy=policy)
    before = [block for block in content if isinstance(block, OpaqueBlock)]
    after = [block for block in outcome.blocks if isinstance(block, OpaqueBlock)]

    assert len(before) == len(after)
    assert all(one is other for one, other in zip(before, after, strict=True))


@given(content=RESULTS, tool_name=texts(pieces=3))
def test_what_the_model_reads_is_valid_unicode(content: list[Block], tool_name: str) -> None:
    offloader = Offloader(token_counter=COUNTER)
    outcome = offloader.offload(content, tool_name=tool_name, scope="s", policy=Always())
    if isinstance(outcome, Kept):
        return

    for block in outcome.blocks:
        if isinstance(block, TextBlock):
            block.text.encode("utf-8")
    for reference in outcome.references:
        offloader.retrieve(str(reference), scope="s").text.encode("utf-8")


# 4. Once.


@given(content=RESULTS, policy=policies())
def test_a_placeholder_is_never_offloaded_again(content: list[Block], policy: Policy) -> None:
    offloader = Offloader(token_counter=COUNTER)
    outcome = offloader.offload(content, tool_name="search", scope="s", policy=policy)
    assume(isinstance(outcome, Offloaded))
    again = offloader.offload(outcome.blocks, tool_name="read_notes", scope="s", policy=Always())

    assert isinstance(again, Kept)
    assert again.reason == "exempt"


def test_a_large_result_that_only_opens_like_a_placeholder_is_offloaded() -> None:
    offloader = Offloader(token_counter=COUNTER)
    genuine = offloader.offload([TextBlock("x" * 90_000)], tool_name="search", scope="s").blocks[0]
    assert isinstance(genuine, TextBlock)

    assert isinstance(offloader.offload([TextBlock(genuine.text + "y" * 90_000)], tool_name="t", scope="s"), Offloaded)


@given(content=RESULTS)
def test_what_the_retrieval_tool_returns_is_never_offloaded(content: list[Block]) -> None:
    outcome = Offloader(token_counter=COUNTER).offload(content, tool_name=RETRIEVAL_TOOL, policy=Always())

    assert isinstance(outcome, Kept)


@given(text=long_texts(), budget=st.integers(MIN_BUDGET, 900), offset=st.integers(-500, 500))
def test_a_read_back_never_exceeds_its_budget(text: str, budget: int, offset: int) -> None:
    assume(text and -len(text) <= offset < len(text))
    offloader = Offloader(token_counter=COUNTER, max_retrieval_tokens=budget)
    reference = _only_reference(offloader.offload([TextBlock(text)], tool_name="t", policy=Always()))

    for selectors in ({}, {"offset": offset}, {"pattern": "e"}, {"line_range": "1-1000"}):
        answer: Retrieved = offloader.retrieve(str(reference), **selectors)
        assert COUNTER.count(answer.text) <= budget


# 5. Deterministic.


@given(content=RESULTS, policy=policies())
def test_the_same_call_gives_the_same_placeholder_on_every_storage(content: list[Block], policy: Policy) -> None:
    shown = [
        [
            block
            for block in _offload(content, policy=policy, storage=storage).blocks
            if not isinstance(block, OpaqueBlock)
        ]
        for storage in (InMemoryStorage(), DictStorage(), InMemoryStorage())
    ]

    assert shown[0] == shown[1] == shown[2]


def test_the_same_call_gives_the_same_placeholder_in_another_process(tmp_path: Path) -> None:
    script = (
        "import sys; from coatcheck import FileStorage, Offloader, TextBlock;"
        "o = Offloader(FileStorage(sys.argv[1]));"
        "r = o.offload([TextBlock('row %d\\n' % i * 3) for i in range(2000)], tool_name='search', scope='s');"
        "sys.stdout.buffer.write(r.blocks[0].text.encode())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, check=True).stdout
        for _ in range(2)
    ]

    assert runs[0] == runs[1]
    assert runs[0].startswith(b"Tool result offloaded.")


def test_saving_twice_refreshes_the_time_of_an_entry_and_stores_it_once() -> None:
    clock = iter(range(100))
    storage = InMemoryStorage(clock=lambda: float(next(clock)))
    for _ in range(2):
        _offload([TextBlock("x" * 20_000)], storage=storage)

    assert [entry.modified for entry in storage.entries("")] == [1.0]


# 6. Scoped.


@given(content=RESULTS, policy=policies(), other=texts(pieces=3))
def test_another_scope_cannot_read_and_learns_nothing(content: list[Block], policy: Policy, other: str) -> None:
    assume(other not in {"", "s"})
    offloader = Offloader(token_counter=COUNTER)
    outcome = offloader.offload(content, tool_name="search", scope="s", policy=policy)

    for reference in outcome.references:
        with pytest.raises(ReferenceNotFound) as foreign:
            offloader.retrieve(str(reference), scope=other)
        with pytest.raises(ReferenceNotFound) as unknown:
            Offloader(token_counter=COUNTER).retrieve(str(reference), scope=other)
        assert type(foreign.value) is type(unknown.value)
        assert str(foreign.value) == str(unknown.value)


@given(tool_name=texts(), scope=texts(), content=long_texts())
def test_no_tool_name_or_scope_reaches_a_key(tool_name: str, scope: str, content: str) -> None:
    assume(scope and content)
    storage = DictStorage()
    Offloader(storage, token_counter=COUNTER).offload(
        [TextBlock(content)], tool_name=tool_name, scope=scope, policy=Always()
    )

    assert all(re.fullmatch(r"[0-9a-f]{16}/[0-9a-f]{16}(-lines)?", key) for key in storage.kept)


# 7. A miss is an instruction.


def test_unknown_and_expired_references_differ_and_say_what_to_do() -> None:
    storage = InMemoryStorage()
    offloader = Offloader(storage, token_counter=COUNTER)
    reference = str(_only_reference(offloader.offload([TextBlock("x" * 90_000)], tool_name="search", scope="s")))
    storage.clear()

    with pytest.raises(ReferenceExpired, match=r"expired.*Do not retry.*call again the tool") as expired:
        offloader.retrieve(reference, scope="s")
    with pytest.raises(ReferenceNotFound, match=r"not found.*Do not retry.*call again the tool") as unknown:
        offloader.retrieve(reference, scope="t")

    assert not isinstance(unknown.value, ReferenceExpired)
    assert reference in expired.value.for_model


# 8. Linear time, bounded space.


@pytest.mark.no_cover
@pytest.mark.parametrize("pattern", ["(a|a)*$b", "(a+)+$", "(.*)*x", "(x+x+)+y", "a{0,1000}a{0,1000}$"])
def test_every_pattern_takes_linear_time(pattern: str) -> None:
    offloader = Offloader(token_counter=COUNTER)
    reference = _only_reference(offloader.offload([TextBlock("a" * 20_000 + "!")], tool_name="t"))
    started = time.process_time()

    offloader.retrieve(str(reference), pattern=pattern)

    assert time.process_time() - started < 10  # a backtracking engine would take years


def test_reading_ten_lines_loads_no_more_of_a_large_object_than_of_a_small_one() -> None:
    loaded = {}
    for lines in (50_000, 500_000):
        storage = RangeStorage()
        offloader = Offloader(storage, token_counter=COUNTER)
        text = "".join(f"line {number:>9}\n" for number in range(lines))
        reference = _only_reference(offloader.offload([TextBlock(text)], tool_name="t"))
        storage.bytes_loaded = 0
        found = offloader.retrieve(str(reference), line_range={"start": lines // 2, "end": lines // 2 + 9})
        loaded[lines] = storage.bytes_loaded
        assert f"{lines // 2 - 1:>9}" in found.text

    assert loaded[500_000] < loaded[50_000] * 3


# 9. Off the loop.


@pytest.mark.parametrize("storage", ["memory", "file", "async"])
async def test_no_async_operation_blocks_the_loop(storage: str, tmp_path: Path) -> None:
    kinds = {"memory": InMemoryStorage(), "file": FileStorage(tmp_path), "async": AsyncDictStorage()}
    offloader = Offloader(kinds[storage])  # type: ignore[arg-type]
    text = "".join(f"line {number}\n" for number in range(200_000))
    with blockbuster_ctx():
        outcome = await offloader.aoffload([TextBlock(text)], tool_name="t", scope="s")
        reference = str(_only_reference(outcome))
        assert (await offloader.aretrieve(reference, scope="s", pattern="line 4242$")).matches == 1
        assert (await offloader.aload(reference, scope="s")).text == text
        assert await offloader.aexpand(f"see {reference}", scope="s") == f"see {text}"
        if storage != "async":
            assert await offloader.adelete_scope("s") > 0


async def test_the_loop_goes_on_while_a_large_result_is_offloaded(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path), token_counter=COUNTER)
    beats = 0

    async def heartbeat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    pulse = asyncio.create_task(heartbeat())
    await offloader.aoffload([TextBlock("some words " * 2_000_000)], tool_name="t")
    pulse.cancel()

    assert beats > 10


# 10. No surprises.


def test_nothing_is_fetched_at_import_or_first_use() -> None:
    script = (
        "import socket\n"
        "def refuse(*a, **k): raise SystemExit('the network was used')\n"
        "socket.socket.connect = refuse; socket.create_connection = refuse; socket.getaddrinfo = refuse\n"
        "from coatcheck import Offloader, TextBlock\n"
        "print(type(Offloader().offload([TextBlock('word ' * 50000)], tool_name='t')).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "Offloaded", done.stderr


@given(content=RESULTS)
def test_no_failure_of_a_storage_a_policy_or_a_callback_reaches_the_agent(content: list[Block]) -> None:
    def raising(_: object) -> bool:
        msg = "boom"
        raise RuntimeError(msg)

    outcome = _offload(content, policy=raising, storage=FailingStorage(after=0), on_event=raising)

    assert isinstance(outcome, Kept | Truncated)


def test_a_missing_required_scope_is_the_callers_error() -> None:
    with pytest.raises(InvalidRequest, match="require_scope"):
        Offloader(require_scope=True).offload([TextBlock("x")], tool_name="t")


def _only_reference(outcome: Outcome) -> Reference:
    assert isinstance(outcome, Offloaded)
    assert len(outcome.references) == 1
    return outcome.references[0]
