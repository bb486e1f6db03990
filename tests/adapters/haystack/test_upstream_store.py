"""``FileSystemToolResultStore`` compared with Haystack's own: the same keys, references, refusals and files."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import haystack.hooks.tool_result_offloading as upstream
import pytest

import coatcheck_haystack
from coatcheck import Offloader, ReferenceNotFound, ToolResultStoreBridge
from coatcheck.testing.samples import EVERY_BYTE, ODD_TEXT
from coatcheck_haystack import FileSystemToolResultStore, ToolResultOffloadHook
from tests.adapters.haystack.agents import LONG, state_of

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="modes and links as POSIX has them")


@pytest.fixture(params=[upstream, coatcheck_haystack], ids=["upstream", "ours"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param.FileSystemToolResultStore(tmp_path / "results")


def test_a_store_takes_binary_content(store: Any, tmp_path: Path) -> None:
    assert store.supports_binary_content is True
    assert store.root == tmp_path / "results"


@pytest.mark.parametrize(
    "content",
    ["text\nä漢\n", "", b"", EVERY_BYTE, b"\x89PNG\xff"],
    ids=["text", "no text", "no bytes", "every byte", "few bytes"],
)
def test_what_was_written_is_read(store: Any, content: str | bytes) -> None:
    assert store.read(store.write(key="a.bin", content=content)) == ("" if content == b"" else content)


def test_the_reference_is_the_absolute_path(store: Any, tmp_path: Path) -> None:
    reference = store.write(key="1_search_call-1.txt", content="x")

    assert reference == str((tmp_path / "results/1_search_call-1.txt").resolve())
    assert Path(reference).read_text(encoding="utf-8") == "x"


def test_keys_may_be_nested_and_references_relative(store: Any) -> None:
    store.write(key="a/b/c.txt", content="x")

    assert store.read("a/b/c.txt") == "x"
    assert store.read("a/../a/b/c.txt") == "x"


def test_writing_a_key_again_replaces_its_content(store: Any) -> None:
    store.write(key="a.txt", content="long " * 100)
    store.write(key="a.txt", content="x")

    assert store.read("a.txt") == "x"


def test_a_folder_given_as_a_str_is_the_same(store: Any) -> None:
    store.write(key="a.txt", content="x")

    assert type(store)(str(store.root)).read("a.txt") == "x"


@pytest.mark.parametrize("key", ["../x.txt", "a/../../x.txt", "/etc/x.txt", "a\0b"])
def test_a_key_that_leads_out_of_the_folder_is_refused(store: Any, key: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"outside the store root|null"):
        store.write(key=key, content="x")
    with pytest.raises(ValueError, match=r"outside the store root|null"):
        store.read(key)
    assert not list(tmp_path.rglob("x.txt"))


@POSIX_ONLY
def test_a_link_that_leads_out_of_the_folder_is_refused(store: Any, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "results/link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/secret").write_text("secret")

    with pytest.raises(ValueError, match="outside the store root"):
        store.write(key="link/x.txt", content="x")
    with pytest.raises(ValueError, match="outside the store root"):
        store.read("link/secret")


def test_a_missing_file_is_an_error(store: Any) -> None:
    with pytest.raises(FileNotFoundError):
        store.read("missing.txt")


def test_a_store_is_serialized_as_its_folder(store: Any) -> None:
    written = store.to_dict()

    assert written["init_parameters"] == {"root": str(store.root)}
    assert type(store).from_dict(written).root == store.root


# Ours and theirs.


def test_we_read_what_haystacks_own_hook_wrote(tmp_path: Path) -> None:
    state = state_of(LONG)
    theirs = upstream.FileSystemToolResultStore(tmp_path)
    upstream.ToolResultOffloadHook(theirs, {"*": upstream.AlwaysOffload()}).run(state)
    (reference,) = state.data["messages"][-1].meta["tool_result_offloaded"]

    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path))

    assert hook.offloader.load(reference).text == LONG
    assert "row 7:" in hook.offloader.retrieve(reference, scope="a", pattern="row 7:").text


def test_theirs_reads_what_we_wrote(tmp_path: Path) -> None:
    state = state_of(LONG)
    ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), {"*": upstream.AlwaysOffload()}).run(state)
    (reference,) = state.data["messages"][-1].meta["tool_result_offloaded"]

    assert upstream.FileSystemToolResultStore(tmp_path).read(reference) == LONG


# What only ours does.


def test_lone_surrogates_are_written_and_read_back(tmp_path: Path) -> None:
    offloader = Offloader(ToolResultStoreBridge(FileSystemToolResultStore(tmp_path)))
    state = state_of(ODD_TEXT)

    ToolResultOffloadHook(offloader, {"*": upstream.AlwaysOffload()}).run(state)

    (reference,) = state.data["messages"][-1].meta["tool_result_offloaded"]
    assert offloader.load(reference).data == ODD_TEXT.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", ["x" * 1_400, "a.txt/b", ".", ""], ids=["too long", "below a file", "dot", "empty"])
def test_a_name_that_no_file_can_have_is_not_found(tmp_path: Path, name: str) -> None:
    store = FileSystemToolResultStore(tmp_path)
    store.write(key="a.txt", content="x")

    with pytest.raises((FileNotFoundError, ValueError)):
        store.read(name)
    with pytest.raises(ReferenceNotFound):
        Offloader(ToolResultStoreBridge(store)).load(name or "?")


@POSIX_ONLY
def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    store = FileSystemToolResultStore(tmp_path / "results")

    path = Path(store.write(key="a/b/c.txt", content="x"))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:3]] == [0o700] * 3


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileSystemToolResultStore(tmp_path)
    store.write(key="a.txt", content="old")

    def full(*_: object) -> None:
        msg = "No space left on device"
        raise OSError(msg)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        store.write(key="a.txt", content="new")

    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert store.read("a.txt") == "old"


def test_a_read_during_a_write_returns_whole_content(tmp_path: Path) -> None:
    store = FileSystemToolResultStore(tmp_path)
    contents = {letter * 200_000 for letter in "abc"}
    store.write(key="a.txt", content="a" * 200_000)
    go_on = threading.Event()

    def write() -> None:
        while not go_on.is_set():
            for content in contents:
                store.write(key="a.txt", content=content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {store.read("a.txt") for _ in range(200)} <= contents
    finally:
        go_on.set()
        writer.join()
