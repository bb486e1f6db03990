"""S3Storage deletes many objects with one request: the number of requests, failures, and saves meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError

from coatcheck import Always, Offloader, ReferenceExpired, S3Storage, StorageError, TextBlock
from coatcheck.testing.samples import Entry, make_entry
from coatcheck.testing.storage import check_holds, save
from tests.storage.faulty_proxy import Fault, Faults, running_proxy
from tests.storage.s3.test_not_s3 import LoginPage, served
from tests.storage.s3.test_s3 import requests_of
from tests.storage.seaweed import BUCKET, Server, session

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = Config(retries={"mode": "standard", "total_max_attempts": 1})
DENIED = {"Code": "AccessDenied", "Message": "Access Denied"}


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def behind(server: Server, prefix: str, faults: Faults) -> Iterator[S3Storage]:
    """Return a storage that tries each request once, behind a proxy that fails on purpose."""
    with running_proxy(server.endpoint, faults) as endpoint:
        yield S3Storage(BUCKET, prefix, boto_session=session(), endpoint_url=endpoint, boto_client_config=QUICK)


def filled(storage: S3Storage, number: int, *, scope: str = "s") -> list[Entry]:
    entries = [make_entry(f"content {each}".encode(), scope=scope) for each in range(number)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda entry: save(storage, entry), entries))
    return entries


def refuse(storage: S3Storage, entry: Entry, *, answer: dict[str, str]) -> None:
    """Make the server's answer to DeleteObjects report one object as not deleted, and keep that object."""

    def without(params: dict[str, Any], **_: object) -> None:
        objects = params["Delete"]["Objects"]
        params["Delete"]["Objects"] = [each for each in objects if not each["Key"].endswith(entry.key)]

    def say(parsed: dict[str, Any], **_: object) -> None:
        parsed["Errors"] = [{"Key": storage._place(entry.key)["Key"], **answer}]

    events = storage._client().meta.events
    events.register("before-parameter-build.s3.DeleteObjects", without)
    events.register("after-call.s3.DeleteObjects", say)


@pytest.mark.no_cover
def test_two_thousand_five_hundred_entries_take_ten_requests(storage: S3Storage) -> None:
    filled(storage, 2_500)
    others = filled(storage, 3, scope="other")
    offloader, deleted = Offloader(storage), []

    made = requests_of(storage, lambda: deleted.append(offloader.delete_scope("s")))

    assert deleted == [2_500]
    assert {name: made.count(name) for name in made} == {"ListObjectsV2": 4, "DeleteObjects": 10}
    assert sorted(listed.key for listed in storage.entries("")) == sorted(entry.key for entry in others)


def test_an_object_reported_as_not_deleted_is_deleted_again_alone(storage: S3Storage) -> None:
    entries = filled(storage, 5)
    refuse(storage, entries[2], answer={"Code": "InternalError", "Message": "Please try again."})

    assert storage.delete_many([entry.key for entry in entries]) == [entries[2].key]
    check_holds(storage, entries[2], "after the others were deleted")

    filled(storage, 5)
    made = requests_of(storage, lambda: Offloader(storage).delete_scope("s"))
    assert made == ["ListObjectsV2", "DeleteObjects", "DeleteObject", "ListObjectsV2"]
    assert storage.entries("") == []


def test_an_object_that_cannot_be_deleted_is_an_error_with_s3s_message(behind: S3Storage, faults: Faults) -> None:
    entries = filled(behind, 5)
    refuse(behind, entries[2], answer=DENIED)
    faults.choose = lambda request: "409" if request.method == "DELETE" else None
    words = r"^deleting \(S3Storage\) failed: ClientError: An error occurred .* calling the DeleteObject operation"

    with pytest.raises(StorageError, match=words):
        Offloader(behind).delete_scope("s")

    assert [listed.key for listed in behind.entries("")] == [entries[2].key]


@pytest.mark.parametrize("fault", ["500", "501", "503"])
def test_a_server_that_refuses_delete_objects_gets_one_request_per_entry(
    behind: S3Storage, faults: Faults, fault: Fault
) -> None:
    """Google's S3 interface lacks that request."""
    filled(behind, 5)
    faults.choose = lambda request: fault if request.method == "POST" else None

    made = requests_of(behind, lambda: Offloader(behind).delete_scope("s"))

    assert made == ["ListObjectsV2", "DeleteObjects", *["DeleteObject"] * 5, "ListObjectsV2"]
    assert behind.entries("") == []


def test_a_broken_connection_is_an_error(behind: S3Storage, faults: Faults) -> None:
    entries = filled(behind, 2)
    faults.choose = lambda request: "cut before" if request.method == "POST" else None

    with pytest.raises(ConnectionClosedError):
        behind.delete_many([entry.key for entry in entries])
    with pytest.raises(StorageError, match=r"deleting \(S3Storage\) failed: ConnectionClosedError"):
        Offloader(behind).delete_scope("s")


def test_a_login_page_deletes_nothing() -> None:
    keys = [make_entry(b"one").key, make_entry(b"two").key]
    with served(LoginPage) as storage:
        assert list(storage.delete_many(keys)) == keys


def test_a_prefix_that_xml_escapes_or_cannot_hold_works(server: Server, prefix: str) -> None:
    for odd in ("a&b <c> 'd\" é", "tab\tand space", "control\x01"):
        storage = S3Storage(BUCKET, f"{prefix}/{odd}", **server.settings())
        filled(storage, 3)

        assert Offloader(storage).delete_scope("s") == 3
        assert storage.entries("") == []


def test_saves_during_a_deletion_succeed_and_other_scopes_keep_everything(storage: S3Storage) -> None:
    filled(storage, 400)
    others = filled(storage, 20, scope="other")
    offloader, ended, saved = Offloader(storage, policies={"*": Always()}), threading.Event(), []

    def save_on() -> None:
        for number in count():
            outcome = offloader.offload([TextBlock(f"meanwhile {number}\n")], tool_name="t", scope="s")
            saved.append((str(outcome.references[0]), f"meanwhile {number}\n"))
            if ended.is_set():
                return

    with ThreadPoolExecutor(2) as threads:
        saving = [threads.submit(save_on) for _ in range(2)]
        try:
            assert offloader.delete_scope("s") >= 400
        finally:
            ended.set()
        for each in saving:
            each.result()

    for reference, text in saved:
        with suppress(ReferenceExpired):
            assert offloader.load(reference, scope="s").text == text
    reference, text = saved[-1]  # saved after the deletion
    assert offloader.load(reference, scope="s").text == text
    for entry in others:
        check_holds(storage, entry, "after another scope was deleted")
