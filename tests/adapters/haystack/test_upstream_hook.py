"""What Haystack's own hook does, and ours does too: each test runs with both classes, so that a difference shows.

Deliberate differences are pinned in ``test_deviations``.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import base64
import errno
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import haystack.hooks.tool_result_offloading as upstream
import pytest
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent, ToolCall
from haystack.hooks.human_in_the_loop import (
    AlwaysAskPolicy,
    BlockingConfirmationStrategy,
    ConfirmationHook,
    ConfirmationUIResult,
)

import coatcheck_haystack
from tests.adapters.haystack.agents import (
    IMAGE,
    LONG,
    PDF,
    SHORT,
    UPSTREAM_OUTLIVES_ITS_STORE,
    Scripted,
    agent_of,
    call,
    last,
    results,
    run,
    say,
    state_of,
    text_of,
    tool,
    tool_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

    from haystack.components.agents.state import State

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
FIRST_WORDS = "Tool result offloaded"


@pytest.fixture(params=[upstream, coatcheck_haystack], ids=["upstream", "ours"])
def lib(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def outliving(lib: Any) -> Any:
    """Return the library if its hook outlives a failing store."""
    if lib is upstream and not UPSTREAM_OUTLIVES_ITS_STORE:
        pytest.skip("Haystack's own hook does so from 3.4 on")
    return lib


class TextStore(upstream.ToolResultStore):
    """A store as users write them: it takes only ``str``, and does not say so."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def write(self, *, key: str, content: str | bytes) -> str:
        assert isinstance(content, str)
        self.kept[f"kept://{key}"] = content
        return f"kept://{key}"

    def read(self, reference: str) -> str | bytes:
        return self.kept[reference]  # type: ignore[no-any-return]


class BytesStore(TextStore):
    supports_binary_content = True

    def write(self, *, key: str, content: str | bytes) -> str:
        self.kept[f"kept://{key}"] = content
        return f"kept://{key}"


class FullStore(TextStore):
    def write(self, *, key: str, content: str | bytes) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")


class Nobody:
    """A person who rejects every call."""

    def get_user_confirmation(self, *_: Any, **__: Any) -> ConfirmationUIResult:
        return ConfirmationUIResult(action="reject", feedback="no")


async def apply(hook: Any, state: State, mode: str) -> ChatMessage:
    """Run a hook as the agent would; return the last message."""
    await hook.run_async(state) if mode == "async" and hasattr(hook, "run_async") else hook.run(state)
    message: ChatMessage = state.data["messages"][-1]
    return message


# The hook.


def test_it_is_an_after_tool_hook(lib: Any, tmp_path: Path) -> None:
    hook = lib.ToolResultOffloadHook(lib.FileSystemToolResultStore(tmp_path), {})

    assert hook.allowed_hook_points == ("after_tool",)
    with pytest.raises(ValueError, match="only supports"):
        Agent(chat_generator=Scripted(say()), hooks={"on_exit": [hook]})


@RUNS
async def test_the_full_result_is_stored_and_a_pointer_with_its_reference_takes_its_place(lib: Any, mode: str) -> None:
    store = TextStore()
    hook = lib.ToolResultOffloadHook(store, {"search": lib.AlwaysOffload()})
    agent, model = agent_of([tool("search", LONG)], call(("search", {})), say(), hook=hook, reads=False)

    (message,) = tool_messages((await run(agent, mode))["messages"])

    (reference,) = message.meta["tool_result_offloaded"]
    shown = text_of(message.tool_call_result)  # type: ignore[arg-type]
    assert shown.startswith(FIRST_WORDS)
    assert reference in shown
    assert shown in text_of(results(model.seen[1])[0])
    assert store.read(reference) == LONG
    assert reference.endswith(".txt")


@RUNS
async def test_only_the_results_at_the_end_are_changed(lib: Any, mode: str) -> None:
    state = state_of(LONG)
    old = ChatMessage.from_tool(LONG, origin=ToolCall("search", {}, id="old"))
    state.data["messages"] = [old, ChatMessage.from_user("and now?"), *state.data["messages"]]
    before = list(state.data["messages"])

    await apply(lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}), state, mode)

    same = [new is was for new, was in zip(state.data["messages"], before, strict=True)]
    assert same == [True] * (len(before) - 1) + [False]


@RUNS
async def test_all_results_of_a_step_are_checked(lib: Any, mode: str) -> None:
    state = state_of(LONG, SHORT, LONG + "x")

    await apply(lib.ToolResultOffloadHook(TextStore(), {"*": lib.OffloadOverChars(1_000)}), state, mode)

    assert [bool(message.meta) for message in tool_messages(state.data["messages"])] == [True, False, True]


@RUNS
async def test_messages_are_written_back_only_if_one_changed(lib: Any, mode: str) -> None:
    state = state_of(SHORT)
    before = state.data["messages"]

    await apply(lib.ToolResultOffloadHook(TextStore(), {"*": lib.OffloadOverChars(1_000)}), state, mode)
    assert state.data["messages"] is before

    await apply(lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}), state, mode)
    assert state.data["messages"] is not before


@pytest.mark.parametrize("messages", [[], [ChatMessage.from_user("hello")]], ids=["none", "no result"])
@RUNS
async def test_a_conversation_without_results_is_left_alone(lib: Any, mode: str, messages: list[ChatMessage]) -> None:
    state = state_of()
    state.data["messages"] = messages

    hook = lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()})
    await hook.run_async(state) if mode == "async" and hasattr(hook, "run_async") else hook.run(state)

    assert state.data["messages"] is messages


@RUNS
async def test_the_origin_the_error_mark_and_other_meta_stay(lib: Any, mode: str) -> None:
    state = state_of(LONG)
    origin = ToolCall("search", {"number": 0}, id="call-0", extra={"signature": "s"})
    state.data["messages"][-1] = ChatMessage.from_tool(LONG, origin=origin, meta={"trace": 7})

    message = await apply(lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}), state, mode)

    result = last(state)
    assert (result.origin, result.error) == (origin, False)
    assert message.meta.keys() == {"trace", "tool_result_offloaded"}
    assert message.meta["trace"] == 7


# The constructor.


def test_constructor_and_attributes(lib: Any) -> None:
    store, strategies = TextStore(), {"*": lib.NeverOffload()}

    hook = lib.ToolResultOffloadHook(store, strategies)
    named = lib.ToolResultOffloadHook(store=store, offload_strategies=strategies, preview_chars=7)

    assert (hook.store, hook.offload_strategies, hook.preview_chars) == (store, strategies, 200)
    assert named.preview_chars == 7
    with pytest.raises(TypeError):
        lib.ToolResultOffloadHook(store, strategies, 7)


# Strategies.


@pytest.mark.parametrize(
    ("keys", "leaves"),
    [
        ([("search", "Always"), (("search", "x"), "Never"), ("*", "Never")], True),
        ([("search", "Never"), ("*", "Always")], False),
        ([("*", "Never"), (("x", "search"), "Always")], True),
        ([(("x", "y"), "Always"), (("y", "search"), "Never"), ("*", "Always")], False),
        ([("*", "Always")], True),
        ([("other", "Always"), (("x", "y"), "Always")], False),
        ([], False),
    ],
)
def test_the_most_specific_strategy_wins_and_without_one_a_result_stays(
    lib: Any, keys: list[Any], leaves: bool
) -> None:
    state = state_of(LONG)
    strategies = {key: getattr(lib, f"{verdict}Offload")() for key, verdict in keys}

    lib.ToolResultOffloadHook(TextStore(), strategies).run(state)

    assert text_of(last(state)).startswith(FIRST_WORDS) is leaves


@pytest.mark.parametrize(("length", "leaves"), [(999, False), (1_000, False), (1_001, True)])
@pytest.mark.parametrize("letter", ["x", " ", "漢"])
def test_over_chars_offloads_only_above_its_limit(lib: Any, length: int, leaves: bool, letter: str) -> None:
    state = state_of(letter * length)

    lib.ToolResultOffloadHook(TextStore(), {"*": lib.OffloadOverChars(1_000)}).run(state)

    assert text_of(last(state)).startswith(FIRST_WORDS) is leaves


def test_over_chars_measures_base64(lib: Any) -> None:
    characters = len("caption") + len(IMAGE.base64_image)
    at, above = state_of([TextContent("caption"), IMAGE]), state_of([TextContent("caption"), IMAGE])

    lib.ToolResultOffloadHook(BytesStore(), {"*": lib.OffloadOverChars(characters)}).run(at)
    lib.ToolResultOffloadHook(BytesStore(), {"*": lib.OffloadOverChars(characters - 1)}).run(above)

    assert last(at).result == [TextContent("caption"), IMAGE]
    assert text_of(last(above)).startswith(FIRST_WORDS)


def test_always_offload_takes_even_a_tiny_result(lib: Any) -> None:
    state = state_of("ok")

    lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}).run(state)

    assert text_of(last(state)).startswith(FIRST_WORDS)


def test_never_offload_keeps_even_a_large_result(lib: Any) -> None:
    state = state_of(LONG)

    lib.ToolResultOffloadHook(TextStore(), {"*": lib.NeverOffload()}).run(state)

    assert last(state).result == LONG


def test_a_result_that_a_custom_policy_declines_stays_even_if_it_is_large(lib: Any) -> None:
    class Declining(lib.OffloadPolicy):  # type: ignore[misc]
        def should_offload(self, tool_name: str, result: str, state: State) -> bool:
            return False

    state = state_of(LONG)

    lib.ToolResultOffloadHook(TextStore(), {"*": Declining()}).run(state)

    assert last(state).result == LONG


def test_a_large_result_stays_if_the_store_fails(outliving: Any) -> None:
    state = state_of(LONG)

    outliving.ToolResultOffloadHook(FullStore(), {"*": outliving.AlwaysOffload()}).run(state)

    assert last(state).result == LONG


def test_a_custom_policy_is_called_by_name_with_the_live_state(lib: Any) -> None:
    asked: list[tuple[str, str, Any]] = []

    class Custom(lib.OffloadPolicy):  # type: ignore[misc]
        def should_offload(self, *, tool_name: str, result: str, state: Any) -> bool:
            asked.append((tool_name, result, state))
            return True

    state = state_of(SHORT)
    lib.ToolResultOffloadHook(TextStore(), {"*": Custom()}).run(state)

    assert asked == [("search", SHORT, state)]
    assert text_of(last(state)).startswith(FIRST_WORDS)


# Stores.


def test_a_store_chooses_its_references_and_reads_them(lib: Any) -> None:
    store = TextStore()
    state = state_of(LONG)

    lib.ToolResultOffloadHook(store, {"*": lib.AlwaysOffload()}).run(state)

    (reference,) = state.data["messages"][-1].meta["tool_result_offloaded"]
    assert list(store.kept) == [reference]
    assert "search" in reference


@RUNS
async def test_a_run_may_bring_its_own_store(lib: Any, mode: str) -> None:
    assert lib.RESULT_STORE_CONTEXT_KEY == "tool_result_store"
    shared, own = TextStore(), TextStore()
    hook = lib.ToolResultOffloadHook(shared, {"*": lib.AlwaysOffload()})
    agent, _ = agent_of([tool("search", LONG)], call(("search", {})), say(), hook=hook, reads=False)

    await run(agent, mode, hook_context={lib.RESULT_STORE_CONTEXT_KEY: own})

    assert (len(shared.kept), list(own.kept.values())) == (0, [LONG])


# What stays, and how.


@RUNS
async def test_errors_stay(lib: Any, mode: str) -> None:
    hook = lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()})
    agent, _ = agent_of([tool("bad", ValueError(LONG))], call(("bad", {}), ("missing", {})), say(), hook=hook)

    found = results((await run(agent, mode))["messages"])

    assert [result.error for result in found] == [True, True]
    assert not any(text_of(result).startswith(FIRST_WORDS) for result in found)


@RUNS
async def test_the_rejection_of_a_person_stays(lib: Any, mode: str) -> None:
    store = TextStore()
    rejecting = BlockingConfirmationStrategy(confirmation_policy=AlwaysAskPolicy(), confirmation_ui=Nobody())  # type: ignore[arg-type]  # never serialized
    asking = ConfirmationHook(confirmation_strategies={"search": rejecting})
    agent = Agent(
        chat_generator=Scripted(call(("search", {}), ("other", {})), say()),
        tools=[tool("search", LONG), tool("other", LONG + "other")],
        hooks={
            "before_tool": [asking],
            "after_tool": [lib.ToolResultOffloadHook(store, {"*": lib.AlwaysOffload()})],
        },
    )

    messages = tool_messages((await run(agent, mode))["messages"])

    by_tool = {message.tool_call_result.origin.tool_name: message for message in messages}  # type: ignore[union-attr]
    assert by_tool["search"].tool_call_result.error  # type: ignore[union-attr]
    assert "tool_result_offloaded" not in by_tool["search"].meta
    assert list(store.kept.values()) == [LONG + "other"]


@pytest.mark.parametrize("content", ["", [], [TextContent("")], [TextContent(""), TextContent("")]])
def test_empty_results_stay(lib: Any, content: Any) -> None:
    state = state_of(content)

    lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}).run(state)

    assert last(state).result == content
    assert state.data["messages"][-1].meta == {}


def test_media_are_decoded_for_a_store_that_takes_bytes(lib: Any) -> None:
    store = BytesStore()
    state = state_of([TextContent("caption"), IMAGE, PDF])

    lib.ToolResultOffloadHook(store, {"*": lib.AlwaysOffload()}).run(state)

    references = state.data["messages"][-1].meta["tool_result_offloaded"]
    data = [base64.b64decode(part) for part in (IMAGE.base64_image, PDF.base64_data)]
    assert [store.read(reference) for reference in references] == ["caption", *data]
    assert [reference.rpartition(".")[2] for reference in references] == ["txt", "png", "pdf"]


@pytest.mark.parametrize(
    "content",
    [[IMAGE], [PDF], [TextContent(LONG), IMAGE]],
    ids=["image", "file", "text and image"],
)
def test_media_stay_with_a_store_for_text_and_a_warning_is_logged(
    lib: Any, content: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    state = state_of(content)

    lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}).run(state)

    assert last(state).result == content
    assert "TextStore does not support binary content" in caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("part", "ending"),
    [
        (FileContent("aGk=", mime_type="text/csv"), ".csv"),
        (FileContent("aGk=", mime_type="application/pdf", filename="notes.md"), ".md"),
        (FileContent("aGk=", mime_type="application/pdf", filename="notes"), ".pdf"),
        (FileContent("aGk=", mime_type=None, filename="data.xyz"), ".xyz"),
        (FileContent("aGk=", mime_type="application/gzip", filename="../a/dump.tar.gz"), ".gz"),
        (FileContent("aGk=", mime_type="application/zip"), ".zip"),
        (FileContent("aGk=", mime_type="application/x-odd", filename="UPPER.XLSX"), ".XLSX"),
        (FileContent("aGk=", mime_type=None), ".bin"),
        (ImageContent("aGk=", mime_type="image/svg+xml", validation=False), ".svg"),
        (ImageContent("aGk=", mime_type="image/webp", validation=False), ".webp"),
    ],
)
def test_a_key_has_the_suffix_of_the_files_own_name_or_else_of_its_type(lib: Any, part: Any, ending: str) -> None:
    state, store = state_of([part]), BytesStore()

    lib.ToolResultOffloadHook(store, {"*": lib.AlwaysOffload()}).run(state)

    (reference,) = state.data["messages"][-1].meta["tool_result_offloaded"]
    assert PurePath(reference).suffix == ending
    assert store.read(reference) == b"hi"


@pytest.mark.parametrize(
    "content",
    [
        LONG,
        [TextContent(LONG)],
        [IMAGE],
        [PDF],
        [TextContent(""), IMAGE],
        [TextContent("caption"), IMAGE, PDF],
        [TextContent(LONG), TextContent(LONG + "x")],
    ],
    ids=["text", "list of one", "image", "file", "empty text and image", "text, image and file", "two texts"],
)
@RUNS
async def test_a_result_is_replaced_by_one_str(lib: Any, mode: str, content: Any) -> None:
    state = state_of(content)

    await apply(lib.ToolResultOffloadHook(BytesStore(), {"*": lib.AlwaysOffload()}), state, mode)

    shown = last(state).result
    assert isinstance(shown, str)
    assert shown.startswith(FIRST_WORDS)
    assert all(reference in shown for reference in state.data["messages"][-1].meta["tool_result_offloaded"])


def test_a_failed_write_is_logged_in_the_words_that_haystack_users_know(
    outliving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    outliving.ToolResultOffloadHook(FullStore(), {"*": outliving.AlwaysOffload()}).run(state_of(LONG))

    assert "failed to offload" in caplog.text.lower()
    assert "No space left on device" in caplog.text


def test_nothing_is_logged_for_text_in_a_store_for_text(lib: Any, caplog: pytest.LogCaptureFixture) -> None:
    lib.ToolResultOffloadHook(TextStore(), {"*": lib.AlwaysOffload()}).run(state_of([TextContent(LONG)]))

    assert caplog.records == []


# Offloaded once; stores that fail.


def test_each_result_is_offloaded_at_most_once(lib: Any) -> None:
    store = TextStore()
    state = state_of(LONG)
    hook = lib.ToolResultOffloadHook(store, {"*": lib.AlwaysOffload()})

    hook.run(state)
    after = state.data["messages"]
    hook.run(state)

    assert state.data["messages"] is after
    assert len(store.kept) == 1


@pytest.mark.parametrize("second", [upstream, coatcheck_haystack], ids=["then upstream", "then ours"])
def test_two_hooks_leave_each_others_pointers_alone(lib: Any, second: Any) -> None:
    first_store, second_store = TextStore(), TextStore()
    state = state_of(LONG)

    lib.ToolResultOffloadHook(first_store, {"*": lib.AlwaysOffload()}).run(state)
    second.ToolResultOffloadHook(second_store, {"*": second.AlwaysOffload()}).run(state)

    assert (len(first_store.kept), len(second_store.kept)) == (1, 0)


@RUNS
async def test_a_store_that_fails_leaves_the_result_and_logs_a_warning(
    outliving: Any, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook = outliving.ToolResultOffloadHook(FullStore(), {"*": outliving.AlwaysOffload()})
    agent, _ = agent_of([tool("search", LONG)], call(("search", {})), say("done"), hook=hook)

    answer = await run(agent, mode)

    (message,) = tool_messages(answer["messages"])
    assert (message.tool_call_result.result, message.meta) == (LONG, {})  # type: ignore[union-attr]
    assert answer["last_message"].text == "done"
    assert "No space left on device" in caplog.text


def test_a_store_that_fails_halfway_leaves_the_result(outliving: Any) -> None:
    class Half(BytesStore):
        def write(self, *, key: str, content: str | bytes) -> str:
            if self.kept:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(key=key, content=content)

    content = [TextContent(LONG), ImageContent(IMAGE.base64_image, mime_type="image/png"), FileContent(PDF.base64_data)]
    state = state_of(content)

    outliving.ToolResultOffloadHook(Half(), {"*": outliving.AlwaysOffload()}).run(state)

    assert last(state).result == content
    assert state.data["messages"][-1].meta == {}
