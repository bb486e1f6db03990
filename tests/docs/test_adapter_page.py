"""The adapter on the page for adapter authors passes the contract that the page advertises, exactly as shown there.

The code is the page's own. This file adds the framework, of which the page shows only the hook.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from coatcheck import JsonBlock, MediaBlock, TextBlock
from coatcheck.adapting import MARK, encode_base64, references_in
from coatcheck.testing import SCENARIOS, AdapterContract, Received, Run, Transcript
from tests.docs.pages import blocks_of
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from coatcheck import Block
    from coatcheck.testing import Capability, ModelCall, Returned

PAGE = ROOT / "docs" / "writing-an-adapter.md"

Message = dict[str, Any]


def adapter_on(page: Path) -> str:
    """Return the code of the adapter: the page's first block that readers see."""
    return next(block.text for block in blocks_of(page) if block.kind == "python" and not block.is_hidden)


@dataclass(frozen=True, slots=True)
class Tool:
    """A user's tool in the page's framework."""

    name: str
    results: Mapping[int, Returned]

    def give(self, call: ModelCall) -> Message:
        """Return the result message of a call."""
        number = call.arguments["number"]
        assert isinstance(number, int)
        result = self.results[number]
        return {"content": [part_of(block) for block in result.blocks], "is_error": result.is_error}


def part_of(block: Block) -> Any:  # noqa: ANN401 - a part is a dictionary, or something that no adapter knows
    """Convert a content block to the framework's format."""
    match block:
        case TextBlock(text):
            return {"text": text}
        case JsonBlock(value):
            return {"json": value}
        case MediaBlock(data, media_type):
            return {"image": f"data:{media_type};base64,{encode_base64(data)}"}
        case _:
            return {"other": block.native}


class PageHarness:
    """Runs an agent of the page's framework, with the page's adapter."""

    def __init__(self, code: str) -> None:
        self._names: dict[str, Any] = {"__name__": __name__}
        exec(compile(code, PAGE, "exec", dont_inherit=True), self._names)  # noqa: S102 - the code under test

    def run(self, case: Run) -> Transcript:
        """Run the conversation, sync."""
        plugin, tools, messages = self._plugin(case), tools_of(case), list[Message]()
        while calls := case.model([*map(received, messages)]):
            for call in calls:
                if plugin is None:
                    messages.append(case.watch_result(tools[call.tool].give(call)))
                elif call.tool == plugin.tool["name"]:
                    messages.append(plugin.run_tool(asked(call, case)))
                else:
                    message = case.watch_result(tools[call.tool].give(call))
                    messages.append(plugin.after_tool(asked(call, case), message))
        return transcript(messages, plugin, tools)

    async def arun(self, case: Run) -> Transcript:
        """Run the conversation, async."""
        plugin, tools, messages = self._plugin(case), tools_of(case), list[Message]()
        while calls := case.model([*map(received, messages)]):
            for call in calls:
                if plugin is None:
                    messages.append(case.watch_result(tools[call.tool].give(call)))
                elif call.tool == plugin.tool["name"]:
                    messages.append(await plugin.arun_tool(asked(call, case)))
                else:
                    message = case.watch_result(tools[call.tool].give(call))
                    messages.append(await plugin.aafter_tool(asked(call, case), message))
        return transcript(messages, plugin, tools)

    def _plugin(self, case: Run) -> Any:  # noqa: ANN401 - a class of the page
        if case.offloader is None:
            return None
        plugin = case.share(lambda: self._names["Offloading"](case.offloader, scope=case.scope))
        plugin.before_run(list(case.tools))
        return plugin


def tools_of(case: Run) -> dict[str, Tool]:
    return {name: case.watch(Tool(name, results)) for name, results in case.tools.items()}


def asked(call: ModelCall, case: Run) -> dict[str, Any]:
    """Return a call in the form in which the framework shows it to a plugin."""
    metadata = {"coatcheck": "keep"} if call.tool in case.kept_tools else {}
    own: dict[str, Any] = {} if case.identity is None else {"conversation": case.identity}
    return {"tool": call.tool, "arguments": dict(call.arguments), "metadata": metadata, **own}


def received(message: Message) -> Received:
    """Return a message as the model receives it."""
    content = message["content"]
    parts: Sequence[Any] = [{"text": content}] if isinstance(content, str) else content
    text = "\n".join(part["text"] for part in parts if "text" in part)
    references = references_in(message.get(MARK))
    return Received(text=text, raw=json.dumps(parts), is_error=message.get("is_error", False), references=references)


def transcript(messages: Sequence[Message], plugin: Any, tools: Mapping[str, Tool]) -> Transcript:  # noqa: ANN401 - as above
    offered = {*tools, *(() if plugin is None else (plugin.tool["name"],))}
    return Transcript(received=tuple(map(received, messages)), offered=frozenset(offered))


NOT_ON_THE_PAGE: Mapping[Capability, str] = {
    "document names": "the framework of the page gives a medium no name",
    "whole steps": "it shows a plugin one call at a time",
    "final answers": "it has none from tools",
    "cancelled calls": "it has none",
    "interrupts": "it has none",
    "results for code": "it has none",
}


class TestAdapterOnThePage(AdapterContract):
    lacks: ClassVar[Mapping[Capability, str]] = NOT_ON_THE_PAGE
    deliveries: ClassVar[tuple[str, ...]] = ("sync, memory", "async, files")

    @pytest.fixture
    def harness(self) -> PageHarness:
        return PageHarness(adapter_on(PAGE))


SETTLED = "        return settle(ToolMessage(raw=message, call=call, plugin=self), logger=logger)"
BROKEN = {
    SETTLED: (
        """\
        delivery = ToolMessage(raw=message, call=call, plugin=self)
        (batch,) = delivery.look()
        (call,) = batch.convert()
        return delivery.put_back([(batch.arrivals[0], batch.offloader.offload(**call, **batch.common_arguments()))])""",
        "offloading fails",
        "the guard",
    ),
    '        return {**self.raw, "content": content_of(outcome.blocks), MARK: outcome.mark}': (
        '        self.raw["content"] = content_of(outcome.blocks)\n        return self.raw',
        "just above the threshold",
        "put_back",
    ),
    "        return {**self.raw, ": ('        return {**self.raw, "is_error": False, ', "huge error", "put_back"),
    ", MARK: outcome.mark}": ("}", "just above the threshold", "put_back: MARK"),
    '{"scope": resolve_scope(self.scope, call), ': ('{"scope": "mine", ', "just above the threshold", "the scope"),
    'tool_name=self.call["tool"],': ('tool_name="tool",', "just above the threshold", "Arrival.tool_name"),
    '            tool_args=self.call["arguments"],': (
        "",
        "policy function that looks at arguments",
        "Arrival.tool_name and Arrival.tool_args",
    ),
    '            is_error=self.raw.get("is_error", False),': ("", "error", "Arrival.is_error"),
    '            policy=Never() if asks_to_keep(self.call.get("metadata")) else None,': (
        "",
        "a result that the host keeps",
        "Arrival.policy",
    ),
    '"identity": call.get("conversation")': ("", "reference from another conversation of the framework", "the scope"),
    "        refuse_name_clash(tools)": (
        "        pass",
        "a tool of the user's with the retrieval tool's name",
        "refuse_name_clash",
    ),
    "            convert=blocks_of,": (
        "            convert=blocks_of,\n            convert_plainly=lambda parts: list(map(OpaqueBlock, parts)),",
        "offloading a huge result fails",
        "Arrival.convert_plainly",
    ),
}
"""For code on the page: a defect to put in its place, the scenario that must then fail, and the place it points at."""


@pytest.mark.parametrize("shown", BROKEN, ids=str.strip)
def test_a_defect_on_the_page_is_found(shown: str, tmp_path: Path) -> None:
    instead, name, place = BROKEN[shown]
    code = adapter_on(PAGE)
    assert code.count(shown) == 1
    broken = PageHarness(code.replace(shown, instead))
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)

    with pytest.raises(AssertionError, match=f"Look at {place}"):
        AdapterContract().test_scenario(broken, scenario=scenario, delivery="sync, memory", tmp_path=tmp_path)
