"""An ``Offloader`` turns its storage's errors into ours, with the cause, but without any content they may quote."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from coatcheck import (
    ByteCounter,
    CorruptContent,
    Kept,
    MediaBlock,
    Offloaded,
    Offloader,
    StorageError,
    TextBlock,
    Truncated,
)
from tests.core.storages import AsyncDictStorage, DictStorage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from coatcheck import Outcome, Stored

BIG = TextBlock("".join(f"row {number}\n" for number in range(5_000)))

NO_DESCRIPTORS_LEFT = """
import resource, sys
from coatcheck import FileStorage, Offloader, StorageError, TextBlock

offloader = Offloader(FileStorage(sys.argv[1]), max_inline_tokens=20_000)
results = [[TextBlock("word " * words)] for words in (8_000, 9_000, 30_000)]
kept, *later = results
print(type(offloader.offload(kept, tool_name="t", scope="s")).__name__)
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError:
    pass
for result in later:
    print(type(offloader.offload(result, tool_name="t", scope="s")).__name__)
try:
    offloader.delete_scope("s")
except StorageError as error:
    print(error)
"""


class Raising(DictStorage):
    """Fails to load once it has an ``error``. ``describe_error`` may choose the words for it."""

    error: BaseException | None = None
    describe_error: Any = None

    def load(self, key: str) -> Stored | None:
        if self.error is not None:
            raise self.error
        return super().load(key)


class LocalRaising(Raising):
    is_local = True


class AsyncRaising(AsyncDictStorage):
    error: BaseException | None = None
    describe_error: Any = None

    async def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        if self.error is not None:
            raise self.error
        return await super().load_range(key, start=start, length=length)

    async def load(self, key: str) -> Stored | None:
        if self.error is not None:
            raise self.error
        return await super().load(key)


async def failure_of(storage: Any, error: BaseException, way: str) -> StorageError:  # noqa: ANN401 - of either kind
    """Return the error of an offloader whose storage raises ``error``."""
    offloader = Offloader(storage)
    reference = str((await offloader.aoffload([BIG], tool_name="t")).references[0])
    storage.error = error
    load = offloader.aload(reference) if way == "async" else asyncio.to_thread(offloader.load, reference)
    with pytest.raises(StorageError) as raised:
        await load
    return raised.value


async def outcome_of(offloader: Offloader, block: TextBlock, way: str) -> Outcome:
    """Return the outcome of offloading a block."""
    if way == "async":
        return await offloader.aoffload([block], tool_name="t")
    return await asyncio.to_thread(offloader.offload, [block], tool_name="t")


@pytest.fixture(params=[Raising, LocalRaising, AsyncRaising], ids=["network", "local", "coroutines"])
def storage(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - of either kind
    return request.param()


WAYS = pytest.mark.parametrize("way", ["sync", "async"])


@WAYS
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EIO, "refused", "/a/file"), f"OSError: [Errno {errno.EIO}] refused: '/a/file'"),
        (TimeoutError(errno.ETIMEDOUT, "still locked"), f"TimeoutError: [Errno {errno.ETIMEDOUT}] still locked"),
        (asyncio.TimeoutError("content that was quoted"), "no answer in time"),
        (OSError("content that was quoted"), "OSError"),
        (OSError("could not write %s", "content that was quoted"), "OSError"),
        (OSError({"un": "hashable"}, "content that was quoted"), "OSError"),
        (OSError(2**70, "content that was quoted"), "OSError"),
        (ValueError("content that was quoted"), "ValueError"),
        (KeyError("content that was quoted"), "KeyError"),
        (AttributeError("content that was quoted"), "AttributeError"),
    ],
    ids=[
        "system",
        "system's limit",
        "limit",
        "OSError",
        "words",
        "dict",
        "number",
        "ValueError",
        "KeyError",
        "AttributeError",
    ],
)
async def test_a_foreign_error_becomes_ours_with_only_the_systems_words(
    storage: Any,  # noqa: ANN401 - of either kind
    error: Exception,
    words: str,
    way: str,
) -> None:
    failure = await failure_of(storage, error, way)

    assert type(failure) is StorageError
    assert str(failure) == f"loading ({type(storage).__name__}) failed: {words}"
    cause = failure.__cause__
    assert cause is not None
    assert (type(cause), cause.args) == (type(error), error.args)  # a future copies a TimeoutError


@WAYS
@pytest.mark.parametrize(
    "error", [CorruptContent("ours"), StorageError("ours")], ids=lambda value: type(value).__name__
)
async def test_our_own_error_passes_unchanged(storage: Any, error: StorageError, way: str) -> None:  # noqa: ANN401
    assert await failure_of(storage, error, way) is error


@pytest.mark.parametrize("storage", [Raising(), LocalRaising()], ids=["network", "local"])
def test_an_interrupt_passes_unchanged(storage: Any) -> None:  # noqa: ANN401 - of either kind
    offloader = Offloader(storage)
    reference = str(offloader.offload([BIG], tool_name="t").references[0])
    storage.error = KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt) as raised:
        offloader.load(reference)

    assert raised.value is storage.error


@WAYS
async def test_a_storage_may_choose_the_words_for_its_errors(storage: Any, way: str) -> None:  # noqa: ANN401
    storage.describe_error = lambda error: f"its own words of {error}"

    failure = await failure_of(storage, ValueError("this"), way)

    assert str(failure) == f"loading ({type(storage).__name__}) failed: its own words of this"
    assert isinstance(failure.__cause__, ValueError)
    assert "its own words" not in failure.for_model


@WAYS
@pytest.mark.parametrize(
    "describe",
    [
        mock.Mock(return_value=None),
        mock.Mock(return_value=b"bytes"),
        mock.Mock(side_effect=RuntimeError("content that was quoted")),
        mock.Mock(side_effect=StorageError("content that was quoted")),
        mock.Mock(),
        "no method",
    ],
    ids=["None", "bytes", "raises", "raises ours", "mock", "no method"],
)
async def test_an_unusable_error_description_is_replaced_by_the_class(storage: Any, describe: object, way: str) -> None:  # noqa: ANN401
    storage.describe_error = describe

    failure = await failure_of(storage, ValueError("content that was quoted"), way)

    assert str(failure) == f"loading ({type(storage).__name__}) failed: ValueError"
    assert isinstance(failure.__cause__, ValueError)


@WAYS
async def test_a_storage_is_not_asked_to_describe_errors_of_others(
    storage: Any,  # noqa: ANN401 - of either kind
    way: str,
) -> None:
    storage.describe_error = mock.Mock(return_value="asked")

    failure = await failure_of(storage, asyncio.TimeoutError(), way)
    storage.error = None
    offloader = Offloader(storage)
    await offloader.aload((await offloader.aoffload([BIG], tool_name="t")).references[0])

    assert str(failure).endswith("failed: no answer in time")
    assert not storage.describe_error.called


@WAYS
async def test_an_error_description_is_one_line_of_bounded_length(storage: Any, way: str) -> None:  # noqa: ANN401
    storage.describe_error = lambda _: "first\nsecond\r\n" + "word " * 1_000

    failure = str(await failure_of(storage, ValueError(), way))

    assert failure.startswith(f"loading ({type(storage).__name__}) failed: first second word word")
    assert len(failure) < 1_100
    assert failure.isprintable()


@WAYS
async def test_a_result_is_cut_and_not_lost_whatever_the_storage_raises(way: str) -> None:
    class Odd(DictStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            raise OSError("could not write %s", content[:20])  # noqa: EM101, TRY003 - a common mistake

    offloader = Offloader(Odd(), max_inline_tokens=3_000)
    outcome = await outcome_of(offloader, TextBlock(BIG.text * 3), way)

    assert isinstance(outcome, Truncated)
    assert "row 1\n" in outcome.blocks[0].text  # type: ignore[union-attr] # a text block
    assert "could not be stored (the storage failed)" in outcome.blocks[0].text  # type: ignore[union-attr] # as above


@WAYS
async def test_a_proxy_that_cannot_connect_is_a_failing_storage(way: str) -> None:
    class Proxy:
        is_connected = True

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the storage behind it has
            if not self.is_connected:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
            return getattr(behind, name)

    behind, proxy = DictStorage(), Proxy()
    offloader = Offloader(proxy)
    proxy.is_connected = False
    outcome = await outcome_of(offloader, BIG, way)

    assert isinstance(outcome, Kept)
    assert outcome.reason == "storage failed"


@WAYS
async def test_if_a_storage_fails_to_return_its_path_only_the_path_is_missing(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Pathless(DictStorage):
        is_local = False

        def local_path(self, key: str, *, content_type: str) -> Any:  # noqa: ANN401 - it never returns
            raise PermissionError(errno.EACCES, "refused", key)

    offloader = Offloader(Pathless(), show_path=True)
    outcome = await outcome_of(offloader, BIG, way)

    assert isinstance(outcome, Offloaded)
    assert "file:" not in outcome.blocks[0].text  # type: ignore[union-attr] # a text block
    assert "its path cannot be named: PermissionError" in caplog.text


async def test_the_storages_own_error_description_is_logged_when_a_save_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Full(DictStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            raise ValueError(content)

        def describe_error(self, error: Exception) -> str:
            return f"{type(error).__name__}, its own words"

    await Offloader(Full()).aoffload([BIG], tool_name="t")

    assert f"saving {len(BIG.text):,} bytes (Full) failed: ValueError, its own words" in caplog.text
    assert "row 17" not in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_a_program_without_an_event_loop_goes_on_when_no_file_descriptor_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NO_DESCRIPTORS_LEFT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    *outcomes, failure = done.stdout.splitlines() or [done.stderr]
    assert outcomes == ["Offloaded", "Kept", "Truncated"], done.stderr
    assert failure.startswith("listing (FileStorage) failed: OSError: [Errno 24] Too many open files")


class _Full(DictStorage):
    """Refuses every save, as with a full disk."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("texts", [[], [BIG]], ids=["media alone", "media and text"])
def test_if_media_have_no_room_for_their_marks_only_the_notice_is_left(texts: list[TextBlock]) -> None:
    media = [MediaBlock(b"%d" % number, "image/png") for number in range(600)]
    offloader = Offloader(_Full(), max_inline_tokens=3_000, token_counter=ByteCounter())

    cut = offloader.offload([*media, *texts], tool_name="gallery", scope="s")

    assert isinstance(cut, Truncated)
    assert ByteCounter().count(cut.text) <= 3_000
    assert "No space left on device" in cut.text
