"""S3Storage in the shape of Strands' own offloader, on a real server, and what that offloader stored there."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from strands.vended_plugins import context_offloader as theirs

import coatcheck_strands
from coatcheck import Offloader, TextBlock, scope
from coatcheck.testing import (
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    ReadsRangesContract,
    StorageContract,
)
from coatcheck_strands import ContextOffloader, S3Storage
from tests.adapters.strands.agents import BIG, agent, call, reading, references, results, returning, text_of
from tests.storage.seaweed import BUCKET, Server, session

FOUND = ">  7| line 7 of"
OLD = "1700000000000_1_call"


@pytest.fixture(autouse=True)
def reached(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the endpoint in the environment, because neither class has an argument for it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("[", "/").replace("]", "")[:100].strip("/")


def storage_of(module: Any, prefix: str, bucket: str = BUCKET) -> Any:  # noqa: ANN401
    return module.S3Storage(bucket, prefix, session())


def ours(prefix: str, bucket: str = BUCKET) -> S3Storage:
    return S3Storage(bucket, prefix, session())


class TestS3Storage(
    StorageContract, ReadsRangesContract, DeletesContract, DeletesManyContract, ListsContract, ListsPagesContract
):
    @pytest.fixture
    def storage(self, tmp_path: Any) -> S3Storage:  # noqa: ANN401
        return ours(tmp_path.name)


async def test_what_was_stored_is_retrieved_by_its_address(prefix: str) -> None:
    reference = await ours(prefix).store("call/../1", b"%PDF\0", "application/pdf")

    assert reference.startswith(f"s3://{BUCKET}/{prefix}/v1/")
    assert await ours(prefix).retrieve(reference) == (b"%PDF\0", "application/pdf")


async def test_what_strands_stored_is_retrieved_by_its_address_and_by_its_key(prefix: str) -> None:
    reference = await theirs.S3Storage(BUCKET, prefix, session()).store("call_1_0", b"theirs", "image/png")

    assert await ours(prefix).retrieve(reference) == (b"theirs", "image/png")
    assert await ours(prefix).retrieve(reference.removeprefix(f"s3://{BUCKET}/")) == (b"theirs", "image/png")


async def test_it_works_the_same_without_a_prefix() -> None:
    reference = await theirs.S3Storage(BUCKET, "", session()).store("call_1_0", b"theirs")
    own = await ours("").store("call_1_0", b"ours")

    assert (await ours("").retrieve(reference))[0] == b"theirs"
    assert (await ours("").retrieve(own))[0] == b"ours"


async def test_nothing_else_in_the_bucket_can_be_read(server: Server, prefix: str) -> None:
    keys = [f"{prefix}/secret.txt", f"{prefix}x/{OLD}", f"elsewhere/{OLD}", OLD, f"{prefix}/v1/{'a' * 16}/{'b' * 16}"]
    for key in keys:
        server.client().put_object(Bucket=BUCKET, Key=key, Body=b"secret")

    named = [*keys, *(f"s3://{BUCKET}/{key}" for key in keys), f"s3://other/{prefix}/{OLD}", "nowhere", ""]
    for reference in named:
        with pytest.raises(KeyError, match="Reference not found"):
            await ours(prefix).retrieve(reference)


@pytest.mark.parametrize("module", [theirs, None], ids=["theirs", "ours"])
async def test_a_refusal_by_s3_is_raised_as_its_own_error(module: Any, prefix: str) -> None:  # noqa: ANN401
    storage = (
        ours(prefix, "no-such-bucket") if module is None else module.S3Storage("no-such-bucket", prefix, session())
    )

    with pytest.raises(ClientError):
        await storage.store("key", b"x")
    with pytest.raises(ClientError):
        await storage.retrieve(f"s3://no-such-bucket/{prefix}/{OLD}")


@pytest.mark.parametrize("named_by", ["store", "an offloader"])
async def test_a_refusal_by_s3_is_raised_as_its_own_error_in_a_scope_too(prefix: str, named_by: str) -> None:
    reference = (await ours(prefix).store("key", b"x")).replace(BUCKET, "no-such-bucket")
    if named_by == "an offloader":
        outcome = await Offloader(ours(prefix)).aoffload([TextBlock(BIG)], tool_name="t", scope="mine")
        reference = str(outcome.references[0])

    with scope("mine"), pytest.raises(ClientError):
        await ours(prefix, "no-such-bucket").retrieve(reference)


async def test_an_unreachable_server_raises_boto3s_own_error(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")

    with pytest.raises(EndpointConnectionError):
        await ours(prefix).store("key", b"x")


def test_an_agent_reads_back_and_goes_on_after_a_restart(prefix: str) -> None:
    subject = agent(ContextOffloader(ours(prefix)), turns=(call(), reading(pattern="^line 7 of")))
    subject("go")
    assert FOUND in text_of(results(subject)[-1])

    again = agent(ContextOffloader(ours(prefix)), turns=(reading(pattern="^line 7 of"),), messages=subject.messages)
    again("and on")
    assert FOUND in text_of(results(again)[-1])


def test_an_old_conversation_goes_on(prefix: str) -> None:
    old = agent(theirs.ContextOffloader(theirs.S3Storage(BUCKET, prefix, session())))
    old("go")
    assert references(results(old)[0])[0].startswith("s3://")

    new = agent(ContextOffloader(ours(prefix)), turns=(reading(pattern="^line 7 of"),), messages=old.messages)
    new("and on")

    assert FOUND in text_of(results(new)[-1])


@pytest.mark.parametrize("module", [theirs, coatcheck_strands])
def test_objects_are_never_evicted(module: Any, prefix: str) -> None:  # noqa: ANN401
    turns = (call(), *[call("small")] * 5, reading(pattern="^line 7 of"), "done")
    plugin = module.ContextOffloader(storage_of(module, prefix), evict_after_cycles=2)
    subject = agent(plugin, turns=turns, tools=[returning(BIG), returning("small", name="small")])

    subject("go")

    assert results(subject)[-1]["status"] == "success"
    assert FOUND in text_of(results(subject)[-1])
