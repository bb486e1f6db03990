"""Fields of a result that are not text, media or structured content: the hard limit holds for them too."""

# ruff: noqa: ANN401 - what the protocol passes is of any type

from __future__ import annotations

import base64
import json
import string
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Always, InMemoryStorage, Never, Offloader, StorageError
from coatcheck_mcp import hook, offloaded_references
from coatcheck_mcp.convert import side_size, texts_of
from coatcheck_mcp.hook import Call, offload_result
from tests.adapters.mcp.servers import LINK, PIXELS, text

HARD_LIMIT = 4_000
HUGE = "word " * 2 * HARD_LIMIT
IMAGE = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PIXELS).decode()}
FILE = {"uri": "file:///a", "blob": "AAAA"}


def result(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": [*parts], **more}


HOSTILE = {
    "a link with a huge description": result({**LINK, "description": HUGE}),
    "a link with a huge icon": result({**LINK, "icons": [{"src": HUGE}]}),
    "a link with a huge name": result({**LINK, "name": HUGE}),
    "a link with a huge title": result(text("few"), {**LINK, "title": HUGE}),
    "a link with a huge uri": result({**LINK, "uri": f"file:///{HUGE}"}),
    "a text with huge _meta": result({**text("few"), "_meta": {"a/b": [HUGE]}}),
    "a text with huge annotations": result({**text("few"), "annotations": {HUGE: 1}}),
    "an embedded file with a huge uri": result({"type": "resource", "resource": {**FILE, "uri": f"file:///{HUGE}"}}),
    "an image with a huge type": result({**IMAGE, "mimeType": f"image/{HUGE}"}),
    "an image with huge _meta": result({**IMAGE, "_meta": {"a/b": HUGE}}),
    "base64 of a file that is none": result({"type": "resource", "resource": {**FILE, "blob": HUGE + "!"}}),
    "base64 of an image that is none": result({**IMAGE, "data": HUGE + "!"}),
    "huge _meta of the result": result(text("few"), _meta={"a/b": HUGE}),
    "more links than anyone reads": result(*({**LINK, "uri": f"file:///{number**40}"} for number in range(500))),
    "unknown fields that are huge": result(text("few"), more={"a": HUGE}),
    "unknown parts that are huge": result({"type": "thing", "text": HUGE}),
}
hostile = pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())


def offloader_of(storage: Any) -> Offloader:
    return Offloader(storage, max_result_tokens=2_000, max_inline_tokens=HARD_LIMIT)


async def sent_of(raw: dict[str, Any], offloader: Offloader, **more: Any) -> Any:
    return await offload_result(raw, Call(tool_name="t", scope="s", retrieval_tool="r", **more), offloader)


@hostile
async def test_a_huge_side_field_is_offloaded_and_nothing_of_it_is_lost(raw: dict[str, Any]) -> None:
    offloader = offloader_of(InMemoryStorage())
    sent = await sent_of(raw, offloader)
    (reference,) = offloaded_references(sent)
    assert len(json.dumps(sent)) < 10_000
    kept = json.loads(offloader.load(reference, scope="s").text)
    assert kept in (raw, raw["content"][0])


@hostile
async def test_policies_errors_and_requests_to_keep_count_only_up_to_the_hard_limit(raw: dict[str, Any]) -> None:
    offloader = offloader_of(InMemoryStorage())
    for sent_in, more in (
        (raw, {"policy": Never()}),
        ({**raw, "isError": True}, {}),
        (raw, {"meta": {"coatcheck": "keep"}}),
    ):
        sent = await sent_of(sent_in, offloader, **more)
        assert len(json.dumps(sent)) < 10_000
        assert sent.get("isError") == sent_in.get("isError")


class _Full:
    def save(self, *_: Any, **__: Any) -> None:
        msg = "no room"
        raise StorageError(msg)

    def load(self, *_: Any) -> None:
        return None


@hostile
async def test_a_huge_side_field_that_cannot_be_stored_is_cut_at_the_hard_limit(raw: dict[str, Any]) -> None:
    sent = await sent_of(raw, offloader_of(_Full()))
    assert len(json.dumps(sent)) < 5 * HARD_LIMIT + 2_000


@hostile
async def test_the_last_resort_applies_to_side_fields_too(raw: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    offloader = offloader_of(InMemoryStorage())

    async def fail(**_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(offloader, "aoffload", fail)
    assert len(json.dumps(await sent_of(raw, offloader))) < 5 * HARD_LIMIT + 2_000


async def test_links_and_annotations_of_the_usual_size_stay_as_they_are() -> None:
    links = [{**LINK, "uri": f"file:///{number}", "description": "what it is " * 9} for number in range(300)]
    raw = result(*links, {**text("few"), "annotations": {"priority": 1}}, _meta={"a/b": "c" * 10_000})
    assert await sent_of(raw, Offloader(InMemoryStorage())) is raw
    sent = await sent_of(result(text("word " * 9_000), *links), Offloader(InMemoryStorage()))
    assert sent["content"][1:] == links


async def test_a_small_malformed_image_stays_if_its_result_does() -> None:
    raw = result({**IMAGE, "data": "%%%"}, text("few"))
    assert await sent_of(raw, Offloader(InMemoryStorage())) is raw


async def test_a_long_file_name_is_not_shown_in_full() -> None:
    raw = result({"type": "resource", "resource": {**FILE, "uri": "file:///" + "n" * 150_000}})
    sent = await sent_of(raw, Offloader(InMemoryStorage()), policy=Always())
    assert len(json.dumps(sent)) < 10_000


LONG = "word " * 9_000
ROWS = json.dumps([{"a": number, "b": "c" * 30} for number in range(3_000)])


def resource(uri: str, **fields: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, **fields}}


ABOUT = {
    "files that differ in their paths": (
        result(
            resource("repo://a/b/one.txt", mimeType="text/plain", text=LONG), resource("repo://a/c/two.txt", text=LONG)
        ),
        [resource("repo://a/b/one.txt", mimeType="text/plain"), resource("repo://a/c/two.txt")],
    ),
    "a file as text and as bytes": (
        result(resource("file:///a", text=LONG, blob="AAAA")),
        [resource("file:///a", blob="AAAA")],
    ),
    "bytes of a file": (
        result(text(LONG), resource("file:///a/b.bin", blob="AAAA")),
        [{"type": "text"}, resource("file:///a/b.bin")],
    ),
    "annotations and _meta": (
        result(
            {**text(LONG), "annotations": {"audience": ["user"]}}, LINK, text("few"), {**IMAGE, "_meta": {"a/b": 1}}
        ),
        [
            {"type": "text", "annotations": {"audience": ["user"]}},
            {"type": "text"},
            {"type": "image", "mimeType": "image/png", "_meta": {"a/b": 1}},
        ],
    ),
    "a field that no protocol names": (
        result({**text(LONG), "mimeType": "text/html"}),
        [{"type": "text", "mimeType": "text/html"}],
    ),
}


@pytest.mark.parametrize(("raw", "about"), ABOUT.values(), ids=ABOUT.keys())
async def test_side_fields_of_text_and_media_are_stored_and_shown_with_them(
    raw: dict[str, Any], about: list[Any]
) -> None:
    offloader = offloader_of(InMemoryStorage())
    sent = await sent_of(raw, offloader, policy=Always())
    *_, last = offloaded_references(sent)
    assert json.loads(offloader.load(last, scope="s").text) == about
    uris = [each["resource"]["uri"] for each in about if each["type"] == "resource"]
    assert all(uri in sent["content"][0]["text"] for uri in uris)


@pytest.mark.parametrize("engine_fails", [False, True], ids=["no storage", "no engine either"])
@pytest.mark.parametrize(("raw", "about"), ABOUT.values(), ids=ABOUT.keys())
async def test_side_fields_of_text_are_shown_if_the_text_is_cut(
    raw: dict[str, Any], about: list[Any], monkeypatch: pytest.MonkeyPatch, *, engine_fails: bool
) -> None:
    async def fail(**_: Any) -> None:
        raise MemoryError

    offloader = offloader_of(_Full())
    if engine_fails:
        monkeypatch.setattr(offloader, "aoffload", fail)
    sent = await sent_of(result(text("word " * 2 * HARD_LIMIT), *raw["content"]), offloader)
    assert offloaded_references(sent) == ()
    shown = json.dumps(sent).replace("\\", "").replace(" ", "")
    for said in about:
        fields = {**said, **said.get("resource", {})}
        for name in fields.keys() & {"uri", "annotations", "_meta", "mimeType"}:
            assert json.dumps({name: fields[name]}).replace(" ", "").strip("{}") in shown


@pytest.mark.parametrize(
    "part",
    [
        text(LONG),
        {**text(LONG), "annotations": None},
        IMAGE,
        resource("file:///a.pdf", mimeType="application/pdf", blob="AAAA"),
    ],
)
async def test_parts_without_side_fields_are_stored_alone(part: dict[str, Any]) -> None:
    sent = await sent_of(result(part), offloader_of(InMemoryStorage()), policy=Always())
    assert len(offloaded_references(sent)) == 1


async def test_the_text_of_a_file_is_stored_as_it_is() -> None:
    offloader = offloader_of(InMemoryStorage())
    sent = await sent_of(result(resource("file:///rows.json", text=ROWS)), offloader)
    first, _ = offloaded_references(sent)
    assert offloader.load(first, scope="s").text == ROWS


ODD = {
    "numbers": [0.12345678901234567] * 2_000,
    "escapes": "\0" * 4_000,
    "names of fields": {str(number): None for number in range(2_000)},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
async def test_side_fields_count_by_the_length_of_their_json(odd: Any) -> None:
    sent = await sent_of(result({**text("few"), "annotations": {"a": odd}}), offloader_of(InMemoryStorage()))
    assert len(json.dumps(sent)) < 10_000


async def test_letters_of_any_script_count_by_their_own_bytes_not_by_their_escapes() -> None:
    raw = result({**LINK, "description": "字" * HARD_LIMIT})
    assert await sent_of(raw, offloader_of(InMemoryStorage())) is raw

    twice = result({**LINK, "description": "字" * 2 * HARD_LIMIT})
    assert await sent_of(twice, offloader_of(InMemoryStorage())) is not twice


PLAIN = st.text(string.printable + "é字\0", max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | PLAIN,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(PLAIN, inner, max_size=5),
    max_leaves=40,
)


@given(meta=st.dictionaries(PLAIN, VALUES, min_size=1), parts=st.lists(st.dictionaries(PLAIN, VALUES), max_size=5))
def test_the_size_of_side_fields_is_about_that_of_their_json(meta: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    size = len(json.dumps([{"_meta": meta}, *parts], ensure_ascii=False))

    assert size / 2 <= side_size(result(*parts, _meta=meta), up_to=10**9) <= 2 * size


def test_measuring_side_fields_stops_at_the_limit() -> None:
    class Part(dict[str, Any]):
        looked_at = 0

        def keys(self) -> Any:
            Part.looked_at += 1
            return super().keys()

    assert side_size(result(*(Part(LINK) for _ in range(10_000))), up_to=HARD_LIMIT) > HARD_LIMIT
    assert Part.looked_at < 100


@pytest.mark.parametrize(
    ("large", "is_off_the_loop"),
    [
        (result(text("few"), structuredContent={"rows": [["a", 1]] * 20_000}), True),
        (result(*[text("few")] * 5_000), True),
        (result(text("few"), structuredContent={"rows": [["a", 1]] * 20}), False),
    ],
    ids=["much JSON", "many parts", "little"],
)
async def test_a_large_result_is_inspected_off_the_event_loop(
    large: dict[str, Any], is_off_the_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def note(raw: Any) -> list[str] | None:
        threads.append(threading.get_ident())
        return texts_of(raw)

    monkeypatch.setattr(hook, "texts_of", note)
    await offload_result(large, Call(tool_name="t", scope="s", retrieval_tool="r"), Offloader(InMemoryStorage()))

    assert threads
    assert (threads[0] != threading.get_ident()) is is_off_the_loop
