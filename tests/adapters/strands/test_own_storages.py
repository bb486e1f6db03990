"""The user's own storages: subclasses with overrides, classes of Strands' shape, mocks; and what a host stores."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from strands.storage import LocalFileStorage
from strands.vended_plugins import context_offloader as theirs

import coatcheck_strands
from coatcheck import InvalidRequest, Offloader
from coatcheck_strands import ContextOffloader, FileStorage, InMemoryStorage, S3Storage
from tests.adapters.strands.agents import (
    BIG,
    MIDDLE,
    RETRIEVE,
    agent,
    call,
    reading,
    references,
    results,
    returning,
    text_of,
)
from tests.adapters.strands.sandboxes import FolderSandbox
from tests.storage.seaweed import BUCKET, session

FOUND = ">  7| line 7 of"
READ = (call(), reading(pattern="^line 7 of"))


def flipped(content: bytes) -> bytes:
    """Encrypt ``content``, well enough for a test. A second call decrypts it."""
    return bytes(byte ^ 0x5A for byte in content)


class Encrypts:
    """A mix-in that overrides the two methods of Strands' shape, as users do to encrypt."""

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        return str(await super().store(key, flipped(content), content_type))  # type: ignore[misc]

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        content, content_type = await super().retrieve(reference)  # type: ignore[misc]
        return flipped(content), content_type


class EncryptedMemory(Encrypts, InMemoryStorage):
    pass


class EncryptedFiles(Encrypts, FileStorage):
    pass


class EncryptedS3(Encrypts, S3Storage):
    pass


class Keyed(FileStorage):
    """Takes an argument that its base class does not, and overrides the two methods."""

    def __init__(self, folder: str, key: int, **more: Any) -> None:  # noqa: ANN401
        super().__init__(folder, **more)
        self.key = key

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        return await super().store(key, bytes(byte ^ self.key for byte in content), content_type)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        content, content_type = await super().retrieve(reference)
        return bytes(byte ^ self.key for byte in content), content_type


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=["memory", "files", "s3"])
def encrypted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    if request.param == "memory":
        return EncryptedMemory()
    if request.param == "files":
        return EncryptedFiles(str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", request.getfixturevalue("server").endpoint)
    return EncryptedS3(BUCKET, tmp_path.name, session())


def stored_bytes(storage: Any) -> bytes:  # noqa: ANN401
    """Return everything that a storage holds, without going through its ``retrieve``."""
    if isinstance(storage, FileStorage):
        return all_bytes(storage.root)
    if isinstance(storage, S3Storage):
        client = session().client("s3")
        listed = client.list_objects_v2(Bucket=BUCKET, Prefix=storage._prefix)["Contents"]
        return b"".join(client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in listed)
    return b"".join(entry.content for entry, _ in storage._entries.values())


def test_stored_content_goes_through_an_override(encrypted: Any) -> None:  # noqa: ANN401
    subject = agent(ContextOffloader(encrypted), turns=READ)

    subject("go")

    assert FOUND in text_of(results(subject)[1])
    assert MIDDLE.encode() not in stored_bytes(encrypted)
    assert flipped(MIDDLE.encode()) in stored_bytes(encrypted)


def test_the_storage_with_an_override_reads_its_reference(encrypted: Any) -> None:  # noqa: ANN401
    subject = agent(ContextOffloader(encrypted))
    subject("go")

    (reference,) = references(results(subject)[0])
    assert asyncio.run(encrypted.retrieve(reference)) == (BIG.encode(), "text/plain")


def test_a_reference_from_an_override_belongs_to_its_scope(encrypted: Any) -> None:  # noqa: ANN401
    plugin = ContextOffloader(encrypted, scope=lambda one: one.invocation_state["tenant"])
    mine = agent(plugin)
    mine("go", invocation_state={"tenant": "a"})
    (reference,) = references(results(mine)[0])

    for tenant, status in (("a", "success"), ("b", "error")):
        reader = agent(plugin, turns=(call(RETRIEVE, reference=reference, pattern="^line 7 of"),))
        reader("go", invocation_state={"tenant": tenant})
        assert results(reader)[0]["status"] == status


def test_a_long_tool_name_does_not_push_the_scope_out_of_a_key() -> None:
    storage = EncryptedMemory()
    name = "list_all_the_records_of_one_customer_in_a_region"
    plugin = ContextOffloader(storage, scope=lambda one: one.invocation_state["tenant"])
    mine = agent(plugin, tools=[returning(BIG, name=name)], turns=(call(name),))
    mine("go", invocation_state={"tenant": "a"})
    reader = agent(plugin, turns=(call(RETRIEVE, reference=references(results(mine)[0])[0]),))

    reader("go", invocation_state={"tenant": "b"})

    assert results(reader)[0]["status"] == "error"


def test_content_saved_before_the_class_overrode_store_is_still_read(tmp_path: Path) -> None:
    plain = agent(ContextOffloader(FileStorage(str(tmp_path))))
    plain("go")
    (reference,) = references(results(plain)[0])

    later = agent(
        ContextOffloader(EncryptedFiles(str(tmp_path))),
        turns=(call(RETRIEVE, reference=reference, pattern="^line 7 "),),
    )
    later("go")

    assert FOUND in text_of(results(later)[0])


def test_an_override_set_on_an_instance_is_honoured() -> None:
    storage = InMemoryStorage()
    storage.store = AsyncMock(return_value="theirs_1")  # type: ignore[method-assign]

    subject = agent(ContextOffloader(storage))
    subject("go")

    storage.store.assert_awaited_once()
    assert references(results(subject)[0]) == ["theirs_1"]


def test_unused_content_that_an_override_stored_is_evicted() -> None:
    storage = EncryptedMemory(evict_after_turns=2)
    subject = agent(ContextOffloader(storage), turns=(call(), *[call("short")] * 4), tools=[*short_and_big()])

    subject("go")

    assert stored_bytes(storage) == b""


def short_and_big() -> list[Any]:
    return [returning("ok", name="short"), returning(BIG)]


# In a sandbox.


@pytest.mark.parametrize("bound", ["at its making", "by the plugin"])
def test_an_override_is_honoured_in_a_sandbox(bound: str, tmp_path: Path) -> None:
    sandbox = FolderSandbox(tmp_path / "inside")
    more = {"sandbox": sandbox} if bound == "at its making" else {}
    storage = Keyed("kept", 0x5A, **more)
    subject = agent(ContextOffloader(storage), turns=READ, sandbox=sandbox)

    subject("go")

    assert FOUND in text_of(results(subject)[1])
    assert flipped(MIDDLE.encode()) in all_bytes(tmp_path / "inside")
    assert MIDDLE.encode() not in all_bytes(tmp_path / "inside")
    assert not Path("kept").exists()


def test_a_folder_may_be_given_for_a_sandbox(tmp_path: Path) -> None:
    storage = FileStorage(artifact_dir="kept", sandbox=FolderSandbox(tmp_path))

    asyncio.run(storage.store("one", b"content"))

    assert (tmp_path / "kept").is_dir()


class EncryptedLocalFiles(LocalFileStorage):
    """Overrides the two methods of a ``strands.storage`` class, and has state of its own."""

    def __init__(self, folder: Path, key: int) -> None:
        super().__init__(str(folder))
        self.key = key

    async def write(self, key: str, data: bytes) -> None:
        await super().write(key, bytes(byte ^ self.key for byte in data))

    async def read(self, key: str) -> bytes | None:
        data = await super().read(key)
        return None if data is None else bytes(byte ^ self.key for byte in data)


@pytest.mark.parametrize("whose", ["plugin", "agent"])
@pytest.mark.parametrize("is_inside", [False, True], ids=["this machine", "sandbox"])
def test_an_override_of_strands_own_files_is_honoured(whose: str, tmp_path: Path, *, is_inside: bool) -> None:
    storage = EncryptedLocalFiles(Path("kept") if is_inside else tmp_path, 0x5A)
    more: dict[str, Any] = {"sandbox": FolderSandbox(tmp_path)} if is_inside else {}
    if whose == "agent":
        more["storage"] = storage
    plugin = ContextOffloader(None if whose == "agent" else storage)
    subject = agent(plugin, turns=READ, **more)

    subject("go")

    assert FOUND in text_of(results(subject)[1])
    assert flipped(MIDDLE.encode()) in all_bytes(tmp_path)
    assert MIDDLE.encode() not in all_bytes(tmp_path)
    assert not Path("kept").exists()


def test_a_subclass_with_its_own_for_sandbox_chooses_the_storage(tmp_path: Path) -> None:
    class Chooses(EncryptedLocalFiles):
        def for_sandbox(self, sandbox: object) -> LocalFileStorage:
            del sandbox
            return LocalFileStorage(str(tmp_path / "chosen"))

    subject = agent(ContextOffloader(Chooses(tmp_path, 0x5A)), turns=READ)

    subject("go")

    assert FOUND in text_of(results(subject)[1])
    assert MIDDLE.encode() in all_bytes(tmp_path / "chosen")


# Classes of Strands' shape.


class Ledger:
    """A storage of Strands' shape whose ``save`` and ``load`` mean something else."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[bytes, str]] = {}

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        self.kept[key] = (content, content_type)
        return key

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        return self.kept[reference]

    def save(self, path: str) -> None:
        raise AssertionError(path)

    def load(self, path: str) -> None:
        raise AssertionError(path)


def test_a_storage_of_strands_shape_is_used_as_one_whatever_other_methods_it_has() -> None:
    storage = Ledger()
    subject = agent(ContextOffloader(storage), turns=READ)

    subject("go")

    assert list(storage.kept.values()) == [(BIG.encode(), "text/plain")]
    assert FOUND in text_of(results(subject)[1])


@pytest.mark.parametrize("module", [theirs, coatcheck_strands], ids=["theirs", "ours"])
@pytest.mark.parametrize("spec", [None, ["store", "retrieve"]], ids=["anything", "the shape"])
def test_a_mock_of_the_shape_works(module: Any, spec: list[str] | None) -> None:  # noqa: ANN401
    storage = MagicMock(spec=spec)
    storage.store = AsyncMock(return_value="ref_1")
    storage.retrieve = AsyncMock(return_value=(BIG.encode(), "text/plain"))
    if spec is None:
        storage.for_sandbox.return_value = storage
    subject = agent(module.ContextOffloader(storage), turns=READ)

    subject("go")

    assert references(results(subject)[0]) == ["ref_1"]
    assert FOUND in text_of(results(subject)[1])


@pytest.mark.parametrize("module", [theirs, coatcheck_strands], ids=["theirs", "ours"])
def test_a_mock_that_fails_keeps_the_result(module: Any, caplog: pytest.LogCaptureFixture) -> None:  # noqa: ANN401
    storage = MagicMock(spec=["store", "retrieve"])
    storage.store.side_effect = RuntimeError("disk full")
    subject = agent(module.ContextOffloader(storage))

    with caplog.at_level(logging.WARNING):
        subject("go")

    assert text_of(results(subject)[0]) == BIG
    assert "failed to offload" in caplog.text


@pytest.mark.parametrize("storage", [FileStorage, InMemoryStorage, LocalFileStorage])
def test_a_class_in_place_of_a_storage_object_is_refused(storage: type) -> None:
    with pytest.raises(InvalidRequest, match=rf"pass {storage.__name__}\(\.\.\.\)"):
        ContextOffloader(storage)


# Content that the host stores itself.


@pytest.mark.parametrize("storage", [InMemoryStorage(), FileStorage("never")], ids=["memory", "files"])
def test_a_str_that_the_host_stores_is_refused_with_advice(storage: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="content must be bytes, not str: encode it"):
        asyncio.run(storage.store("manual", "by the host"))


@pytest.mark.parametrize("module", [theirs, coatcheck_strands], ids=["theirs", "ours"])
def test_the_model_reads_what_the_host_stored_by_its_reference(module: Any) -> None:  # noqa: ANN401
    storage = module.InMemoryStorage()
    reference = asyncio.run(storage.store("manual", BIG.encode()))
    subject = agent(module.ContextOffloader(storage), turns=(call(RETRIEVE, reference=reference, pattern="^line 7 "),))

    subject("go")

    assert "line 7 of" in text_of(results(subject)[0])


def test_what_the_host_stored_is_never_listed() -> None:
    storage = InMemoryStorage()
    asyncio.run(storage.store("manual", b"by the host"))

    assert storage.entries("") == []
    assert Offloader(storage).sweep(max_bytes=1) == 0


@pytest.mark.parametrize("module", [theirs, coatcheck_strands], ids=["theirs", "ours"])
@pytest.mark.parametrize(("cycles", "is_there"), [(2, True), (3, False)])
def test_content_that_the_host_stored_is_evicted_once_unused(module: Any, cycles: int, is_there: bool) -> None:  # noqa: ANN401
    storage = module.InMemoryStorage(evict_after_turns=2)
    reference = asyncio.run(storage.store("manual", b"by the host"))
    # The answer is one more cycle than there are calls.
    subject = agent(module.ContextOffloader(storage), tools=short_and_big(), turns=[call("short")] * (cycles - 1))

    subject("go")

    if is_there:
        assert asyncio.run(storage.retrieve(reference)) == (b"by the host", "text/plain")
    else:
        with pytest.raises(KeyError):
            asyncio.run(storage.retrieve(reference))
