"""``ToolResultStoreBridge``: who may read what, what is never overwritten, and how a store's errors surface."""

from __future__ import annotations

import copy
import errno
from dataclasses import dataclass, field

import pytest

from coatcheck import (
    Always,
    ByteCounter,
    InvalidRequest,
    Kept,
    MediaBlock,
    Offloaded,
    Offloader,
    ReferenceExpired,
    ReferenceNotFound,
    StorageError,
    TextBlock,
    ToolResultStoreBridge,
)
from coatcheck.testing.samples import ODD_TEXT, noise, numbered_lines

BIG = TextBlock(numbered_lines(400))
IMAGE = MediaBlock(noise(1_000), "image/png")


@dataclass
class Store:
    """A store as users write them, with its own kind of reference."""

    supports_binary_content: bool = True
    kept: dict[str, str | bytes] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)

    def write(self, *, key: str, content: str | bytes) -> str:
        self.writes.append(key)
        self.kept[f"store://{key}"] = content
        return f"store://{key}"

    def read(self, reference: str) -> str | bytes:
        return self.kept[reference]


class NumberingStore(Store):
    """A store that numbers its entries, so that no reference says whose it is."""

    def write(self, *, key: str, content: str | bytes) -> str:
        self.kept[f"entry {len(self.kept)}"] = content
        return f"entry {len(self.kept) - 1}"


def make_offloader(store: object, **knobs: object) -> Offloader:
    return Offloader(
        ToolResultStoreBridge(store),
        max_result_tokens=600,
        preview_tokens=100,
        token_counter=ByteCounter(),
        **knobs,  # type: ignore[arg-type]
    )


def reference_of(outcome: object) -> str:
    assert isinstance(outcome, Offloaded)
    return outcome.references[0].id


def test_the_stores_own_reference_is_shown_and_accepted_verbatim() -> None:
    store = Store()
    offloader = make_offloader(store)

    outcome = offloader.offload([BIG], tool_name="fetch", scope="a")

    reference = reference_of(outcome)
    assert store.kept == {reference: BIG.text}
    assert reference.endswith(".txt")
    assert reference in outcome.text
    assert offloader.load(reference, scope="a").text == BIG.text
    assert "line 7 of 400" in offloader.retrieve(reference, scope="a", line_range="7-7").text


def test_a_deep_copy_is_the_bridge_itself_because_pipelines_copy_their_data() -> None:
    store = Store()

    copied = copy.deepcopy({"tool_result_store": ToolResultStoreBridge(store)})["tool_result_store"]
    copied.save_named("name", b"content", content_type="text/plain")

    assert len(store.kept) == 1


class Utf8Store(Store):
    """A store that declares that it writes strings as UTF-8."""

    stores_text_as_utf8 = True


class Redacting(Utf8Store):
    """A store that inherits this declaration, but may change strings."""


def test_a_store_that_writes_utf8_gets_bytes_and_a_subclass_of_it_gets_strings() -> None:
    stores = Utf8Store(), Redacting()

    for store in stores:
        offloader = make_offloader(store)
        reference = reference_of(offloader.offload([TextBlock(ODD_TEXT)], tool_name="fetch", scope="a"))
        assert offloader.load(reference, scope="a").data == ODD_TEXT.encode("utf-8", "surrogatepass")

    assert list(stores[0].kept.values()) == [ODD_TEXT.encode("utf-8", "surrogatepass")]
    assert list(stores[1].kept.values()) == [ODD_TEXT]


@pytest.mark.parametrize("text", [ODD_TEXT, '{"a": 1}\r\n' * 500], ids=["odd characters", "JSON"])
def test_text_comes_back_byte_for_byte(text: str) -> None:
    offloader = make_offloader(Store(supports_binary_content=False), policies={"*": Always()})

    reference = reference_of(offloader.offload([TextBlock(text)], tool_name="fetch", scope="a"))

    content = offloader.load(reference, scope="a")
    assert (content.data, content.content_type) == (text.encode("utf-8", "surrogatepass"), "text/plain")


def test_media_are_written_as_bytes_and_keep_their_type() -> None:
    store = Store()
    offloader = make_offloader(store, policies={"*": Always()})
    known, unknown = IMAGE, MediaBlock(b"\xff\xfe odd", "application/x-odd")

    outcome = offloader.offload([known, unknown], tool_name="fetch", scope="a")

    first, second = (offloader.load(reference.id, scope="a") for reference in outcome.references)
    assert sorted(map(str, store.kept.values())) == sorted(map(str, (known.data, unknown.data)))
    assert (first.data, first.content_type) == (known.data, "image/png")
    assert (second.data, second.content_type) == (unknown.data, "application/octet-stream")


def test_a_store_without_binary_support_gets_no_media(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(supports_binary_content=False)

    outcome = make_offloader(store).offload([IMAGE], tool_name="fetch", policy=Always())

    assert isinstance(outcome, Kept)
    assert store.kept == {}
    assert "Store does not support binary content, here image/png" in caplog.text


@pytest.mark.parametrize(
    ("block", "ending", "comes_back_as"),
    [
        (MediaBlock(b"a,b\n1,2\n", "text/csv"), ".csv", "text/csv"),
        (MediaBlock(b"a,b\n1,2\n", "text/csv; charset=utf-8"), ".csv", "text/csv"),
        (MediaBlock(b"# Notes", "application/octet-stream", name="notes.md"), ".md", "text/markdown"),
        (MediaBlock(b"%PDF\xff", "application/pdf", name="notes.md"), ".md", "application/octet-stream"),
        (MediaBlock(b"%PDF\xff", "application/pdf", name="a/../b.pdf"), ".pdf", "application/pdf"),
        (MediaBlock(b"\xff", "application/x-odd", name="x.y z"), ".bin", "application/octet-stream"),
        (MediaBlock(b"\xff", "application/x-odd", name="x." + "y" * 40), ".bin", "application/octet-stream"),
        (MediaBlock(b"\xff", "application/x-odd", name="x./../../y"), ".bin", "application/octet-stream"),
    ],
)
def test_a_files_own_extension_is_kept_and_never_turns_other_content_into_text(
    block: MediaBlock, ending: str, comes_back_as: str
) -> None:
    store = Store()
    offloader = make_offloader(store, policies={"*": Always()})

    content = offloader.load(reference_of(offloader.offload([block], tool_name="fetch", scope="a")), scope="a")

    (key,) = store.writes
    assert key.endswith(ending)
    assert "/" not in key
    assert (content.data, content.content_type) == (block.data, comes_back_as)


def test_content_with_two_file_names_is_readable_under_both_references() -> None:
    store = Store()
    offloader = make_offloader(store, policies={"*": Always()})
    blocks = [MediaBlock(b"same", "application/pdf", name=name) for name in ("a.pdf", "a.md")]

    references = [reference_of(offloader.offload([block], tool_name="fetch", scope="a")) for block in blocks]

    assert len(set(references)) == 2
    assert [offloader.load(reference, scope="a").data for reference in references] == [b"same", b"same"]


def test_another_scopes_reference_is_unknown() -> None:
    offloader = make_offloader(Store())
    reference = reference_of(offloader.offload([BIG], tool_name="fetch", scope="a"))

    with pytest.raises(ReferenceNotFound):
        offloader.retrieve(reference, scope="b")


def test_missing_content_is_expired_and_a_made_up_reference_is_unknown() -> None:
    store = Store()
    offloader = make_offloader(store)
    reference = reference_of(offloader.offload([BIG], tool_name="fetch", scope="a"))
    store.kept.clear()

    with pytest.raises(ReferenceExpired):
        offloader.load(reference, scope="a")
    with pytest.raises(ReferenceNotFound) as unknown:
        offloader.load("store://never", scope="a")
    assert not isinstance(unknown.value, ReferenceExpired)


def test_a_reference_without_a_scope_is_readable_from_every_scope() -> None:
    offloader = make_offloader(NumberingStore())

    reference = reference_of(offloader.offload([BIG], tool_name="fetch", scope="a"))

    assert reference == "entry 0"
    assert offloader.load(reference, scope="b").text == BIG.text


def test_different_contents_never_share_a_key() -> None:
    store = Store()
    offloader = make_offloader(store)

    for text in (numbered_lines(400), numbered_lines(401), numbered_lines(400)):
        offloader.offload([TextBlock(text)], tool_name="f" * 1_400, scope="a")

    assert len(store.kept) == 2
    assert len(store.writes) == 3
    assert max(map(len, store.writes)) < 200


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyError("gone"), ReferenceNotFound),
        (FileNotFoundError("gone"), ReferenceNotFound),
        (ValueError("resolves outside the root"), ReferenceNotFound),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "damaged"), StorageError),
        (PermissionError("not for you"), StorageError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_an_error_of_the_store_becomes_the_matching_error_of_ours(error: Exception, expected: type[Exception]) -> None:
    class Raising(Store):
        def read(self, reference: str) -> str | bytes:
            raise error

    with pytest.raises(expected):
        make_offloader(Raising()).load("store://x", scope="a")


def test_a_result_stays_if_the_store_fails_to_write(caplog: pytest.LogCaptureFixture) -> None:
    class Full(Store):
        def write(self, *, key: str, content: str | bytes) -> str:
            raise OSError(errno.ENOSPC, "No space left on device")

    outcome = make_offloader(Full()).offload([BIG], tool_name="fetch")

    assert isinstance(outcome, Kept)
    assert "No space left on device" in caplog.text


@pytest.mark.parametrize("store", [None, object(), {}, Store], ids=["None", "object", "dict", "class"])
def test_an_object_that_is_not_a_store_is_refused(store: object) -> None:
    with pytest.raises(InvalidRequest, match="ToolResultStore must have the methods write"):
        ToolResultStoreBridge(store)


def test_the_bridge_gives_access_to_its_store() -> None:
    store = Store()

    assert ToolResultStoreBridge(store).store is store
    assert repr(ToolResultStoreBridge(store)).startswith("ToolResultStoreBridge(Store(")
