"""Where an author looks when a scenario fails: the part of the adapter that the scenario is about.

Each failure of ``AdapterContract`` ends with such a place, named as in ``docs/writing-an-adapter.md``. ``trial`` says
what failed; this module only finds the place, from a scenario or from a wrong placeholder.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coatcheck.testing.suite import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing.scenario import Scenario

__all__ = (
    "IN_PLACE",
    "MARK_OF_ERRORS",
    "MARK_OF_FAILURES",
    "MARK_OF_REFERENCES",
    "OFF_THE_LOOP",
    "RETRIEVAL",
    "SHARING",
    "TOOLS",
    "naming_needs",
    "place_of_answers",
    "place_of_error",
    "place_of_references",
    "place_of_results",
    "pointing_at",
)

CONVERSIONS = (
    "the two conversions: Arrival.convert hands over every block, in order, and put_back makes new content of the"
    " outcome's blocks, once"
)
HOOK = (
    "the hook: the traceback says what raised. Nothing of the adapter that may fail belongs outside of settle, asettle,"
    " answer and aanswer"
)
LAST_RESORT = (
    "Arrival.convert_plainly, for the last resort: it finds the same texts as convert. Leave it out only where convert"
    " makes one block of each part. Then look at put_back, and at look_again if you override it. A guard of your own,"
    " in place of settle and asettle, calls last_resort or alast_resort"
)
GUARD = (
    "the guard: settle or asettle gets each result, with a logger of yours, and the adapter converts, offloads and puts"
    " back nothing outside of it"
)
SCOPE = (
    "the scope: Batch.scope and Batch.identity, which look passes, and what answer and aanswer find. The user's scope="
    " comes first, then the framework's own id of the conversation; nothing is made up or kept for the next call"
)
TOOL_NAME = "Arrival.tool_name, which look passes: that of this call, as the framework has it"
RETRIEVAL = (
    "the retrieval tool: the model is offered it, answer and aanswer get the arguments as the model sent them and find"
    " the scope that look passes, and what they return, a Failure too, is the result, never offloaded"
)
OFF_THE_LOOP = "the async path: asettle and aanswer, never settle and answer there"
IN_PLACE = "put_back: it makes a new message with new content, and changes nothing of what the tool returned"
MARK_OF_REFERENCES = "put_back: MARK on the new message, with outcome.mark, where offloaded_references looks for it"
MARK_OF_FAILURES = "the retrieval tool: its result is an error where aanswer returns a Failure, and only there"
MARK_OF_ERRORS = "put_back: the new message is an error where the tool's was one, and only there"
TOOLS = (
    "what the adapter does to the user's tools, and the harness: every tool object passes through Run.watch, and"
    " everything that a tool returns through Run.watch_result"
)
SHARING = (
    "the harness: Run.share makes the adapter, once in each run. If no two conversations can go through one adapter,"
    ' say why in lacks, under "shared adapters"'
)
NAME_CLASH = "refuse_name_clash, or RetrievalName where the tools are not known before the run"
KEPT = 'Arrival.policy: Never() where the host says "coatcheck": "keep" (asks_to_keep)'
FOR_CODE = "look: it returns nothing for results that code asked for (is_called_by_code, is_for_code_only)"
FINAL = "look: it returns nothing for final answers"
CANCELLED = "look: it returns nothing for cancelled calls"
INTERRUPTS = "where the tool runs: outside of settle and asettle, so that what the framework raises passes"
STEPS = "Batch.together and Batch.arrivals: all results of one step, in one batch"
ERRORS = "Arrival.is_error: as the framework marks the result"
POLICIES = "Arrival.tool_name and Arrival.tool_args: those of this call, as the framework has them"
ASYNC_POLICIES = f"{OFF_THE_LOOP}. Then look at {POLICIES}"
CALL_IDS = "what the adapter looks up by call id: ids may be odd, missing or used twice"

_LOOK = "\nLook at "


def place_of_results(scenario: Scenario, *, is_async: bool) -> str:
    """Return where to look if what the model or the storage got from a tool's result is wrong."""
    place = next(place for applies, place in _places(scenario) if applies)
    policies = scenario.knobs.get("policies", {}).values()
    if place == POLICIES and is_async and any(map(inspect.iscoroutinefunction, policies)):
        return ASYNC_POLICIES
    return place


def place_of_answers(scenario: Scenario) -> str:
    """Return where to look if an answer of the retrieval tool is wrong."""
    is_about_scopes = scenario.scope_from != "argument" or scenario.between == "another scope"
    return SCOPE if is_about_scopes else RETRIEVAL


def place_of_error(scenario: Scenario, *, is_reading: bool) -> str:
    """Return where to look if the agent's run raised an error that it does not raise without the adapter."""
    if is_reading:
        return RETRIEVAL
    if scenario.fault != "none":
        return GUARD
    return HOOK if scenario.interrupting_tool is None else INTERRUPTS


def place_of_references(found: Sequence[str], expected: Sequence[str]) -> str | None:
    """Return where to look if references name the right content, but another tool or scope; else None."""
    pairs = [(one.rsplit("-", 2), other.rsplit("-", 2)) for one, other in zip(found, expected, strict=False)]
    if len(found) != len(expected) or any(one[1:2] != other[1:2] for one, other in pairs):
        return None  # the content differs
    if any(one[2:] != other[2:] for one, other in pairs):
        return SCOPE
    return TOOL_NAME if any(one != other for one, other in pairs) else None


@contextmanager
def pointing_at(place: str | None) -> Iterator[None]:
    """Add the place to look at to an ``AssertionError`` raised inside the ``with`` block.

    An error that has a place keeps it: the innermost block knows best. None leaves it to the blocks around it.
    """
    try:
        yield
    except AssertionError as error:
        if place is not None and _LOOK not in words_of(error):
            error.args = (f"{words_of(error)}{_LOOK}{place}.",)
        raise


@contextmanager
def naming_needs(scenario: Scenario) -> Iterator[None]:
    """Name the capabilities that the scenario needs, if any, in an ``AssertionError`` that ends with a place."""
    try:
        yield
    except AssertionError as error:
        if scenario.needs and _LOOK in words_of(error):
            needs = " or ".join(f'"{capability}"' for capability in sorted(scenario.needs))
            error.args = (f"{words_of(error)} If the framework does not have this, say why in lacks, under {needs}.",)
        raise


def _places(scenario: Scenario) -> Iterator[tuple[bool, str]]:
    ids = [call.call_id for call in scenario.calls if call.call_id is not None]
    yield scenario.claims_our_name, NAME_CLASH
    yield scenario.code_tool is not None, FOR_CODE
    yield scenario.kept_tool is not None, KEPT
    yield scenario.final_tool is not None, FINAL
    yield scenario.cancelled_tool is not None, CANCELLED
    yield scenario.interrupting_tool is not None, INTERRUPTS
    yield scenario.fails_offloading and "max_inline_tokens" in scenario.knobs, LAST_RESORT
    yield scenario.fails_offloading, GUARD
    yield scenario.scope_from != "argument", SCOPE
    yield scenario.knobs.get("max_step_tokens") is not None, STEPS
    yield any(call.is_error for call in scenario.calls), ERRORS
    yield "policies" in scenario.knobs, POLICIES
    yield bool(ids) or not all(call.has_id for call in scenario.calls), CALL_IDS
    yield True, CONVERSIONS
