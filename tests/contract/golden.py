"""One conversation, committed as the model sees it: the same bytes through every framework.

The scenarios compare each adapter with the core of the same checkout. This module compares all adapters with one file.
That shows any difference between two frameworks, although they never run in one environment, and any change to the
words that models read. ``python -m tests.docs.rewrite`` writes the file from the core alone; each framework's
session plays it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck import RETRIEVAL_TOOL, CoatcheckError, Offloaded, Offloader, TextBlock, failure_for_model
from coatcheck.testing import AdapterContract, ModelCall, Returned, Run
from coatcheck.testing.samples import orders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck.testing import Harness, Received

__all__ = ("FILE", "Contract", "golden", "made", "play", "text")

FILE = Path(__file__).with_name("golden.json")
SCOPE = ("tenant-7", "conversation-1")
KNOBS: Mapping[str, Any] = {"max_result_tokens": 400, "preview_tokens": 150}


class Contract(AdapterContract):
    """The public contract, plus the conversation that all frameworks have in common."""

    def test_the_model_sees_the_golden_transcript(self, harness: Harness) -> None:
        assert play(harness) == golden()


def golden() -> list[str]:
    """Return what the committed conversation shows the model: each result, then each answer."""
    transcript = json.loads(FILE.read_text(encoding="utf-8"))
    return [*transcript["results"].values(), *(read["answer"] for read in transcript["reads"])]


def play(harness: Harness) -> list[str]:
    """Return what an agent of a framework shows its model in the same conversation."""
    calls = [ModelCall(tool=tool, arguments={"number": n}, call_id=f"call-{n}") for n, tool in enumerate(results())]
    asked = [read["arguments"] for read in json.loads(FILE.read_text(encoding="utf-8"))["reads"]]
    reads = [ModelCall(tool=RETRIEVAL_TOOL, arguments=each, call_id=f"read-{n}") for n, each in enumerate(asked)]

    def model(received: Sequence[Received]) -> Sequence[ModelCall]:
        done = len(received) - len(calls)
        return reads[done : done + 1] if received else calls

    case = Run(
        offloader=Offloader(**KNOBS),
        scope=SCOPE,
        tools={
            tool: {number: Returned(blocks=(TextBlock(text),), is_error=False)}
            for number, (tool, text) in enumerate(results().items())
        },
        model=model,
    )
    return [received.text for received in harness.run(case).received]


def results() -> dict[str, str]:
    """Return each tool's result: one of each kind with a preview of its own, and a small one."""
    log = [f"2026-01-05T09:{n // 60:02}:{n % 60:02}Z INFO worker-{n % 4} took job {n * 37}" for n in range(120)]
    log[71] = "2026-01-05T09:01:11Z ERROR worker-3 job 2627 failed: connection reset by peer"
    records = orders(40)
    table = ["id,customer,status,total", *(",".join(str(value) for value in record.values()) for record in records)]
    passed = "\n".join(f"tests/test_{n}.py::test_part_{n} PASSED" for n in range(60))
    failure = (
        'Traceback (most recent call last):\n  File "app.py", line 7, in main\nZeroDivisionError: division by zero\n'
    )
    page = "\n".join(f"## Part {n}\n\nWhat part {n} is for, and how to set it.\n" for n in range(50))
    return {
        "read_log": "\n".join(log) + "\n",
        "list_orders": json.dumps({"orders": records}),
        "query": "\n".join(table) + "\n",
        "run_tests": f"{passed}\n{failure}",
        "fetch_page": f"# Manual\n\n{page}",
        "read_text": "All work and no play makes nobody happy. " * 60,
        "say_hello": "hello\n",
    }


def made() -> dict[str, Any]:
    """Return the conversation as the core produces it."""
    offloader = Offloader(**KNOBS)
    outcomes = {
        tool: offloader.offload([TextBlock(text)], tool_name=tool, tool_args={"number": number}, scope=SCOPE)
        for number, (tool, text) in enumerate(results().items())
    }
    shown = {tool: outcome.text for tool, outcome in outcomes.items()}
    references = {
        tool: str(outcome.references[0]) for tool, outcome in outcomes.items() if isinstance(outcome, Offloaded)
    }
    reads: Sequence[dict[str, Any]] = (
        {"reference": references["read_log"], "pattern": "ERROR", "context_lines": 1},
        {"reference": references["read_log"], "line_range": "3-5"},
        {"reference": references["list_orders"], "query": "orders[?status=='open'].id"},
        {"reference": references["read_text"], "offset": 2_000},
        {"reference": "read_log-0000000000000000-0000"},
    )
    return {"results": shown, "reads": [{"arguments": each, "answer": _answer(offloader, each)} for each in reads]}


def text() -> str:
    """Return the text of the committed file as the core produces it today."""
    return json.dumps(made(), indent=1, ensure_ascii=False) + "\n"


def _answer(offloader: Offloader, arguments: dict[str, Any]) -> str:
    try:
        return offloader.retrieve(**arguments, scope=SCOPE).text
    except CoatcheckError as error:
        return failure_for_model(error)
