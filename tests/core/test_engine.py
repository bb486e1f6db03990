"""The order of effects: what the engine requests, in which order, and what happens to a result if an effect fails.

The generators are driven by hand, without a storage: the driver records each effect and makes up its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

import pytest

from coatcheck import (
    Always,
    ByteCounter,
    Kept,
    MediaBlock,
    Offloaded,
    Offloader,
    StorageError,
    Stored,
    TextBlock,
    ToolResult,
    Truncated,
)
from coatcheck.core import preview
from coatcheck.engine import offloading
from coatcheck.engine.events import About
from coatcheck.engine.execution import PIECE_BYTES, Effect
from coatcheck.engine.request import OffloadRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck import Block, Event, Outcome
    from coatcheck.engine.execution import Effects

Result = TypeVar("Result")

SMALL = TextBlock("a line\n" * 10)
LARGE = TextBlock("a line of a log\n" * 1_000)
INDEXED = TextBlock("a line of a log\n" * 70_000)
"""More than 1 MiB, so that a line index is stored too."""

IMAGE = MediaBlock(b"an image", "image/png")


class NeverCalled:
    """A storage with every method that the engine checks for. The driver calls none of them."""

    def __init__(self, *, evicts: bool) -> None:
        self.evicts = evicts

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> NoReturn:
        raise AssertionError

    def load(self, key: str) -> NoReturn:
        raise AssertionError

    def load_range(self, key: str, *, start: int, length: int) -> NoReturn:
        raise AssertionError


@dataclass
class Driver:
    """Drives an operation of the engine without running its effects."""

    failing: int | None = None
    """Index of the effect that fails, from 0. None if none fails."""

    missing: bool = False
    """Whether the storage has lost what was saved."""

    happened: list[str] = field(default_factory=list)
    """The effects, and whatever else a test records, in order."""

    @property
    def effects(self) -> list[str]:
        """The effects alone, by their names in ``WORDS``."""
        return [what for what in self.happened if what in WORDS.values()]

    def drive(self, operation: Effects[Result]) -> Result:
        """Run an operation to its end and return its result."""
        answer: object = None
        try:
            while True:
                effect = operation.send(answer)
                answer = None if effect is None else self._answer(effect)
        except StopIteration as end:
            return cast("Result", end.value)

    def _answer(self, effect: Effect) -> object:
        word = next(word for begin, word in WORDS.items() if effect.what.startswith(begin))
        failed = len(self.effects) == self.failing
        self.happened.append(word)
        if failed:
            return effect.failure(f"{effect.what} failed")
        return ANSWERS[word] if word != "look" or not self.missing else None


WORDS = {
    "measured_tokens": "measured",
    "the policy": "policy",
    "confirm": "confirm",
    "saving": "save",
    "loading a part": "look",
}
"""The first words of each effect, and its name in the tables below."""

ANSWERS: dict[str, object] = {
    "measured": 50_000,
    "policy": True,
    "confirm": True,
    "save": None,
    "look": Stored(content=b"", content_type="text/plain", metadata={}, size=1),
}


def _ask(*_: object) -> NoReturn:
    raise AssertionError


def _engine(
    *, evicts: bool = False, max_inline_tokens: int = 1_000_000, on_event: Callable[[Event], object] | None = None
) -> Offloader:
    storage = NeverCalled(evicts=evicts)
    return Offloader(storage, token_counter=ByteCounter(), max_inline_tokens=max_inline_tokens, on_event=on_event)


def _request(blocks: Sequence[Block], *, asks: str = "") -> OffloadRequest:
    return OffloadRequest(
        result=ToolResult(blocks=tuple(blocks), tool_name="read_log", tool_args={}, is_error=False),
        scope="s",
        about=About(scope="s", tool_name="read_log", references=()),
        policy=_ask if "policy" in asks else Always(),
        measured_tokens=_ask if "measured" in asks else None,
        confirm=_ask if "confirm" in asks else None,
        retrieval_tool="retrieve",
    )


def _offload(driver: Driver, blocks: Sequence[Block], *, asks: str = "", evicts: bool = False) -> Outcome:
    return driver.drive(_engine(evicts=evicts)._engine.offload(_request(blocks, asks=asks)))


@pytest.mark.parametrize(
    ("blocks", "asks", "evicts", "effects"),
    [
        pytest.param([LARGE], "", False, "save", id="one text"),
        pytest.param([INDEXED], "", False, "save save", id="a text with an index of its lines"),
        pytest.param([LARGE, IMAGE, SMALL], "", False, "save save save", id="a content for each block"),
        pytest.param([SMALL] * 9, "", False, "save save", id="more than eight texts become one content, with an index"),
        pytest.param([IMAGE] * 9, "", False, "save save save save save save save save save save", id="a list of nine"),
        pytest.param([LARGE], "policy", False, "policy save", id="a callable policy"),
        pytest.param([LARGE], "measured", False, "measured save", id="a framework's count"),
        pytest.param([LARGE], "confirm", False, "confirm save", id="a confirmation"),
        pytest.param([LARGE], "measured policy confirm", False, "measured policy confirm save", id="all three"),
        pytest.param([LARGE, IMAGE], "", True, "save save look look", id="a storage that evicts"),
        pytest.param([INDEXED], "", True, "save save look", id="a text with an index, where a storage evicts"),
        pytest.param([LARGE], "", True, "save", id="a small entry cannot push itself out"),
    ],
)
def test_effects_are_requested_in_this_order(blocks: list[Block], asks: str, *, evicts: bool, effects: str) -> None:
    driver = Driver()

    assert isinstance(_offload(driver, blocks, asks=asks, evicts=evicts), Offloaded)
    assert driver.effects == effects.split()


def test_a_step_asks_about_all_results_before_it_saves_any() -> None:
    requests = [_request([LARGE], asks="policy confirm"), _request([INDEXED], asks="measured policy")]
    driver = Driver()

    outcomes = driver.drive(_engine()._engine.offload_step(requests))

    assert [type(outcome) for outcome in outcomes] == [Offloaded, Offloaded]
    assert driver.effects == ["policy", "measured", "policy", "save", "save", "save"], "a step confirms nothing"


@pytest.mark.parametrize("blocks", [[LARGE], [INDEXED], [LARGE, IMAGE], [IMAGE] * 9])
def test_the_placeholder_is_made_after_all_saves_and_recorded_last(
    blocks: list[Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver()
    note = driver.happened.append
    for module, name in ((preview, "preview"), (offloading, "build_placeholder")):
        made = getattr(module, name)

        def noted(
            *arguments: object, _name: str = name, _made: Callable[..., object] = made, **named: object
        ) -> object:
            note(_name)
            return _made(*arguments, **named)

        monkeypatch.setattr(module, name, noted)
    operation = _engine(on_event=lambda event: note(event.kind))._engine.offload(_request(blocks))

    assert isinstance(driver.drive(operation), Offloaded)
    saves = driver.effects.count("save")
    assert driver.happened[-2:] == ["build_placeholder", "offloaded"]
    assert driver.happened[:-2].count("save") == saves, "a placeholder was made before all was saved"
    if blocks in ([LARGE], [INDEXED]):
        assert driver.happened[0] == "preview", "the preview is made while the content is hashed, before it is saved"


@pytest.mark.parametrize(
    ("blocks", "failing"),
    [
        ([LARGE], 0),
        ([INDEXED], 0),
        ([INDEXED], 1),
        ([LARGE, IMAGE, SMALL], 0),
        ([LARGE, IMAGE, SMALL], 1),
        ([LARGE, IMAGE, SMALL], 2),
        ([IMAGE] * 9, 4),
        ([IMAGE] * 9, 9),
    ],
)
def test_a_failed_save_keeps_the_result_and_ends_the_operation(blocks: list[Block], failing: int) -> None:
    events: list[Event] = []
    driver = Driver(failing=failing)
    outcome = driver.drive(_engine(on_event=events.append)._engine.offload(_request(blocks)))

    assert isinstance(outcome, Kept)
    assert outcome.reason == "storage failed"
    assert outcome.blocks == tuple(blocks)
    assert driver.effects == ["save"] * (failing + 1), "nothing more is saved after a failure"
    assert [event.kind for event in events] == ["failed", "kept"]


@pytest.mark.parametrize(("missing", "failing"), [(False, 0), (False, 1), (True, None)])
def test_a_result_too_large_to_keep_is_cut_when_it_cannot_be_stored(*, missing: bool, failing: int | None) -> None:
    driver = Driver(failing=failing, missing=missing)
    offloader = _engine(evicts=True, max_inline_tokens=50_000)
    outcome = driver.drive(offloader._engine.offload(_request([INDEXED])))

    assert isinstance(outcome, Truncated)
    assert isinstance(outcome.error, StorageError)
    assert isinstance(outcome.blocks[0], TextBlock)
    assert ByteCounter().count(outcome.blocks[0].text) <= 50_000
    assert "read_log-" not in outcome.blocks[0].text, "it refers to what is not there"


@pytest.mark.parametrize("blocks", [[INDEXED], [LARGE, IMAGE]])
def test_an_entry_evicted_while_the_rest_is_saved_keeps_the_result(blocks: list[Block]) -> None:
    driver = Driver(missing=True)
    outcome = _offload(driver, blocks, evicts=True)

    assert isinstance(outcome, Kept)
    assert outcome.reason == "storage failed"
    assert driver.effects[-1] == "look"


@pytest.mark.parametrize(("asks", "outcome"), [("policy", Offloaded), ("measured", Offloaded), ("confirm", Offloaded)])
def test_a_failing_host_callable_does_not_stop_the_operation(asks: str, outcome: type) -> None:
    events: list[Event] = []
    driver = Driver(failing=0)
    operation = _engine(on_event=events.append)._engine.offload(_request([LARGE], asks=asks))

    assert type(driver.drive(operation)) is outcome
    assert driver.effects == [asks, "save"]
    assert [event.kind for event in events] == ["failed", "offloaded"]


@pytest.mark.parametrize("broken", ["index_text", "preview"])
@pytest.mark.parametrize("block", [LARGE, INDEXED])
def test_a_failing_index_or_preview_prevents_neither_the_save_nor_the_placeholder(
    broken: str, block: TextBlock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object, **__: object) -> NoReturn:
        raise MemoryError

    if broken == "preview":  # the placeholder then makes its own preview
        others = {name: getattr(preview, name) for name in preview.__all__}
        monkeypatch.setattr(offloading, "preview", SimpleNamespace(**{**others, "preview": failing}))
    else:
        monkeypatch.setattr(offloading, broken, failing)
    driver = Driver()
    outcome = _offload(driver, [block])

    assert isinstance(outcome, Offloaded)
    assert isinstance(outcome.blocks[0], TextBlock)
    assert "a line of a log" in outcome.blocks[0].text, "nothing of the content is shown"
    assert driver.effects[0] == "save"
    assert [record.message.partition("\n")[0] for record in caplog.records] == [
        "a text is stored without its line index or its preview: MemoryError"
    ]


def test_long_work_pauses_between_its_pieces_and_never_after_the_first_save() -> None:
    operation = _engine()._engine.offload(_request([TextBlock("a line of a log\n" * (4 * PIECE_BYTES // 16))]))
    happened: list[str] = []
    try:
        while True:
            effect = operation.send(None)
            happened.append("a pause" if effect is None else effect.what.partition(" ")[0])
    except StopIteration:
        pass

    pauses = happened.index("saving")
    assert happened == ["a pause"] * pauses + ["saving", "saving"]
    assert pauses >= 4
