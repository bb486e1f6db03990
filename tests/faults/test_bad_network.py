"""64 concurrent offloads to a real S3 server, through a proxy that delays, fails, cuts connections and sends slowly."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from coatcheck import Kept, Offloaded, Offloader, S3Storage, TextBlock
from coatcheck.testing.samples import numbered_lines
from tests.storage.faulty_proxy import Fault, Faults, running_proxy, sometimes
from tests.storage.seaweed import BUCKET, Server, session

if TYPE_CHECKING:
    from collections.abc import Callable

OFFLOADS = 64
ROUNDS = 3
FAULTS: dict[str, tuple[Fault, ...]] = {
    "500 and 503": ("500", "503"),
    "cut connections": ("cut before", "cut after", "cut body"),
    "slow bodies": ("slow body",),
    "everything": ("500", "503", "cut before", "cut after", "cut body", "slow body"),
}


@pytest.mark.parametrize(
    ("kind", "share"), [("latency only", 0.0), *((kind, share) for kind in FAULTS for share in (0.1, 0.4))]
)
def test_everything_acknowledged_over_a_bad_network_is_stored(
    server: Server, figure: Callable[[str], None], kind: str, share: float
) -> None:
    faults = Faults(latency_seconds=0.05)
    if share:
        faults.choose = sometimes(share, *FAULTS[kind], seed=4)
    prefix = f"{kind} {share}"
    with running_proxy(server.endpoint, faults) as endpoint:
        offloader = Offloader(S3Storage(BUCKET, prefix, boto_session=session(), endpoint_url=endpoint))
        began = time.perf_counter()
        acknowledged: list[tuple[str, str]] = []
        stayed = cut = unreadable = wrong = 0
        for number in range(ROUNDS):
            texts = [numbered_lines(1_500, first=1 + number * OFFLOADS + each) for each in range(OFFLOADS)]
            outcomes = asyncio.run(offload_all(offloader, texts))
            for text, outcome in zip(texts, outcomes, strict=True):
                match outcome:
                    case Offloaded():
                        acknowledged.append((str(outcome.references[0]), text))
                    case Kept():
                        stayed += 1
                        cut += outcome.blocks != (TextBlock(text),)
                    case _:
                        cut += 1
        through = asyncio.run(load_all(offloader, [reference for reference, _ in acknowledged]))
        for (_, text), found in zip(acknowledged, through, strict=True):
            unreadable += found is None
            wrong += found is not None and found != text
        seconds = time.perf_counter() - began

    directly = Offloader(S3Storage(BUCKET, prefix, **server.settings()))
    lost = sum(directly.load(reference).text != text for reference, text in acknowledged)
    elsewhere = sum(not is_unknown(directly, reference) for reference, _ in acknowledged)
    figure(
        f"S3, 50 ms, {kind}, {share:.0%} of requests: {ROUNDS} x {OFFLOADS} offloads in {seconds:.0f} s,"
        f" {len(acknowledged)} acknowledged, {stayed} stayed in the conversation; read back through the same network:"
        f" {unreadable} errors, {wrong} wrong; read back directly: {lost} lost or wrong, {elsewhere} from another scope"
    )
    assert len(acknowledged) + stayed == ROUNDS * OFFLOADS
    assert (cut, wrong, lost, elsewhere) == (0, 0, 0, 0)
    assert len(acknowledged) >= ROUNDS * OFFLOADS * (0.95 if share < 0.2 else 0.5)


async def offload_all(offloader: Offloader, texts: list[str]) -> list[object]:
    return list(await asyncio.gather(*(offloader.aoffload([TextBlock(text)], tool_name="t") for text in texts)))


async def load_all(offloader: Offloader, references: list[str]) -> list[str | None]:
    answers = await asyncio.gather(*map(offloader.aload, references), return_exceptions=True)
    return [None if isinstance(answer, BaseException) else answer.text for answer in answers]


def is_unknown(offloader: Offloader, reference: str) -> bool:
    try:
        offloader.load(reference, scope="another")
    except LookupError as error:
        return type(error).__name__ == "ReferenceNotFound"
    return False
