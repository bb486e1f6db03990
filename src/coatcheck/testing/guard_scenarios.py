"""Scenarios of what keeps conversations apart and agents alive: scopes, failing offloaders, threads, the user's tools.

No framework may leave one out: each shows a way in which an adapter would leak, block, or end an agent.
"""

from __future__ import annotations

from dataclasses import replace

from coatcheck.core.blocks import TextBlock
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.testing.samples import numbered_lines, stored
from coatcheck.testing.scenario import BIG, IDENTITY, MIDDLE, SCOPE_NAMES, SMALL, Call, Read, Scenario, ScopeFrom

__all__ = ("GUARD_SCENARIOS",)

HUGE = TextBlock(numbered_lines(3_000))
"""More than 4 bytes for each token of ``LIMIT``."""

LIMIT = {"max_inline_tokens": 2_000}
OFFLOADED = ((Call(returns=(BIG,)),),)
FOUND = Read(arguments={"pattern": "^line 321 "}, sees=("> 321| line 321 of 400",))
REFUSED = Read(sees=("reference not found", "Do not retry"), hides=("line 1 of 400", "expired"))

FROM_THE_CALL: tuple[tuple[str, ScopeFrom], ...] = (
    ("conversations of the framework", "identity"),
    ("ambient scopes", "ambient"),
)

GUARD_SCENARIOS: tuple[Scenario, ...] = (
    # The scope of the content.
    Scenario(
        name="identity from the framework",
        promise="Without a scope of the host's, the framework's own identity of the conversation is the scope.",
        steps=OFFLOADED,
        scope_from="identity",
        reads=(FOUND,),
        holds=(stored(BIG.text),),
    ),
    Scenario(
        name="reference from another conversation of the framework",
        promise="A conversation with another identity cannot read it: the reference is as good as unknown.",
        steps=OFFLOADED,
        scope_from="identity",
        between="another scope",
        reads=(REFUSED, *(Read(undefined={name: IDENTITY}, hides=("line 1 of 400",)) for name in SCOPE_NAMES)),
    ),
    Scenario(
        name="the same conversation of the framework after a restart",
        promise="A new agent with the same identity reads what the earlier one stored.",
        steps=OFFLOADED,
        scope_from="identity",
        between="restart",
        reads=(FOUND,),
    ),
    *(
        Scenario(
            name=f"two {what} through one adapter",
            promise="Users share an adapter object: each of two conversations at once reads its own, not the other's.",
            steps=OFFLOADED,
            scope_from=scope_from,
            has_neighbour=True,
            reads=(FOUND, replace(REFUSED, of=1)),
        )
        for what, scope_from in FROM_THE_CALL
    ),
    Scenario(
        name="a scope and an identity",
        promise="A scope that the host passes takes precedence over the framework's identity.",
        steps=OFFLOADED,
        scope_from="both",
        reads=(FOUND,),
    ),
    Scenario(
        name="a scope of several parts",
        promise="A scope that the host gives may be a tuple, such as a tenant and a conversation.",
        steps=OFFLOADED,
        scope_from="tuple",
        reads=(FOUND,),
        holds=(stored(BIG.text),),
    ),
    Scenario(
        name="no identity",
        promise="Without any scope and identity, the shared default scope holds.",
        steps=OFFLOADED,
        scope_from="nowhere",
        reads=(FOUND,),
    ),
    # What is listed.
    Scenario(
        name="a list of what a conversation stored",
        promise="A model that lost its references gets a list of what its conversation stored, and can search it.",
        steps=OFFLOADED,
        scope_from="identity",
        reads=(
            Read(reference="*", sees=("newest first", "fetch-", "(fetch, text/plain, ", " bytes)")),
            Read(reference="*", arguments={"pattern": "FETCH|fetch"}, sees=("1 match", "(fetch, text/plain, ")),
            Read(reference=" ", arguments={"pattern": "another tool"}, sees=("No matches found",), hides=("fetch-",)),
        ),
    ),
    Scenario(
        name="a list in another conversation",
        promise="A conversation with another identity lists nothing of it.",
        steps=OFFLOADED,
        scope_from="identity",
        between="another scope",
        reads=(Read(reference="*", sees=("Nothing is stored",), hides=("fetch-",)),),
    ),
    Scenario(
        name="no list without an identity",
        promise="What conversations without any scope share is listed to none of them, and the answer says why.",
        steps=OFFLOADED,
        scope_from="nowhere",
        reads=(Read(reference="*", sees=("cannot be listed here", "conversations share it"), hides=("fetch-",)),),
    ),
    Scenario(
        name="no identity where a scope is required",
        promise="With require_scope, a result without a scope stays, nothing is stored, and a warning says why. Another"
        " one does at a read-back, where the model is told that nothing can be read.",
        steps=((Call(returns=(BIG,), becomes="kept"),),),
        knobs={"require_scope": True},
        scope_from="nowhere",
        sees=(MIDDLE,),
        reads=(
            Read(
                reference="fetch-0123456789abcdef-0123",
                sees=("Nothing can be read back here", "Do not retry"),
                hides=("require_scope", "thread_id"),
            ),
        ),
        holds=(),
    ),
    # Where our own work fails.
    Scenario(
        name="offloading fails",
        promise="Whatever raises during offloading, the raw result passes on, and a warning says so.",
        steps=((Call(returns=(BIG,), becomes="kept"),),),
        fault="every offload",
        sees=(MIDDLE,),
        holds=(),
    ),
    Scenario(
        name="offloading a huge result fails",
        promise="Far above the inline limit, the result is stored as it is all the same, and shown by its two ends.",
        steps=((Call(returns=(SMALL,), becomes="kept"), Call(returns=(HUGE,))),),
        knobs=LIMIT,
        fault="every offload",
        sees=("small", "line 1 of 3,000", "line 3,000 of 3,000"),
        hides=("line 1,500 of 3,000",),
        holds=(stored(HUGE.text),),
    ),
    Scenario(
        name="reading what offloading failed on",
        promise="What was stored this way can be read back like anything else.",
        steps=((Call(returns=(HUGE,)),),),
        knobs=LIMIT,
        fault="every offload",
        reads=(Read(arguments={"pattern": "^line 1,500 "}, sees=("line 1,500 of 3,000",)),),
    ),
    Scenario(
        name="offloading and storing a huge result fail",
        promise="Where it cannot be stored either, it is cut, and the notice says that the rest is lost and why.",
        steps=((Call(returns=(HUGE,), becomes="truncated"),),),
        knobs=LIMIT,
        fault="every offload and save",
        sees=("the rest is lost", "No space left on device", "line 1 of 3,000", "line 3,000 of 3,000"),
        hides=("line 1,500 of 3,000", "[Stored references:]"),
        holds=(),
    ),
    Scenario(
        name="reading back fails",
        promise="Whatever raises during a read-back, the model is told, and the agent goes on.",
        steps=OFFLOADED,
        fault="every retrieve",
        reads=(Read(sees=("an internal error",), hides=("BrokenOnPurpose",)),),
    ),
    # What else an adapter must not touch.
    Scenario(
        name="the event loop",
        promise="No call of a sync storage is made on the event loop's thread, neither to save nor to read.",
        steps=OFFLOADED,
        watches_threads=True,
        reads=(FOUND,),
    ),
    Scenario(
        name="the event loop where offloading fails",
        promise="The last resort makes no such call there either.",
        steps=((Call(returns=(HUGE,)),),),
        knobs=LIMIT,
        fault="every offload",
        watches_threads=True,
    ),
    Scenario(
        name="the user's own tools",
        promise="The user's own tool objects hold afterwards what they held before.",
        steps=OFFLOADED,
        watches_tools=True,
        reads=(FOUND,),
    ),
    Scenario(
        name="a tool of the user's with the retrieval tool's name",
        promise="It is refused, or a warning names it: else no reference could be read, and nobody would know why.",
        steps=(
            (Call(returns=(BIG,)),),
            (Call(returns=(SMALL,), becomes="kept", tool=RETRIEVAL_TOOL),),
        ),
    ),
)
