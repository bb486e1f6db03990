"""S3Storage on a real server: the contract, the form of its objects, what it leaves alone, and sharing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError

from coatcheck import (
    Always,
    InvalidRequest,
    Kept,
    Offloaded,
    Offloader,
    ReferenceExpired,
    S3Storage,
    StorageError,
    TextBlock,
)
from coatcheck.engine.cleanup import GRACE_SECONDS, SweepLimits, sweep
from coatcheck.engine.execution import StorageAccess, run
from coatcheck.storage import s3
from coatcheck.testing import (
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    ReadsRangesContract,
    StorageContract,
)
from coatcheck.testing.samples import EVERY_BYTE, MALFORMED_KEYS, Entry, id_of_key, make_entry, noise, numbered_lines
from coatcheck.testing.storage import check_holds, load, save
from tests.storage.offloader_calls import BIG, CALLS, stored
from tests.storage.seaweed import BUCKET, KEYS, Server, new_session, session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from botocore.model import OperationModel

REPOSITORY = Path(__file__).parents[3]
RIGHTS = {
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "DeleteObjects": "s3:DeleteObject",
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
    "PutObject": "s3:PutObject",
    "UploadPart": "s3:PutObject",
}
"""The permission that each request needs, from Amazon's documentation of S3."""

NOBODY_LISTENS = "http://127.0.0.1:9"


class TestS3Storage(
    StorageContract, ReadsRangesContract, DeletesContract, DeletesManyContract, ListsContract, ListsPagesContract
):
    """Runs the storage contracts on a bucket prefix of its own."""

    @pytest.fixture
    def storage(self, server: Server, prefix: str) -> S3Storage:
        return S3Storage(BUCKET, prefix, **server.settings())


@pytest.fixture
def entry() -> Entry:
    return make_entry(b"what the tool returned", characters="22", lines="1")


def objects(server: Server, prefix: str) -> dict[str, int]:
    listed = server.client().list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return {found["Key"]: found["Size"] for found in listed.get("Contents", ())}


def requests_of(storage: S3Storage, during: Callable[[], object]) -> list[str]:
    """Return the names of the requests that a call makes."""
    made: list[str] = []

    def note(model: OperationModel, **_: object) -> None:
        made.append(model.name)

    client = storage._client()
    client.meta.events.register("before-call.s3", note)
    try:
        during()
    finally:
        client.meta.events.unregister("before-call.s3", note)
    return made


# What people and other programs find in a bucket.


def test_an_object_is_the_raw_content_with_its_type_and_its_metadata(
    server: Server, storage: S3Storage, prefix: str
) -> None:
    entry = make_entry(EVERY_BYTE, content_type="image/png", lines="7")
    save(storage, entry)

    found = server.client().get_object(Bucket=BUCKET, Key=f"{prefix}/v1/{entry.key}")

    assert objects(server, prefix) == {f"{prefix}/v1/{entry.key}": len(entry.content)}
    assert found["Body"].read() == entry.content
    assert found["ContentType"] == "image/png"
    assert found["Metadata"] == entry.metadata


@pytest.mark.parametrize("given", ["", "/", "a/b", "/a/b/"])
def test_a_prefix_may_be_written_with_or_without_slashes(server: Server, given: str) -> None:
    entry = make_entry(given.encode())
    storage = S3Storage(BUCKET, given, **server.settings())
    save(storage, entry)

    key = f"{given.strip('/')}/v1/{entry.key}".lstrip("/")
    assert server.client().head_object(Bucket=BUCKET, Key=key)["ContentLength"] == len(entry.content)
    storage.delete(entry.key)


def test_objects_of_others_are_left_alone(server: Server, storage: S3Storage, prefix: str, entry: Entry) -> None:
    save(storage, entry)
    scope = entry.key.partition("/")[0]
    strangers = [f"{prefix}/notes", f"{prefix}/v1/README", f"{prefix}/v1/{scope}/notes", f"{prefix}/v1/{entry.key}/x"]
    for key in strangers:
        server.client().put_object(Bucket=BUCKET, Key=key, Body=b"mine")

    assert [listed.key for listed in storage.entries("")] == [entry.key]
    assert [listed.key for listed in storage.entries(f"{scope}/")] == [entry.key]
    storage.delete(entry.key)

    assert storage.load(entry.key) is None
    assert sorted(objects(server, prefix)) == sorted(strangers)


def test_two_prefixes_of_one_bucket_share_nothing(server: Server, prefix: str, entry: Entry) -> None:
    one, other = (S3Storage(BUCKET, f"{prefix}/{name}", **server.settings()) for name in ("one", "one-more"))
    save(one, entry)

    assert other.load(entry.key) is None
    assert other.entries("") == []
    other.delete(entry.key)
    check_holds(one, entry, "after another prefix deleted the same key")


def test_tags_are_put_on_the_object(server: Server, prefix: str, entry: Entry) -> None:
    tags = {"kept for": "30 days", "by": "a+b=c/d"}  # S3 allows these characters and ``- . _ : @``, no others
    storage = S3Storage(BUCKET, prefix, tags=tags, **server.settings())
    sent: list[str] = []

    def note(params: dict[str, Any], **_: object) -> None:
        sent.extend(value for name, value in params["headers"].items() if name == "x-amz-tagging")

    storage._client().meta.events.register("before-call.s3", note)
    save(storage, entry)
    save(storage, entry)

    found = server.client().get_object_tagging(Bucket=BUCKET, Key=f"{prefix}/v1/{entry.key}")["TagSet"]

    assert {tag["Key"]: tag["Value"] for tag in found} == tags
    # Ceph's gateway reads a plus sign literally, not as a space.
    assert set(sent) == {"kept%20for=30%20days&by=a%2Bb%3Dc%2Fd"}


def test_a_listing_of_more_than_one_page_is_complete(
    monkeypatch: pytest.MonkeyPatch, server: Server, storage: S3Storage
) -> None:
    saved = {entry.key for entry in (make_entry(noise(10, seed=seed)) for seed in range(7))}
    for seed in range(7):
        save(storage, make_entry(noise(10, seed=seed)))

    def small_pages(params: dict[str, Any], **_: object) -> None:
        params["MaxKeys"] = 3

    storage._client().meta.events.register("before-parameter-build.s3.ListObjectsV2", small_pages)

    assert {listed.key for listed in storage.entries("")} == saved


@pytest.mark.parametrize("content_type", ["", "%", "%41", "tëxt/plain", " padded  twice ", "new\r\nline: x", "\ud800"])
def test_any_content_type_comes_back_unchanged(storage: S3Storage, content_type: str) -> None:
    entry = make_entry(b"odd", content_type=content_type)
    save(storage, entry)

    check_holds(storage, entry, "with an odd content type")
    part = storage.load_range(entry.key, start=1, length=1)
    assert part is not None
    assert part.content_type == content_type


def test_any_metadata_value_comes_back_unchanged(storage: S3Storage) -> None:
    entry = make_entry(b"x", empty="", odd="ä\r\nb%41", spaces="  a  b ")
    save(storage, entry)

    check_holds(storage, entry, "with odd metadata")


@pytest.mark.parametrize("name", ["Upper", "under_score", "ümlaut", "line\nend", ""])
def test_a_metadata_name_that_s3_would_change_is_refused(storage: S3Storage, name: str) -> None:
    with pytest.raises(StorageError, match="lower-case names"):
        save(storage, make_entry(b"x", **{name: "value"}))

    assert storage.entries("") == []


@pytest.mark.parametrize(
    "key", [*MALFORMED_KEYS, "scope/digest", "0" * 16, f"{'0' * 16}/{'0' * 16}/more"], ids=id_of_key
)
def test_a_malformed_key_is_refused_before_anything_is_sent(storage: S3Storage, key: str) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: storage.save(key, b"x", content_type="text/plain", metadata={}),
        lambda: storage.load(key),
        lambda: storage.load_range(key, start=0, length=0),
        lambda: storage.delete(key),
        lambda: storage.delete_many([make_entry(b"").key, key]),
    )
    for attempt in attempts:
        with pytest.raises(StorageError, match="malformed storage key"):
            attempt()
    assert not storage._clients


# What a call costs.


def test_a_new_entry_is_saved_in_one_request(storage: S3Storage, entry: Entry) -> None:
    assert requests_of(storage, lambda: save(storage, entry)) == ["PutObject"]


def test_an_existing_entry_is_compared_then_sent_again(storage: S3Storage, entry: Entry) -> None:
    save(storage, entry)

    assert requests_of(storage, lambda: save(storage, entry)) == ["PutObject", "HeadObject", "PutObject"]


def test_a_list_for_a_model_takes_one_listing_and_at_most_twenty_lookups(storage: S3Storage) -> None:
    offloader = Offloader(storage, policies={"*": Always()})
    stored = [
        str(offloader.offload([TextBlock(f"text {number}")], tool_name="get_issue", scope="s").references[0])
        for number in range(25)
    ]
    answers: list[str] = []

    made = requests_of(storage, lambda: answers.append(offloader.retrieve(scope="s").text))

    assert (len(made), made.count("ListObjectsV2")) == (21, 1)
    assert answers[0].count("(get_issue, text/plain, ") == 20
    assert all(reference.partition("-")[2] in answers[0] for reference in stored)


def test_a_page_for_the_host_takes_one_listing_and_one_lookup_per_content(storage: S3Storage) -> None:
    offloader = Offloader(storage, policies={"*": Always()})
    for number in range(7):
        offloader.offload([TextBlock(f"text {number}")], tool_name="get_issue", scope="s")

    made = requests_of(storage, lambda: offloader.list(scope="s", limit=5))

    assert len(made) == 6
    assert made.count("ListObjectsV2") == 1


def test_many_entries_are_deleted_with_one_request(storage: S3Storage) -> None:
    offloader = Offloader(storage, policies={"*": Always()})
    for scope, count in (("a", 260), ("b", 20)):
        for number in range(count):
            offloader.offload([TextBlock(f"text {number}")], tool_name="get_issue", scope=scope)
    limits = SweepLimits(max_age_seconds=0, max_bytes=None, max_scope_bytes=None)
    later = time.time() + 2 * GRACE_SECONDS

    deleting = requests_of(storage, lambda: offloader.delete_scope("a"))
    sweeping = requests_of(storage, lambda: run(sweep(StorageAccess(storage), limits, now=later)))

    assert deleting == ["ListObjectsV2", "DeleteObjects", "DeleteObjects", "ListObjectsV2"]
    assert sweeping == ["ListObjectsV2", "ListObjectsV2", "DeleteObjects"]
    assert storage.entries("") == []


def test_saving_again_repairs_a_damaged_object(server: Server, storage: S3Storage, prefix: str, entry: Entry) -> None:
    key, metadata = f"{prefix}/v1/{entry.key}", dict(entry.metadata)
    server.client().put_object(Bucket=BUCKET, Key=key, Body=b"cut off", ContentType="text/plain", Metadata=metadata)

    save(storage, entry)

    check_holds(storage, entry, "after a damaged object was saved again")


@pytest.mark.parametrize("size", [0, 1, 100])
@pytest.mark.parametrize(("start", "length"), [(0, 0), (5, 10), (99, 1), (100, 1), (1_000, 5)])
def test_a_range_takes_one_request_within_the_content_and_two_beyond_its_end(
    storage: S3Storage, size: int, start: int, length: int
) -> None:
    entry = make_entry(noise(size))
    save(storage, entry)

    made = requests_of(storage, lambda: storage.load_range(entry.key, start=start, length=length))

    assert made == (["GetObject"] if start < size else ["GetObject", "HeadObject"])


def test_large_content_is_uploaded_in_parts_and_comes_back(storage: S3Storage) -> None:
    entry = make_entry(noise(s3.MULTIPART_BYTES + 1), content_type="application/x-large")

    made = requests_of(storage, lambda: save(storage, entry))

    assert made == ["HeadObject", "CreateMultipartUpload", "UploadPart", "UploadPart", "CompleteMultipartUpload"]
    check_holds(storage, entry, "after it was sent in parts")
    middle = storage.load_range(entry.key, start=s3.MULTIPART_BYTES - 5, length=6)
    assert middle is not None
    assert middle.content == entry.content[-6:]


@pytest.mark.parametrize("size", [10, s3.MULTIPART_BYTES + 1])
def test_a_session_adds_the_headers_on_the_page_to_each_save(server: Server, prefix: str, size: int) -> None:
    paragraph = (REPOSITORY / "docs/storages.md").read_text(encoding="utf-8").partition("For a key of your own")[2]
    code = re.findall(r"`((?:add|session)[ .][^`]+)`", paragraph.partition("\n\n")[0])
    own = new_session()
    named: dict[str, Any] = {"session": own}
    exec("\n".join(code), named)  # noqa: S102 - the code is from our own page
    own.events.register("provide-client-params.s3.CreateMultipartUpload", named["add"])
    storage, sent = S3Storage(BUCKET, prefix, boto_session=own, endpoint_url=server.endpoint), []

    def note(model: OperationModel, params: dict[str, Any], **_: object) -> None:
        # The server has no KMS: note the headers for it, and continue without them.
        header = params["headers"].pop("x-amz-server-side-encryption", None)
        sent.append((model.name, header, params["headers"].pop("x-amz-server-side-encryption-aws-kms-key-id", None)))

    storage._client().meta.events.register("before-call.s3", note)
    save(storage, make_entry(noise(size)))

    begins = [each for each in sent if each[0] in {"PutObject", "CreateMultipartUpload"}]
    assert [each[1:] for each in begins] == [("aws:kms", "alias/agents")]


def test_other_large_content_under_the_same_key_is_refused(storage: S3Storage) -> None:
    entry = make_entry(b"small")
    save(storage, entry)

    with pytest.raises(StorageError, match="another content"):
        save(storage, Entry(entry.key, noise(s3.MULTIPART_BYTES + 1), "text/plain", {"sha256": "2" * 64}))

    check_holds(storage, entry, "after large content was refused")


# What goes wrong.


def test_a_missing_bucket_is_an_error_and_not_a_missing_entry(server: Server, entry: Entry) -> None:
    storage = S3Storage("no-such-bucket-anywhere", **server.settings())
    attempts: tuple[Callable[[], object], ...] = (
        lambda: storage.load(entry.key),
        lambda: storage.load_range(entry.key, start=0, length=0),
        lambda: storage.entries(""),
    )
    for attempt in attempts:
        with pytest.raises(ClientError, match="NoSuchBucket"):
            attempt()


def test_a_server_that_does_not_answer_leaves_the_result_in_the_conversation(prefix: str) -> None:
    storage = S3Storage(
        BUCKET,
        prefix,
        boto_session=session(),
        endpoint_url=NOBODY_LISTENS,
        boto_client_config=Config(retries={"total_max_attempts": 1}),
    )
    block = TextBlock(numbered_lines(2_000))

    outcome = Offloader(storage).offload([block], tool_name="read_log")

    assert outcome.blocks == (block,)
    with pytest.raises(EndpointConnectionError):
        storage.load(make_entry(b"").key)


@pytest.mark.parametrize("call", CALLS)
def test_a_refusal_by_s3_becomes_a_storage_error_with_s3s_message(
    server: Server, storage: S3Storage, call: str
) -> None:
    reference = stored(Offloader(storage))
    offloader = Offloader(S3Storage("no-such-bucket-anywhere", **server.settings()))
    words = r"\(S3Storage\) failed: NoSuchBucket: An error occurred \(NoSuchBucket\) when calling the .* operation"

    with pytest.raises(StorageError, match=f"{words}.*, in bucket 'no-such-bucket-anywhere'$") as raised:
        CALLS[call](offloader, reference)

    assert isinstance(raised.value.__cause__, ClientError)


def test_only_boto3s_messages_are_repeated_and_not_those_of_a_subclass(caplog: pytest.LogCaptureFixture) -> None:
    class Encrypting(S3Storage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            raise ValueError(content)

    Offloader(Encrypting("bucket")).offload([TextBlock(numbered_lines(2_000))], tool_name="read_log")

    assert "(Encrypting) failed: ValueError, in bucket 'bucket'" in caplog.text
    assert "line 7" not in caplog.text


def test_a_result_that_cannot_be_saved_in_s3_stays_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture, server: Server
) -> None:
    outcome = Offloader(S3Storage("no-such-bucket-anywhere", **server.settings())).offload([BIG], tool_name="t")

    assert outcome == Kept(blocks=(BIG,), reason="storage failed")
    # The error code differs between servers.
    words = r"\(S3Storage\) failed: (\w+): An error occurred \(.*\) when calling the PutObject operation"
    assert re.search(f"saving 100,000 bytes {words}", caplog.text)


@pytest.mark.parametrize("arguments", [("",), (None,), (b"bucket",), ("bucket", None), ("bucket", 5)])
def test_a_bucket_or_prefix_that_is_not_a_valid_string_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidRequest, match="name of a bucket"):
        S3Storage(*arguments)


@pytest.mark.parametrize(
    "bucket",
    ["s3://my-bucket/agents", "s3://my-bucket", "my-bucket/agents", "https://my-bucket.s3.amazonaws.com/agents"],
)
def test_an_address_in_place_of_a_bucket_is_refused_with_the_right_call(bucket: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(f"as in S3Storage('bucket', 'prefix'), not {bucket!r}")):
        S3Storage(bucket)


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:s3:us-east-1:123456789012:accesspoint/agents",
        "arn:aws:s3-outposts:us-east-1:123456789012:outpost/op-1/accesspoint/agents",
    ],
)
def test_an_access_point_can_take_the_place_of_a_bucket(arn: str) -> None:
    assert repr(S3Storage(arn, "support")) == f"S3Storage({arn!r}, 'support')"


@pytest.mark.parametrize("endpoint", ["127.0.0.1:5577", "localhost", "", "s3://my-bucket", 5577])
def test_an_endpoint_without_its_scheme_is_refused(endpoint: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=f"endpoint_url must begin with http:// or https://, not {endpoint!r}"):
        S3Storage(BUCKET, endpoint_url=endpoint)


@pytest.mark.parametrize("tags", ["team=support", [{"Key": "team", "Value": "support"}], {"team": None}, {1: "a"}, 1])
def test_tags_that_do_not_map_strings_to_strings_are_refused(tags: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^tags must map names to values, both str, as in "):
        S3Storage(BUCKET, tags=tags)


def test_without_boto3_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(ImportError, match=r"checkout\[s3\]"):
        S3Storage(BUCKET)


def test_what_the_user_configures_takes_precedence(server: Server) -> None:
    config = Config(read_timeout=3, retries={"mode": "adaptive", "total_max_attempts": 2})
    storage = S3Storage(BUCKET, region_name="eu-central-1", boto_client_config=config, **server.settings())

    meta = storage._client().meta
    used = vars(meta.config)["_user_provided_options"]

    assert meta.region_name == "eu-central-1"
    assert used["read_timeout"] == 3
    assert used["connect_timeout"] == s3.CONNECT_SECONDS
    assert used["retries"] == {"mode": "adaptive", "total_max_attempts": 2}
    assert used["max_pool_connections"] >= 16


# Sharing between processes and threads.


def test_two_processes_that_share_only_a_bucket_exchange_references(
    server: Server, prefix: str, storage: S3Storage
) -> None:
    text = numbered_lines(3_000)
    program = (
        "import sys\n"
        "from coatcheck import Offloader, S3Storage, TextBlock\n"
        "from coatcheck.testing.samples import numbered_lines\n"
        "storage = S3Storage(sys.argv[1], sys.argv[2], endpoint_url=sys.argv[3])\n"
        "outcome = Offloader(storage).offload([TextBlock(numbered_lines(3_000))], tool_name='t', scope='shared')\n"
        "print(outcome.references[0])\n"
    )
    env = {**os.environ, **KEYS}
    command = [sys.executable, "-c", program, BUCKET, prefix, server.endpoint]
    reference = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()

    here = Offloader(storage)

    assert here.load(reference, scope="shared").text == text
    assert "line 2,999 of 3,000" in here.retrieve(reference, scope="shared", line_range="2999-2999").text
    here.delete_scope("shared")
    with pytest.raises(ReferenceExpired):
        here.load(reference, scope="shared")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_a_client_and_a_lock_of_its_own(storage: S3Storage, entry: Entry) -> None:
    save(storage, entry)
    client = storage._client()
    with s3._making_clients.held:  # as if another thread were making a client right now
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that waits for a lock that nobody releases, so the test fails
            os._exit(0 if storage._client() is not client and load(storage, entry).content == entry.content else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check_holds(storage, entry, "after a child read it")


def test_many_threads_make_one_client(storage: S3Storage) -> None:
    made: list[int] = []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait()
        made.append(id(storage._client()))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 1
    assert len(made) == 8


@pytest.mark.no_cover
def test_sixty_four_offloads_at_once_are_all_stored(storage: S3Storage) -> None:
    offloader = Offloader(storage)
    texts = [numbered_lines(2_000, first=number) for number in range(64)]

    async def offload_all() -> list[str]:
        outcomes = await asyncio.gather(*(offloader.aoffload([TextBlock(text)], tool_name="t") for text in texts))
        assert all(isinstance(outcome, Offloaded) for outcome in outcomes)
        return [str(outcome.references[0]) for outcome in outcomes]

    references = asyncio.run(offload_all())

    assert [offloader.load(reference).text for reference in references] == texts


def test_the_documented_permissions_cover_exactly_the_requests_made(server: Server, prefix: str) -> None:
    paragraph = (
        (REPOSITORY / "docs/storages.md").read_text(encoding="utf-8").partition("The storage needs the rights")[2]
    )
    documented = set(re.findall(r"`(s3:\w+)`", paragraph.partition("\n\n")[0]))
    storage = S3Storage(BUCKET, prefix, tags={"keep": "30 days"}, **server.settings())
    small, large = make_entry(b"small"), make_entry(noise(s3.MULTIPART_BYTES + 1))

    def everything() -> None:
        for entry in (small, small, large):
            save(storage, entry)
            load(storage, entry)
        storage.load_range(small.key, start=1, length=2)
        storage.delete(large.key)
        storage.delete_many([listed.key for listed in storage.entries("")])

    made = requests_of(storage, everything)

    # Tags are sent with the content, but S3 wants their permission too; test_faults has an abort.
    needed = {RIGHTS[request] for request in made} | {"s3:PutObjectTagging", "s3:AbortMultipartUpload"}
    assert needed == documented


def test_the_documented_lifecycle_rules_are_valid(server: Server) -> None:
    text = (REPOSITORY / "docs/storages.md").read_text(encoding="utf-8")
    blocks = [json.loads(block.partition("```")[0]) for block in text.split("```json\n")[1:]]
    rules = [rule for block in blocks for rule in block["Rules"]]
    storage = S3Storage("my-bucket", "agents/support", **server.settings())

    server.client().put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": rules})

    assert len(rules) == 3
    assert {rule["Filter"]["Prefix"] for rule in rules} == {storage._folder}


def test_a_versioned_bucket_keeps_deleted_content_as_the_page_says(server: Server, prefix: str) -> None:
    client, bucket = server.client(), f"versioned-{prefix.partition('/')[0]}"
    client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    offloader = Offloader(S3Storage(bucket, prefix, **server.settings()), policies={"*": Always()})
    for _ in range(2):
        reference = str(offloader.offload([TextBlock("a secret\n")], tool_name="t", scope="s").references[0])

    assert offloader.delete_scope("s") == 1

    with pytest.raises(ReferenceExpired):
        offloader.load(reference, scope="s")
    versions = client.list_object_versions(Bucket=bucket)
    assert len(versions["Versions"]) == 2
    assert len(versions["DeleteMarkers"]) == 1


def test_the_server_modules_can_be_imported_without_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import tests.storage.faulty_proxy, tests.storage.seaweed"

    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True)
