"""The retrieval tool in Strands: the schema of all adapters, and the same arguments for a host that calls it."""

# ruff: noqa: ANN401 - content of any kind

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest

from coatcheck import retrieval_schema
from coatcheck_strands import ContextOffloader, InMemoryStorage
from tests.adapters.strands.agents import BIG, agent, call, reading, references, results, returning


def test_the_schema_is_that_of_all_adapters() -> None:
    (tool,) = ContextOffloader().tools

    assert tool.tool_spec["inputSchema"]["json"] == retrieval_schema()


def test_a_host_can_pass_every_argument() -> None:
    taken = inspect.signature(ContextOffloader().retrieve_offloaded_content).parameters

    assert set(taken) - {"tool_context"} == set(retrieval_schema()["properties"])


@pytest.mark.parametrize("name", [name for name in retrieval_schema()["properties"] if name != "reference"])
async def test_each_argument_of_a_host_arrives(name: str) -> None:
    sent: dict[str, Any] = {"pattern": "x", name: object()}

    with pytest.raises(ValueError, match=rf"^{name} must "):
        await ContextOffloader().retrieve_offloaded_content("any", **sent)


# Content that Bedrock refuses in a tool's result would make each later turn fail too.

PDF = {"document": {"format": "pdf", "name": "report", "source": {"bytes": b"%PDF" * 5_000}}}


def read_natively(*contents: Any, times: int, **options: Any) -> list[Any]:
    """Let a model read the last content of a result several times, and return the content of each answer."""
    turns = (call(name="get_report"), *[reading(len(contents) - 1)] * times)
    tools = [returning(*contents, name="get_report")]
    subject = agent(ContextOffloader(scope="s", **options), turns=turns, tools=tools)
    subject("go")
    assert len(references(results(subject)[0])) == len(contents)
    return [result["content"] for result in results(subject)[1:]]


def test_a_document_that_is_read_twice_has_two_names_that_bedrock_accepts() -> None:
    answers = read_natively(PDF, times=2)

    names = [block["document"]["name"] for (block,) in answers]
    assert all(re.fullmatch(r"get-report-[0-9a-f]{16}-[0-9a-f]{4} [0-9a-f]{8}", name) for name in names)
    assert len(set(names)) == 2


async def test_bedrock_accepts_a_documents_name_whatever_the_model_wrote_around_the_reference() -> None:
    plugin = ContextOffloader(InMemoryStorage())
    subject = agent(plugin, tools=[returning(PDF)])
    await subject.invoke_async("go")
    (reference,) = references(results(subject)[0])

    answer: Any = await plugin.retrieve_offloaded_content(f"Reference:  `{reference}` (application/pdf)")

    assert re.fullmatch(r"[a-zA-Z0-9-]{1,200}", answer["content"][0]["document"]["name"])


@pytest.mark.parametrize("limit", [{}, {"max_retrieval_tokens": None}], ids=["bounded", "whole"])
def test_media_in_a_format_that_bedrock_refuses_are_described(limit: dict[str, Any]) -> None:
    unknown = {"document": {**PDF["document"], "format": "octet-stream"}}
    sound = {"audio": {"format": "mp3", "source": {"bytes": b"mp3" * 5_000}}}

    for content in (unknown, sound):
        ((block,),) = read_natively({"text": BIG}, content, times=1, **limit)
        assert "bytes of binary content" in block["text"]


@pytest.mark.parametrize("limit", [{}, {"max_retrieval_tokens": None}], ids=["bounded", "whole"])
@pytest.mark.parametrize(
    ("value", "kind"), [([{"a": 1}] * 20, "text"), ({"a": [1] * 20}, "json")], ids=["list", "object"]
)
def test_only_an_object_comes_back_as_json(value: Any, kind: str, limit: dict[str, Any]) -> None:
    ((block,),) = read_natively({"text": BIG}, {"json": value}, times=1, **limit)

    assert block.keys() == {kind}
    assert json.dumps(value, separators=(",", ":")) in (
        block.get("text") or json.dumps(block["json"], separators=(",", ":"))
    )
