"""Where an author looks when a scenario fails: the part of the adapter that the scenario is about.

Each failure of ``AdapterContract`` ends with such a place. The names are those of ``docs/writing-an-adapter.md``. What
fails is said by ``trial``; only the way from a scenario to a place belongs here.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.testing.scenario import Scenario

__all__ = ("place_of_answers", "place_of_results", "pointing_at")

CONVERSIONS = (
    "the two conversions: Arrival.convert hands over every block, in order, and put_back makes new content of the"
    " outcome's blocks, once. Where only the reference differs, look at Arrival.tool_name and Batch.scope"
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
    "the scope: Batch.scope and Batch.identity, and what answer and aanswer find. The user's scope= comes first, then"
    " the framework's own id of the conversation; nothing is made up"
)
RETRIEVAL = (
    "the retrieval tool: the model is offered it, answer and aanswer get the arguments as the model sent them, and what"
    " they return is the result, never offloaded"
)
OFF_THE_LOOP = "the async path: asettle and aanswer, never settle and answer there"
TOOLS = "what the adapter does to the user's tools, and the harness: every tool object passes through Run.watch"
NAME_CLASH = "refuse_name_clash, or RetrievalName where the tools are not known before the run"
KEPT = 'Arrival.policy: Never() where the host says "coatcheck": "keep" (asks_to_keep)'
FOR_CODE = "look: it returns nothing for results that code asked for (is_called_by_code, is_for_code_only)"
FINAL = "look: it returns nothing for final answers"
CANCELLED = "look: it returns nothing for cancelled calls"
INTERRUPTS = "where the tool runs: outside of settle and asettle, so that what the framework raises passes"
STEPS = "Batch.together and Batch.arrivals: all results of one step, in one batch"
ERRORS = "Arrival.is_error: as the framework marks the result"
POLICIES = "Arrival.tool_name and Arrival.tool_args: those of this call, as the framework has them"
CALL_IDS = "what the adapter looks up by call id: ids may be odd, missing or used twice"


def place_of_results(scenario: Scenario) -> str:
    """Return where to look if what the model or the storage got of a tool's results is wrong."""
    return next(place for applies, place in _places(scenario) if applies)


def place_of_answers(scenario: Scenario) -> str:
    """Return where to look if an answer of the retrieval tool is wrong."""
    is_about_scopes = scenario.scope_from != "argument" or scenario.between == "another scope"
    return SCOPE if is_about_scopes else RETRIEVAL


@contextmanager
def pointing_at(place: str) -> Iterator[None]:
    """Let an ``AssertionError`` that is raised inside the ``with`` block end with the place to look at."""
    try:
        yield
    except AssertionError as error:
        error.args = (f"{error}\nLook at {place}.",)
        raise


def _places(scenario: Scenario) -> Iterator[tuple[bool, str]]:
    offloading_fails = scenario.fault in {"every offload", "every offload and save"}
    ids = [call.call_id for call in scenario.calls if call.call_id is not None]
    yield scenario.claims_our_name, NAME_CLASH
    yield scenario.code_tool is not None, FOR_CODE
    yield scenario.kept_tool is not None, KEPT
    yield scenario.final_tool is not None, FINAL
    yield scenario.cancelled_tool is not None, CANCELLED
    yield scenario.interrupting_tool is not None, INTERRUPTS
    yield offloading_fails and "max_inline_tokens" in scenario.knobs, LAST_RESORT
    yield offloading_fails, GUARD
    yield scenario.scope_from != "argument", SCOPE
    yield scenario.knobs.get("max_step_tokens") is not None, STEPS
    yield any(call.is_error for call in scenario.calls), ERRORS
    yield "policies" in scenario.knobs, POLICIES
    yield bool(ids) or not all(call.has_id for call in scenario.calls), CALL_IDS
    yield True, CONVERSIONS
