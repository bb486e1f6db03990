"""What an adapter's author writes: a ``Harness`` that runs a real agent of the framework against a scripted model.

The contract hands over a ``Run`` and asks what the model received. A harness builds the agent, lets its tools return
the blocks, lets ``Run.model`` answer as the model, and reports. It decides and checks nothing.
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
    """The id that the model gives it. It may be empty, long, or the same as another's. None: the model gives none."""

    by_code: bool = False
    """Whether code in the provider's container makes the call. Only ``ScriptedServer``'s Responses API shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One tool result, as it reached the model.

    If the framework's client refuses to send media in a tool result: as the framework's message holds it.
    """

    text: str
    """Its text parts, joined by newlines."""

    raw: str
    """All its content as JSON text, including parts that are not text."""

    is_error: bool | None = None
    """Whether the framework marks its message as an error. None: the framework has no such mark. Only needed in
    ``Transcript.received``."""

    references: tuple[str, ...] | None = None
    """What the adapter's ``offloaded_references`` finds in the framework's message. None: it reads the text, not a mark
    of its own. Only needed in ``Transcript.received``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What a tool returns for one call."""

    blocks: tuple[Block, ...]
    """Turn them into the framework's own content. ``OpaqueBlock.native`` is a ``str``: put it into any block that the
    framework knows and coatcheck does not."""

    is_error: bool
    """Whether to report the result as an error, in the framework's way."""


Seen = TypeVar("Seen")
Made = TypeVar("Made")

Model: TypeAlias = Callable[[Sequence[Received]], Sequence[ModelCall]]
"""The scripted model: ``calls = model(received)``, at every request of the conversation.

``received`` holds all tool results in the request, in order, including those of earlier steps; the first request has
none. The model returns the tool calls to make in parallel, or none for a final answer.
"""


class Watch(Protocol):
    """Looks at a tool or a result of any framework, and returns the same object."""

    def __call__(self, seen: Seen, /) -> Seen:
        """Look at it, and return it."""
        ...


class Share(Protocol):
    """Returns an adapter of any framework: the one made before, or a new one from ``make``."""

    def __call__(self, make: Callable[[], Made], /) -> Made:
        """Make the adapter, or return the one made before."""
        ...


def _unwatched(seen: Seen, /) -> Seen:
    return seen


def _unshared(make: Callable[[], Made], /) -> Made:
    return make()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One conversation to run."""

    offloader: Offloader | None
    """Pass it to the adapter as it is. None: run the agent without any offloading, for comparison."""

    scope: Scope | None
    """Pass it to the adapter as its scope. None: pass no scope."""

    tools: Mapping[str, Mapping[int, Returned]]
    """Every tool of the agent by name, and what it returns for each value of the argument ``number``."""

    model: Model
    """The scripted model."""

    identity: str | None = None
    """The conversation's id. Give it to the framework in its own way, such as a thread or a session id. The adapter
    must find it there by itself: never pass it as a scope. None: give the framework no id."""

    final_tools: frozenset[str] = frozenset()
    """Tools that return the final answer for the user, in the framework's way: the model is not asked again."""

    cancelled_tools: frozenset[str] = frozenset()
    """Tools whose calls the host cancels before they run, in the framework's way. What the tool would return is the
    host's message instead; the framework may add to it."""

    interrupting_tools: frozenset[str] = frozenset()
    """Tools that stop the agent before they return, once per call, in the framework's way. The harness resumes the
    agent."""

    kept_tools: frozenset[str] = frozenset()
    """Tools whose results the host asks to keep whole, in the adapter's documented way: ``"coatcheck": "keep"``. That
    may keep all results of the run, so a run with such tools has no other tools."""

    code_tools: frozenset[str] = frozenset()
    """Tools that only code in a provider's container may call, in the framework's way."""

    watch: Watch = _unwatched
    """Pass every tool object that you make through it before the adapter sees it; it returns the same object. The
    contract uses it to tell whether the adapter changed the user's own tools."""

    watch_result: Watch = _unwatched
    """Pass what a tool returns through it, in the framework's own form, before the framework sees it; it returns the
    same object. The contract uses it to tell whether the adapter changed it in place instead of making a new one."""

    share: Share = _unshared
    """Make the adapter through it, once per run: ``share(lambda: MyAdapter(case.offloader, scope=case.scope))`` returns
    what the function makes. In a run of another user it returns the first user's adapter instead, because users share
    one. If the adapter is several objects, make a tuple of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The outcome of a conversation."""

    received: tuple[Received, ...]
    """The tool results in the last request to the model, in the order of the calls."""

    offered: frozenset[str]
    """Names of the tools that the model was offered."""

    answer: str | None = None
    """What the user got if a tool of ``Run.final_tools`` ended the conversation: its text parts, joined."""

    was_interrupted: bool = False
    """Whether the agent stopped for a tool of ``Run.interrupting_tools`` and was resumed."""


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
    """A harness of a framework whose ids are unique only within something else, such as one user's sessions."""

    def scope_of(self, identity: str) -> Scope:
        """Return the scope that the adapter must find for ``Run.identity``. Without this method it is the id itself."""
        ...
