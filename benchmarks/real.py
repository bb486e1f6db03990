"""Check that everything that real tools returned can be offloaded, previewed and read back.

    python -m benchmarks.real FOLDER

Every file below ``FOLDER`` is tried. In a transcript, as ``coatcheck replay`` reads it, each tool result counts. Any
other text file counts as a whole, and any other file as a medium. Each goes through an ``Offloader`` at five budgets,
and is read back in every way. The exit code is 1 if anything raised, was logged as a failure, cost more than its
budget, or differed from what the tool had returned.
"""

from __future__ import annotations

import argparse
import json
import logging
import mimetypes
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from coatcheck import (
    Always,
    InMemoryStorage,
    InvalidRequest,
    JsonBlock,
    MediaBlock,
    Offloaded,
    Offloader,
    TextBlock,
    TiktokenCounter,
    scope,
)
from coatcheck.core.blocks import json_text
from coatcheck.core.preview import Previewed, preview
from coatcheck.core.settings import MIN_BUDGET
from coatcheck.engine.offloading import PLACEHOLDER_ROOM
from coatcheck.replay.conversation import Result
from coatcheck.replay.files import SUFFIXES, read_conversations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import Block

BUDGETS = (50, 250, 500, 1_000, 2_000)
"""Tokens of a preview, and of a read-back unless its minimum is higher."""

_PAGES = 20
"""Pages of a content that are read in a row from its beginning. After them, its end is read."""

_FRAGMENT = 30
"""Characters from a line that a pattern searches for."""

_QUERIED_BYTES = 8_000_000

Fault: TypeAlias = Literal["exception", "over budget", "inexact"]


@dataclass(frozen=True, slots=True)
class Given:
    """One block that a tool returned, and where it was found."""

    block: TextBlock | JsonBlock | MediaBlock
    name: str

    @property
    def text(self) -> str | None:
        """The text as it is stored; None for a medium."""
        match self.block:
            case TextBlock():
                return self.block.text
            case JsonBlock():
                return json_text(self.block.value)
            case MediaBlock():
                return None

    @property
    def data(self) -> bytes:
        """The bytes as they are stored."""
        text = self.text
        return self.block.data if isinstance(self.block, MediaBlock) else (text or "").encode("utf-8", "replace")


@dataclass(slots=True)
class Report:
    """What was tried, and what went wrong."""

    results: int = 0
    tried: int = 0
    faults: Counter[Fault] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def check(self, holds: object, fault: Fault, what: str) -> None:
        """Count a check, and record it if it failed."""
        self.tried += 1
        if not holds:
            self.faults[fault] += 1
            self.examples.append(f"{fault}: {what}")


def main(arguments: list[str] | None = None) -> int:
    """Try every file in the folder, print the failed checks, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description="Try real results on an Offloader.")
    parser.add_argument("folder", type=Path, help="transcripts, and outputs of tools, at any depth")
    folder: Path = parser.parse_args(arguments).folder
    if not folder.is_dir():
        parser.error(f"{folder} is not a folder")
    report = tried(folder)
    for example in report.examples:
        print(example)
    counts = ", ".join(f"{report.faults[fault]:,} {fault}" for fault in ("exception", "over budget", "inexact"))
    print(f"{report.results:,} results, {report.tried:,} checks: {counts}")
    if not report.results:
        print(f"nothing was found in {folder}")
    return 1 if report.faults or not report.results else 0


def tried(folder: Path) -> Report:
    """Offload and read back everything below ``folder``."""
    report = Report()
    log = _Log(report)
    logger = logging.getLogger("coatcheck")
    logger.addHandler(log)
    try:
        for given in results_in(folder):
            report.results += 1
            for budget in BUDGETS:
                log.about = f"{given.name} at {budget:,} tokens"
                try:
                    with scope("real"):
                        _try(given, budget, report, log.about)
                except Exception as error:  # noqa: BLE001 - this program exists to find them
                    report.check(False, "exception", f"{log.about}: {type(error).__name__}: {error}"[:500])  # noqa: FBT003
    finally:
        logger.removeHandler(log)
    return report


class _Log(logging.Handler):
    """Counts every warning of the library as a fault. A failed preview shows up nowhere else."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self.about = ""

    def emit(self, record: logging.LogRecord) -> None:
        self._report.check(False, "exception", f"{self.about}: {record.getMessage().partition(chr(10))[0]}")  # noqa: FBT003


def results_in(folder: Path) -> Iterator[Given]:
    """Yield what tools returned, without duplicates."""
    known: set[bytes] = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for block in _blocks(path):
            if isinstance(block, (TextBlock, JsonBlock, MediaBlock)):
                given = Given(block, str(path.relative_to(folder)))
                if given.data and given.data not in known:
                    known.add(given.data)
                    yield given


def _blocks(path: Path) -> Iterator[Block]:
    if path.suffix in SUFFIXES:
        try:
            conversations = read_conversations(path, [])
        except InvalidRequest:
            pass  # JSON that is not a transcript is a tool's output
        else:
            parts = (part for conversation in conversations for part in conversation.parts)
            yield from (block for part in parts if isinstance(part, Result) for block in part.result.blocks)
            return
    data = path.read_bytes()
    try:
        yield TextBlock(data.decode("utf-8"))
    except UnicodeDecodeError:
        yield MediaBlock(data, mimetypes.guess_type(path.name)[0] or "application/octet-stream", name=path.name)


@cache
def _counter() -> TiktokenCounter:
    return TiktokenCounter()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Offloaded content, and what is needed to read and check it."""

    offloader: Offloader
    reference: str
    limit: int
    report: Report
    where: str

    def ask(self, **selectors: Any) -> Any:  # noqa: ANN401 - selectors as a model sends them
        """Read back, and check that the answer is within its limit."""
        answer = self.offloader.retrieve(self.reference, **selectors)
        cost = _counter().count(answer.text)
        self.check(cost <= self.limit, "over budget", f"a read-back by {[*selectors]} has {cost:,} tokens")
        return answer

    def check(self, holds: object, fault: Fault, what: str) -> None:
        """Count a check."""
        self.report.check(holds, fault, f"{self.where}: {what}")


def _try(given: Given, budget: int, report: Report, where: str) -> None:
    limit = max(budget, MIN_BUDGET)
    offloader = Offloader(
        InMemoryStorage(),
        preview_tokens=budget,
        policies={"*": Always()},
        max_retrieval_tokens=limit,
        token_counter=_counter(),
    )
    outcome = offloader.offload([given.block], tool_name="tool")
    if not isinstance(outcome, Offloaded):
        return  # a placeholder would not be smaller
    reference = str(outcome.references[0])
    stored = _Stored(offloader=offloader, reference=reference, limit=limit, report=report, where=where)
    cost = sum(_counter().count(block.text) for block in outcome.blocks if isinstance(block, TextBlock))
    stored.check(cost <= budget + PLACEHOLDER_ROOM, "over budget", f"the placeholder has {cost:,} tokens")
    stored.check(offloader.load(stored.reference).data == given.data, "inexact", "what is loaded")
    text = given.text
    if text is None:
        stored.ask()
        native = stored.ask(native_media=True).blocks
        stored.check(given.data in [getattr(block, "data", None) for block in native], "inexact", "the medium")
        return
    _try_preview(stored, given, budget, shown="\n".join(getattr(block, "text", "") for block in outcome.blocks))
    _try_pages(stored, text)
    _try_line(stored, text)
    _try_query(stored, text)


def _try_preview(stored: _Stored, given: Given, budget: int, *, shown: str) -> None:
    """Make the preview again. It must fit the budget by itself, and be the one that is shown."""
    text = given.text or ""
    content_type = "text/plain" if isinstance(given.block, TextBlock) else "application/json"
    content = Previewed.of(text, content_type)
    again = preview(content, _counter(), budget=budget)
    cost = _counter().count(again)
    stored.check(cost <= budget, "over budget", f"the preview has {cost:,} tokens")
    stored.check(again in shown, "inexact", "the same preview made again")


def _try_pages(stored: _Stored, text: str) -> None:
    """Read page after page from the beginning, each at the offset named by the last one, and then the end."""
    offset: int | None = 0
    for _ in range(_PAGES):
        if offset is None:
            break
        answer = stored.ask(offset=offset) if offset else stored.ask()
        page = answer.text.partition("\n")[2].rpartition("\n")[0]
        following = (answer.next_call or {}).get("offset")
        stored.check(page == text[offset:following], "inexact", f"the page at character {offset:,}")
        offset = following
    page = stored.ask(offset=-40).text.partition("\n")[2].rpartition("\n")[0]
    stored.check(page == text[-40:], "inexact", "the last 40 characters")


def _try_line(stored: _Stored, text: str) -> None:
    """Read a line from the middle by its number, and find it by its text."""
    lines = text.removesuffix("\n").split("\n")
    numbers = (number for number in range(len(lines) // 2, len(lines)) if lines[number].strip())
    number = next(islice(numbers, 1), None)
    if number is None:
        return
    line = lines[number].removesuffix("\r")
    answer = stored.ask(line_range=f"{number + 1}-{number + 1}")
    shown = answer.text.partition(f"\n  {number + 1}| ")[2].partition("\n")[0]
    whole = answer.next_call is None
    stored.check(
        shown == line if whole else shown[1:] and line.startswith(shown[:-1]), "inexact", f"line {number + 1:,}"
    )
    fragment = line.strip()[:_FRAGMENT].strip()
    answer = stored.ask(pattern=re.escape(fragment), context_lines=0)
    stored.check(fragment in answer.text.partition("\n")[2], "inexact", f"what matches {fragment!r}")


def _try_query(stored: _Stored, text: str) -> None:
    """If the text is JSON, query the length of the outermost list or object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, (dict, list)) and value and len(text.encode()) <= _QUERIED_BYTES:
        answer = stored.ask(query="length(@)")
        stored.check(f"\n{len(value)}\n" in answer.text, "inexact", "the length by a query")


if __name__ == "__main__":
    sys.exit(main())
