"""Uses the public names the way users do. It never runs: mypy and pyright check it, both in strict mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import Unpack, assert_type

import coatcheck
from coatcheck import (
    Always,
    Block,
    Content,
    Event,
    FileStorage,
    InMemoryStorage,
    JsonBlock,
    Kept,
    MediaBlock,
    Never,
    Offloaded,
    Offloader,
    OffloaderOptions,
    OpaqueBlock,
    OpenTelemetry,
    OverShare,
    OverTokens,
    Policy,
    Reference,
    Retrieved,
    Settings,
    Stats,
    Storage,
    Stored,
    TextBlock,
    TiktokenCounter,
    TokenCounter,
    ToolResult,
    Truncated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class SyncStorage:
    """A user's own storage, with plain methods."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None: ...

    def load(self, key: str) -> Stored | None: ...


class AsyncStorage:
    """A user's own storage, with coroutines."""

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None: ...

    async def load(self, key: str) -> Stored | None: ...


class WordCounter(TokenCounter):
    """A user's own counter."""

    def count(self, text: str) -> int:
        return len(text.split())


async def ask_a_database(result: ToolResult) -> bool:
    return result.tool_name.startswith("list_")


def by_argument(result: ToolResult) -> OverTokens | None:
    return OverTokens(10_000) if result.tool_args.get("verbose") else None


def on_event(event: Event) -> None:
    assert_type(event.tokens_saved, int)


storages: list[Storage] = [SyncStorage(), AsyncStorage(), InMemoryStorage(), FileStorage("artifacts", fsync=True)]

by_name: dict[str, Policy] = {"get_time": Never()}
rules = {"read_file": OverTokens(10_000)}
Settings(policies=by_name)
Offloader(policies=by_name)
Offloader(policies=rules)
Offloader(policies={("read_file", "list_dir"): Never()})
Offloader(policies={**by_name, ("a", "b"): lambda result: result.tool_name == "a"})
Offloader(policies={"a": "b"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]

offloader = Offloader(
    storages[0],
    max_result_tokens=2_500,
    preview_tokens=1_000,
    policies={
        "get_time": Never(),
        ("read_file", "list_dir"): OverTokens(10_000),
        "search": OverShare(0.02, context_window=200_000),
        "export": ask_a_database,
        "dump": by_argument,
        "*": Always(),
    },
    token_counter=TiktokenCounter("o200k_base"),
    on_event=on_event,
)


def handle(blocks: list[Block]) -> tuple[Reference, ...]:
    outcome = offloader.offload(blocks, tool_name="search", tool_args={"q": "x"}, scope="thread-42")
    assert_type(outcome.blocks, tuple[TextBlock | JsonBlock | MediaBlock | OpaqueBlock, ...])
    match outcome:
        case Kept():
            return ()
        case Offloaded():
            return outcome.references
        case Truncated():
            raise outcome.error


async def read_back(reference: Reference) -> str:
    with coatcheck.scope("thread-42"):
        found = await offloader.aretrieve(str(reference), pattern="ERROR", line_range={"start": 1, "end": 9})
        content = await offloader.aload(str(reference))
    assert_type(found, Retrieved)
    assert_type(content, Content)
    assert_type(content.data, bytes)
    assert_type(offloader.stats(), Stats)
    assert_type(offloader.delete_scope("thread-42"), int)
    assert_type(await offloader.asweep(max_age_seconds=86_400), int)
    return found.text + content.text + await offloader.aexpand("see it")


Offloader(token_counter=WordCounter(), on_event=[on_event, OpenTelemetry()])
handle(
    [TextBlock("x"), JsonBlock({"a": [1, None]}), MediaBlock(b"x", "image/png", name="x.png"), OpaqueBlock(object())]
)


def with_options(**options: Unpack[OffloaderOptions]) -> Offloader:
    """Stands in for a user's or an adapter's own wrapper."""
    return Offloader(InMemoryStorage(), **options)


wrapped = with_options(max_result_tokens=2_500, settings=Settings(preview_tokens=500), on_event=on_event)
assert_type(wrapped.settings, Settings)
assert_type(wrapped.settings.preview_tokens, int | None)
Offloader(max_tokens=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Offloader(show_path="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
with_options(preview_tokens="1000")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

assert_type(coatcheck.__version__, str)
