"""S3Storage behind a proxy that fails: what is retried, what is not, and what is reported."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, IncompleteReadError, ResponseStreamingError

from coatcheck import CorruptContent, Offloaded, Offloader, S3Storage, StorageError, TextBlock
from coatcheck.storage import s3
from coatcheck.testing.samples import Entry, make_entry, noise, numbered_lines
from coatcheck.testing.storage import check_holds, load, save
from tests.storage.faulty_proxy import Fault, Faults, Request, running_proxy, sometimes
from tests.storage.seaweed import BUCKET, Server, session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUICK = Config(retries={"mode": "standard", "total_max_attempts": 1})
"""No retries and no pauses, for faults that must not be retried and for attempts that a test counts."""


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def endpoint(server: Server, faults: Faults) -> Iterator[str]:
    with running_proxy(server.endpoint, faults) as endpoint:
        yield endpoint


@pytest.fixture
def behind(endpoint: str, prefix: str) -> S3Storage:
    """Return a storage behind the proxy that tries each request once."""
    return S3Storage(BUCKET, prefix, boto_session=session(), endpoint_url=endpoint, boto_client_config=QUICK)


def first(count: int, fault: Fault, *, of: str) -> Callable[[Request], Fault | None]:
    """Return a function that fails the first ``count`` requests with a method and no others."""
    left = [fault] * count
    return lambda request: left.pop() if left and request.method == of else None


@pytest.mark.parametrize("fault", ["cut before", "cut after", "500", "503"])
def test_a_failed_request_is_retried(endpoint: str, prefix: str, faults: Faults, fault: Fault) -> None:
    # The default configuration, with botocore's own attempts and pauses.
    storage = S3Storage(BUCKET, prefix, boto_session=session(), endpoint_url=endpoint)
    entry = make_entry(noise(10_000))
    faults.choose = first(1, fault, of="PUT")
    save(storage, entry)
    assert faults.done[fault] == 1

    faults.choose = first(1, fault, of="GET")
    check_holds(storage, entry, "although a request failed")
    assert faults.done[fault] == 2


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_a_body_that_breaks_off_is_requested_again(behind: S3Storage, faults: Faults, size: int) -> None:
    entry = make_entry(noise(size))
    save(behind, entry)
    faults.choose = first(s3.READ_ATTEMPTS - 1, "cut body", of="GET")

    check_holds(behind, entry, "although its body broke off")

    assert faults.done["cut body"] == s3.READ_ATTEMPTS - 1


def test_a_body_that_always_breaks_off_is_an_error_and_not_half_the_content(behind: S3Storage, faults: Faults) -> None:
    entry = make_entry(noise(100_000))
    save(behind, entry)
    faults.choose = lambda request: "cut body" if request.method == "GET" else None

    with pytest.raises((ResponseStreamingError, IncompleteReadError)):
        load(behind, entry)

    assert faults.done["cut body"] == s3.READ_ATTEMPTS


def test_a_slow_body_is_read_to_its_end(behind: S3Storage, faults: Faults) -> None:
    entry = make_entry(noise(100_000))
    save(behind, entry)
    faults.choose = first(1, "slow body", of="GET")

    check_holds(behind, entry, "although it came slowly")


@pytest.mark.parametrize("fault", ["500", "503", "cut before"])
def test_a_lasting_fault_raises_boto3s_own_error(behind: S3Storage, faults: Faults, fault: Fault) -> None:
    entry = make_entry(b"what the tool returned")
    faults.choose = lambda _: fault
    attempts: tuple[Callable[[], object], ...] = (
        lambda: save(behind, entry),
        lambda: behind.load(entry.key),
        lambda: behind.load_range(entry.key, start=0, length=1),
        lambda: behind.delete(entry.key),
        lambda: behind.entries(""),
    )
    for attempt in attempts:
        with pytest.raises((ClientError, BotoCoreError)):
            attempt()


def test_a_head_request_that_fails_is_not_a_missing_entry(behind: S3Storage, faults: Faults) -> None:
    entry = make_entry(b"")
    save(behind, entry)
    faults.choose = lambda request: "500" if request.method == "HEAD" else None

    with pytest.raises(ClientError):
        behind.load_range(entry.key, start=0, length=0)


def test_on_a_server_without_conditional_writes_the_existing_entry_is_read_first(
    behind: S3Storage, faults: Faults
) -> None:
    # SeaweedFS supports conditional writes; the proxy answers like a server that does not.
    faults.choose = lambda request: "501" if "If-None-Match" in request.headers else None
    entry = make_entry(b"original")
    for _ in range(2):
        save(behind, entry)
    check_holds(behind, entry, "on a server without conditional writes")

    with pytest.raises(StorageError, match="another content"):
        save(behind, Entry(entry.key, b"tampered", "text/plain", {"sha256": "2" * 64}))

    check_holds(behind, entry, "after other content was refused")
    assert faults.done["501"] == 3


def test_a_conflict_with_another_writer_ends_with_the_entry_saved(behind: S3Storage, faults: Faults) -> None:
    entry = make_entry(b"written by two at once")
    faults.choose = first(1, "409", of="PUT")

    save(behind, entry)

    check_holds(behind, entry, "after a conflict")


def test_parts_of_a_broken_transfer_are_removed(server: Server, prefix: str, behind: S3Storage, faults: Faults) -> None:
    entry = make_entry(noise(s3.MULTIPART_BYTES + 1))
    faults.choose = lambda request: "500" if "partNumber=2" in request.path else None

    with pytest.raises(ClientError):
        save(behind, entry)

    assert behind.load(entry.key) is None
    assert "Uploads" not in server.client().list_multipart_uploads(Bucket=BUCKET, Prefix=prefix)


def test_flipped_bytes_are_reported_as_corrupt_and_never_returned(
    server: Server, prefix: str, storage: S3Storage
) -> None:
    text = numbered_lines(2_000)
    offloader = Offloader(storage)
    outcome = offloader.offload([TextBlock(text)], tool_name="read_log")
    reference = str(outcome.references[0])
    (listed,) = [found for found in storage.entries("") if not found.key.endswith("-lines")]
    key = f"{prefix}/v1/{listed.key}"
    found = server.client().get_object(Bucket=BUCKET, Key=key)
    flipped = bytearray(found["Body"].read())
    flipped[1_000] ^= 1
    server.client().put_object(
        Bucket=BUCKET, Key=key, Body=bytes(flipped), ContentType=found["ContentType"], Metadata=found["Metadata"]
    )

    with pytest.raises(CorruptContent):
        offloader.load(reference)


@pytest.mark.no_cover
def test_sixty_four_offloads_through_a_bad_network_are_all_stored(
    server: Server, prefix: str, endpoint: str, faults: Faults
) -> None:
    storage = S3Storage(BUCKET, prefix, boto_session=session(), endpoint_url=endpoint)
    faults.choose = sometimes(0.1, "500", "503", "cut before", "cut after", "cut body", seed=4)
    faults.latency_seconds = 0.005
    texts = [numbered_lines(1_000, first=number) for number in range(64)]
    offloader = Offloader(storage)

    async def offload_all() -> list[tuple[str, str]]:
        outcomes = await asyncio.gather(*(offloader.aoffload([TextBlock(text)], tool_name="t") for text in texts))
        return [
            (str(outcome.references[0]), text)
            for outcome, text in zip(outcomes, texts, strict=True)
            if isinstance(outcome, Offloaded)
        ]

    acknowledged = asyncio.run(offload_all())

    assert len(acknowledged) >= 60, "botocore tries each request five times"
    assert faults.done.total() - faults.done["none"] >= 5
    elsewhere = Offloader(S3Storage(BUCKET, prefix, **server.settings()))
    for reference, text in acknowledged:
        assert elsewhere.load(reference).text == text
