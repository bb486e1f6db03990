"""What an adapter's author writes: a ``Harness`` that runs a real agent of the framework against a scripted model.

The contract hands over a ``Run`` and asks what the model received. A harness builds the agent, lets its tools return
the blocks, lets ``Run.model`` speak for the model, and reports. It decides and checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from coatcheck.core.blocks import Block
    from coatcheck.core.references import Scope
    from coatcheck.offloader import Offloader

__all__ = ("Harness", "Model", "ModelCall", "NamesScopes", "Received", "Returned", "Run", "Transcript")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One tool call, as the scripted model makes it."""

    tool: str
    """The tool's name."""

    arguments: Mapping[str, object]
    """Its arguments. Those of the scenario's own tools are ``{"number": n}``."""

    call_id: str | None
    """Its id, as the model gives it: it may be empty, long, or the same as another's. None: the model gives none."""

    by_code: bool = False
    """Whether code in the provider's container makes it. Only the Responses API of ``ScriptedServer`` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One tool result, as it reached the model.

    Where the framework's client refuses to send media in a tool result: as the framework's message holds it.
    """

    text: str
    """Its text parts, joined by line ends."""

    raw: str
    """The whole of its content, other parts included, as JSON text."""

    is_error: bool | None = None
    """Whether the framework's message of it is marked as an error. None: the framework has no such mark. Only
    ``Transcript.received`` needs it."""

    references: tuple[str, ...] | None = None
    """What the adapter's ``offloaded_references`` finds in the framework's message. None: it reads the text, not a mark
    of its own. Only ``Transcript.received`` needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What a tool returns for one call."""

    blocks: tuple[Block, ...]
    """To be turned into the framework's own content. ``OpaqueBlock.native`` is a ``str``: put it into any block that
    the framework knows and coatcheck does not."""

    is_error: bool
    """To be reported as an error, in the framework's way."""


Seen = TypeVar("Seen")
Made = TypeVar("Made")

Model: TypeAlias = Callable[[Sequence[Received]], Sequence[ModelCall]]
"""The scripted model: ``calls = model(received)``, at every request of the conversation.

``received`` are all tool results in the request, in their order, those of earlier steps too; none in the first one. The
answer is the tool calls to make in parallel, or nothing for a final answer.
"""


class Watch(Protocol):
    """Looks at a tool or a result of any framework, and returns the same object."""

    def __call__(self, seen: Seen, /) -> Seen:
        """Look at it, and return it."""
        ...


class Share(Protocol):
    """Returns an adapter of any framework: one that was made before, or what ``make`` makes."""

    def __call__(self, make: Callable[[], Made], /) -> Made:
        """Make it, or return that of before."""
        ...


def _unwatched(seen: Seen, /) -> Seen:
    return seen


def _unshared(make: Callable[[], Made], /) -> Made:
    return make()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One conversation to be run."""

    offloader: Offloader | None
    """Given to the adapter as it is. None: an agent without any offloading, for comparison."""

    scope: Scope | None
    """Given to the adapter as its scope; None: no scope is given to it."""

    tools: Mapping[str, Mapping[int, Returned]]
    """Every tool of the agent by its name, and what it returns by the argument ``number``."""

    model: Model
    """Speaks for the model."""

    identity: str | None = None
    """The conversation's id, given to the framework in its own way, such as a thread or a session id. The adapter must
    find it there by itself: never pass it as a scope. None: the framework is given none."""

    final_tools: frozenset[str] = frozenset()
    """Tools that return the final answer for the user, in the framework's way: the model is not asked again."""

    cancelled_tools: frozenset[str] = frozenset()
    """The host cancels calls of these tools before they run, in the framework's way. What they would return is what the
    host says instead; the framework may add to it."""

    interrupting_tools: frozenset[str] = frozenset()
    """Tools that stop the agent before they return, once in each call, in the framework's way. The harness lets the
    agent go on."""

    kept_tools: frozenset[str] = frozenset()
    """The host asks to keep the results of these tools whole, in the adapter's documented way: ``"coatcheck": "keep"``.
    That way may keep all results of the run: a run with such tools has no others."""

    code_tools: frozenset[str] = frozenset()
    """Tools that only code in a provider's container may call, in the framework's way."""

    watch: Watch = _unwatched
    """Pass every tool object that you make through it before the adapter sees it; it returns the same object. So the
    contract can tell whether the adapter changed what belongs to the user."""

    watch_result: Watch = _unwatched
    """Pass what a tool returns through it, in the framework's own form, before the framework sees it; it returns the
    same object. So the contract can tell whether the adapter changed it in place instead of making a new one."""

    share: Share = _unshared
    """Make the adapter through it, once in each run: ``share(lambda: MyAdapter(case.offloader, scope=case.scope))``
    returns what the function makes. In a run of another user it returns the first user's adapter instead, because users
    share one. If the adapter is several objects, make a tuple of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What came of a conversation."""

    received: tuple[Received, ...]
    """The tool results in the last request to the model, in the order of the calls."""

    offered: frozenset[str]
    """Names of the tools that the model was offered."""

    answer: str | None = None
    """What the user got, where a tool of ``Run.final_tools`` ended the conversation: its text parts, joined."""

    was_interrupted: bool = False
    """Whether the agent stopped for a tool of ``Run.interrupting_tools``, and was let go on."""


class Harness(Protocol):
    """Runs a real agent of one framework. Both methods raise what the agent raises.

    While a run waits for its model, another thread may begin the run of another user.
    """

    def run(self, case: Run) -> Transcript:
        """Run the conversation through the framework's sync path."""
        ...

    async def arun(self, case: Run) -> Transcript:
        """Run the conversation through the framework's async path."""
        ...


@runtime_checkable
class NamesScopes(Protocol):
    """A harness of a framework with ids that are unique only within something else, such as one user's sessions."""

    def scope_of(self, identity: str) -> Scope:
        """Return the scope that the adapter must find for ``Run.identity``. Without this method it is the id itself."""
        ...
