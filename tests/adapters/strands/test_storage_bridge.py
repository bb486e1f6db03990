"""StrandsStorageBridge over Strands' own S3Storage on a real server: the contract, and real agents, sync and async."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from strands.storage import S3Storage

from coatcheck import Offloader, ReferenceExpired, ReferenceNotFound, StrandsStorageBridge, TextBlock
from coatcheck.testing import DeletesContract, ListsContract, StorageContract
from coatcheck_strands import ContextOffloader
from tests.adapters.strands.agents import BIG, MIDDLE, agent, call, reading, references, results, text_of
from tests.storage.seaweed import BUCKET, Server, session

if TYPE_CHECKING:
    from coatcheck import Storage

NUMBERS = count()


@pytest.fixture(autouse=True)
def reached(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the endpoint in the environment, because Strands' class has no argument for it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)


@pytest.fixture
def prefix() -> str:
    return f"unified-{next(NUMBERS)}"


def theirs(prefix: str) -> S3Storage:
    return S3Storage(BUCKET, prefix=prefix, boto_session=session())


class TestTheirS3Storage(StorageContract, DeletesContract, ListsContract):
    now = 1_000.0

    @pytest.fixture
    def storage(self, prefix: str) -> StrandsStorageBridge:
        return StrandsStorageBridge(theirs(prefix), clock=lambda: self.now)

    def make_older(self, storage: Storage, key: str) -> bool:
        self.now += 1
        return True


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_offloads_and_reads_back_even_after_a_restart(prefix: str, is_async: bool) -> None:
    """A sync agent runs its own loop on a thread of Strands, so the loop of this test does not matter to it."""
    turns = (call(), reading(pattern="^" + MIDDLE))
    subject = agent(ContextOffloader(StrandsStorageBridge(theirs(prefix)), scope="mine"), turns=turns)
    await subject.invoke_async("go") if is_async else subject("go")
    assert MIDDLE in text_of(results(subject)[-1])

    [reference] = references(results(subject)[0])
    elsewhere = Offloader(StrandsStorageBridge(theirs(prefix)))
    assert (await elsewhere.aload(reference, scope="mine")).text == BIG
    with pytest.raises(ReferenceNotFound) as unknown:
        await elsewhere.aload(reference, scope="yours")
    assert not isinstance(unknown.value, ReferenceExpired)


def test_a_miss_is_unknown_or_expired_even_after_a_restart(prefix: str) -> None:
    block = TextBlock(BIG)
    reference = str(Offloader(StrandsStorageBridge(theirs(prefix))).offload([block], tool_name="t").references[0])
    again = Offloader(StrandsStorageBridge(theirs(prefix)))

    assert again.load(reference).text == BIG
    assert again.delete_scope("default") == 1
    with pytest.raises(ReferenceExpired):
        Offloader(StrandsStorageBridge(theirs(prefix))).load(reference)
