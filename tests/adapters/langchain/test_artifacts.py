"""The copy of a result in ``ToolMessage.artifact``: which shapes are taken out and restored, and which stay.

The sample results are answers of FastMCP servers, of both major versions, as ``langchain-mcp-adapters`` 0.3 and
``langchain.mcp`` 1.4 put them into messages.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

from coatcheck import InMemoryStorage, Offloader, ReferenceNotFound, StorageError, TextBlock, ToolResultStoreBridge
from coatcheck.adapting import asettle, encode_base64, settle
from coatcheck_langchain import arestore_artifact, offload_tool, restore_artifact
from coatcheck_langchain.hook import Hook, ToolMessages, logger
from coatcheck_langchain.messages import Calls
from tests.adapters.langchain.samples import LONG, make_offloader, tool_call

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"id": n, "ok": n % 2 == 0, "share": n / 7, "name": f"größe {n}", "none": None} for n in range(900)]
LINES = LONG.splitlines()
NOTES = [{**row, "note": LONG[:1_000]} for row in ROWS[:30]]
OBJECT = {row["name"]: row for row in ROWS}

SAME: dict[str, tuple[Any, list[str]]] = {
    "object, indented": (OBJECT, [json.dumps(OBJECT, indent=2, ensure_ascii=False)]),
    "object, compact": (OBJECT, [json.dumps(OBJECT, separators=(",", ":"))]),
    "list in one text": ({"result": ROWS}, [json.dumps(ROWS, separators=(",", ":"))]),
    "list, a text for each": ({"result": ROWS[:5]}, [json.dumps(row, indent=2).ljust(9_000) for row in ROWS[:5]]),
    "list, thirty texts": ({"result": NOTES}, [json.dumps(note, indent=2) for note in NOTES]),
    "list of one": ({"result": [OBJECT]}, [json.dumps(OBJECT)]),
    "texts, one for each": ({"result": [LONG, "7", "{}"]}, [LONG, "7", "{}"]),
    "texts in one text": ({"result": LINES}, [json.dumps(LINES)]),
    "text": ({"result": LONG}, [LONG]),
    "text under another name": ({"text": LONG}, [LONG]),
    "text of JSON": ({"result": json.dumps(ROWS)}, [json.dumps(ROWS)]),
    "an object with one key": ({"rows": ROWS}, [json.dumps({"rows": ROWS})]),
    "half an emoji": ({"result": LONG + "\ud83d"}, [LONG + "\ud83d"]),
}
OTHER: dict[str, tuple[Any, list[str]]] = {
    "another value": ({"result": LONG + "x"}, [LONG]),
    "1 for true": (
        {"result": [{"ok": n % 2} for n in range(9_000)]},
        [json.dumps([{"ok": n % 2 == 1} for n in range(9_000)])],
    ),
    "1.0 for 1": ({"result": [float(n) for n in range(9_000)]}, [json.dumps(list(range(9_000)))]),
    "NaN": ({"result": [float("nan")] * 9_000}, [json.dumps([None] * 9_000)]),
    "infinity": ({"result": [float("inf")] * 9_000}, [json.dumps([None] * 9_000)]),
    "UUIDs": ({"result": [UUID(int=n) for n in range(900)]}, [json.dumps([str(UUID(int=n)) for n in range(900)])]),
    "tuples": ({"result": [(n, n) for n in range(9_000)]}, [json.dumps([[n, n] for n in range(9_000)])]),
    "more than the text": ({"result": LONG, "source": "rows.csv"}, [LONG]),
    "texts and objects": ({"result": [LONG, {"a": 1}]}, [LONG, '{"a": 1}']),
    "a summary as text": ({"result": ROWS}, [LONG]),
    "no JSON": ({"result": {1, 2}}, [LONG]),
    "nothing": (None, [LONG]),
}


def mcp_tool(structured: Any, texts: list[str], *, artifact: Any = ...) -> BaseTool:
    """Return a tool like those that MCP adapters make."""

    @tool(response_format="content_and_artifact")
    def fetch() -> tuple[list[dict[str, str]], Any]:
        """Fetch rows."""
        content = [{"type": "text", "text": text, "id": f"lc_{place}"} for place, text in enumerate(texts)]
        return content, {"structured_content": structured} if artifact is ... else artifact

    return fetch


def left(made: BaseTool, offloader: Offloader, **options: Any) -> ToolMessage:
    """Return the message that an offloading copy of a tool returns."""
    message = offload_tool(made, offloader, **options).invoke(tool_call("fetch"))
    assert isinstance(message, ToolMessage)
    return message


@pytest.mark.parametrize("sample", SAME)
async def test_a_copy_of_the_stored_text_is_taken_out_and_restored(sample: str) -> None:
    structured, texts = SAME[sample]
    offloader = make_offloader()

    message = left(mcp_tool(structured, texts), offloader)

    assert len(str(message.artifact)) < min(2_200, sum(map(len, texts)) / 5)
    assert list(message.artifact) == ["structured_content"]
    for back in (restore_artifact(message, offloader), await arestore_artifact(message, offloader)):
        assert back == {"structured_content": structured}
        assert json.dumps(back, sort_keys=True) == json.dumps({"structured_content": structured}, sort_keys=True)


@pytest.mark.parametrize("sample", OTHER)
async def test_structured_content_that_differs_from_the_text_stays(sample: str) -> None:
    structured, texts = OTHER[sample]
    offloader = make_offloader()

    message = left(mcp_tool(structured, texts), offloader)

    assert message.artifact == {"structured_content": structured}
    assert restore_artifact(message, offloader) is message.artifact
    assert await arestore_artifact(message, offloader) is message.artifact


@pytest.mark.parametrize(
    "artifact",
    [{"structured_content": {"result": LONG}, "_meta": {}}, {"rows": LONG}, [LONG], LONG, None],
    ids=["with more", "another key", "list", "text", "none"],
)
def test_an_artifact_of_another_shape_stays(artifact: Any) -> None:
    message = left(mcp_tool(None, [LONG], artifact=artifact), make_offloader())

    assert message.artifact == artifact


def test_an_artifact_stays_if_its_result_stays() -> None:
    message = left(mcp_tool({"result": "few words"}, ["few words"]), make_offloader())

    assert message.artifact == {"structured_content": {"result": "few words"}}


def test_an_artifact_stays_if_the_host_wants_it() -> None:
    message = left(mcp_tool({"result": LONG}, [LONG]), make_offloader(), keep_artifact=True)

    assert message.artifact == {"structured_content": {"result": LONG}}


def test_if_the_storage_fails_the_artifact_stays_as_the_last_whole_copy() -> None:
    class Full(InMemoryStorage):
        def save(self, *_: Any, **__: Any) -> None:
            msg = "no space left"
            raise StorageError(msg)

    huge = LONG * 4
    message = left(mcp_tool({"result": huge}, [huge]), Offloader(Full()))

    assert len(str(message.content)) < len(huge)
    assert message.artifact == {"structured_content": {"result": huge}}


def test_an_error_is_raised_if_the_stored_texts_can_no_longer_be_told_apart() -> None:
    offloader = make_offloader()
    message = left(mcp_tool({"result": [LONG, "7"]}, [LONG, "7"]), offloader)
    message.artifact["structured_content"]["coatcheck"]["references"].pop()

    with pytest.raises(StorageError, match="made from 2 strings"):
        restore_artifact(message, offloader)


def test_many_text_blocks_in_a_storage_that_names_its_references_are_not_lost(tmp_path: Path) -> None:
    class Store:
        def write(self, *, key: str, content: str | bytes) -> str:
            (tmp_path / key).write_text(str(content), encoding="utf-8")
            return key

        def read(self, reference: str) -> str | bytes:
            return (tmp_path / reference).read_text(encoding="utf-8")

    offloader = Offloader(ToolResultStoreBridge(Store()))
    texts = [f"{n} {LONG[:1_000]}" for n in range(30)]

    message = left(mcp_tool({"result": texts}, texts), offloader)

    assert restore_artifact(message, offloader) == {"structured_content": {"result": texts}}


async def test_another_scope_restores_nothing() -> None:
    offloader = make_offloader()
    message = left(mcp_tool({"result": LONG}, [LONG]), offloader, scope="tenant-a")

    assert restore_artifact(message, offloader, scope="tenant-a") == {"structured_content": {"result": LONG}}
    with pytest.raises(ReferenceNotFound):
        restore_artifact(message, offloader, scope="tenant-b")
    with pytest.raises(ReferenceNotFound):
        await arestore_artifact(message, offloader, scope="tenant-b")


def own_mark(**more: Any) -> dict[str, Any]:
    """Return structured content that a server made up to look like our mark."""
    mark = {"references": ["fetch-0123456789abcdef-0123"], "texts": 1, "key": "result", "is_list": False}
    return {"structured_content": {"coatcheck": {**mark, "is_json": False, **more}}}


@pytest.mark.parametrize("text", ["sunny", LONG], ids=["stays", "is offloaded"])
async def test_a_forged_mark_restores_nothing_of_another_tool(text: str) -> None:
    offloader = make_offloader()
    other = offloader.offload([TextBlock(LONG * 2)], tool_name="payroll").references[0].id
    forged = own_mark(references=[other])
    middleware = ToolMessages(
        raw=ToolMessage(text, tool_call_id="1", name="fetch", artifact=forged),
        hook=Hook(offloader=offloader, scope=None),
        find_calls=Calls,
    )

    for message in (left(mcp_tool(None, [text], artifact=forged), offloader), settle(middleware, logger=logger)):
        assert restore_artifact(message, offloader) == forged
        assert await arestore_artifact(message, offloader) == forged


@pytest.mark.parametrize(
    "more",
    [
        {"references": []},
        {"references": [{"a": 1}]},
        {"references": ["no reference"]},
        {"references": [""]},
        {"texts": 0},
        {"key": 5},
        {"is_list": "yes"},
    ],
    ids=str,
)
def test_an_artifact_that_only_looks_like_a_mark_is_like_any_other(more: dict[str, Any]) -> None:
    message = ToolMessage("words", tool_call_id="1", artifact=own_mark(**more))

    assert restore_artifact(message, make_offloader()) is message.artifact


def test_a_mark_that_claims_json_for_plain_text_is_an_artifact_like_any_other() -> None:
    offloader = make_offloader()
    message = left(mcp_tool({"result": LONG}, [LONG]), offloader)
    message.artifact["structured_content"]["coatcheck"]["is_json"] = True

    assert restore_artifact(message, offloader) is message.artifact


def test_a_copy_is_restored_if_the_message_names_a_list_of_what_was_stored() -> None:
    offloader = make_offloader()
    texts = [f"{n} {LONG}" for n in range(3)]
    images = [
        {"type": "image", "base64": encode_base64(bytes([n]) * 90_000), "mime_type": "image/png"} for n in range(9)
    ]
    raw = ToolMessage([*texts, *images], tool_call_id="1", artifact={"structured_content": {"result": texts}})
    new = settle(ToolMessages(raw=raw, hook=Hook(offloader=offloader, scope=None), find_calls=Calls), logger=logger)

    assert "blocks" in new.additional_kwargs["coatcheck"]
    assert len(str(new.artifact)) < 600
    assert restore_artifact(new, offloader) == raw.artifact


def test_the_tools_own_artifact_is_never_changed() -> None:
    own = {"structured_content": {"result": LONG}}

    left(mcp_tool(None, [LONG], artifact=own), make_offloader())

    assert own == {"structured_content": {"result": LONG}}


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_messages_are_treated_like_results_of_tools(mode: str) -> None:
    offloader = make_offloader()
    message = ToolMessage(LONG, tool_call_id="1", name="fetch", artifact={"structured_content": {"result": LONG}})
    delivery = ToolMessages(raw=[message], hook=Hook(offloader=offloader, scope=None), find_calls=Calls)

    new = settle(delivery, logger=logger) if mode == "sync" else await asettle(delivery, logger=logger)

    assert message.artifact == {"structured_content": {"result": LONG}}
    assert restore_artifact(new[0], offloader) == message.artifact
    assert len(str(new[0].artifact)) < 600
