"""A conversation that offloads a result and reads it back, and the spans that enclose our own in a framework.

Only running and observing belong here. The tests of each framework say which spans those must be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck import RETRIEVAL_TOOL, Offloader
from coatcheck.testing import Harness, ModelCall, Returned, Run
from coatcheck.testing.scripting import shown_references
from tests.core.telemetry import BIG, Telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.testing import Received

__all__ = ("HOST", "parents")

HOST = "the host's span"


async def parents(harness: Harness, telemetry: Telemetry, *, mode: str) -> dict[str, str | None]:
    """Run the conversation inside a span of the host; return the name of each of our spans and of its parent."""
    offloader = Offloader(on_event=telemetry.listener)
    tools = {"search": {0: Returned(blocks=(BIG,), is_error=False)}}
    case = Run(offloader=offloader, scope="conversation-1", tools=tools, model=_model)
    with telemetry.tracer.start_as_current_span(HOST) as host:
        if mode == "sync":
            harness.run(case)
        else:
            await harness.arun(case)
    counts = offloader.stats()  # what the retrieval tool returns is a read, and no second result
    assert (counts.results, counts.offloaded, counts.retrieved, counts.failed) == (1, 1, 1, 0)
    assert {span.context.trace_id for span in telemetry.spans} == {host.get_span_context().trace_id}
    found = {span.name: telemetry.parent_of(span) for span in telemetry.spans}
    return {name: None if parent is None else parent.name for name, parent in found.items()}


def _model(received: Sequence[Received]) -> Sequence[ModelCall]:
    match received:
        case []:
            return [ModelCall(tool="search", arguments={"number": 0}, call_id="1")]
        case [placeholder]:
            arguments = {"reference": shown_references(placeholder.text)[0], "pattern": "word 7"}
            return [ModelCall(tool=RETRIEVAL_TOOL, arguments=arguments, call_id="2")]
        case _:
            return ()
